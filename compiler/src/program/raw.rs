//! Slices and sites as a run computes them, before they are known to lie in their buffers.

use crate::program::ids::Buffer;
use std::fmt;

/// A slice as the program's text evaluates it: `buffer[rank][start..end]` (`end = start + 1` for one chunk).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RawSlice {
    /// The buffer.
    pub buffer: Buffer,
    /// The rank whose buffer it is.
    pub rank: i64,
    /// First chunk.
    pub start: i64,
    /// One past the last chunk.
    pub end: i64,
}

/// As the program's text would write it: `data[3][-1]`, `data[3][2..5]`.
impl fmt::Display for RawSlice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.start.checked_add(1) == Some(self.end) {
            write!(f, "{}[{}][{}]", self.buffer, self.rank, self.start)
        } else {
            write!(f, "{}[{}][{}..{}]", self.buffer, self.rank, self.start, self.end)
        }
    }
}

/// The site of an operation as attributes evaluate it; see [`crate::program::Site`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RawSite {
    /// `#[on(..)]`.
    pub on: Option<i64>,
    /// `#[channel(..)]`.
    pub channel: Option<i64>,
    /// `#[block(..)]`.
    pub block: Option<i64>,
}
