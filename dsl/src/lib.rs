//! The language: Rust syntax to programs.
