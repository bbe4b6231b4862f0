//! Streams of the caller's, and graphs.
