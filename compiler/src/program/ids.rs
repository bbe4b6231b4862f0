//! Ranks, thread blocks, buffers, chunks and slices. Their `Display` is their text form in programs, schedules and kernels.

use crate::names::table;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A rank: a participant of the collective, from 0 to N - 1. Text form `r3`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Rank(pub u32);

/// The number of a thread block in one rank's kernel, from 0. Text form `b0`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct ThreadBlock(pub u32);

/// A thread block of a rank. Text form `r3.b0`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct BlockId {
    /// The rank that runs the block.
    pub rank: Rank,
    /// The block in that rank's grid.
    pub block: ThreadBlock,
}

table! {
    /// A buffer; every rank has one of each. Text form: the name users write.
    #[derive(Serialize, Deserialize)]
    pub enum Buffer {
        /// The data that the rank contributes; the collective does not store to it.
        Input = "input",
        /// The data that the rank receives.
        Output = "output",
        /// Input and output in one, for an in-place collective.
        Data = "data",
        /// Memory of the communicator for the length of a call; its chunks have the size of the largest chunk.
        Scratch = "scratch",
    }
}

/// A chunk of one rank's buffer. Races, values and dependences are judged chunk by chunk. Text form `data[3][2]`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Location {
    /// The buffer.
    pub buffer: Buffer,
    /// The rank whose buffer it is.
    pub rank: Rank,
    /// The chunk's index in the buffer.
    pub chunk: u32,
}

/// A slice: `len` neighbouring chunks of one rank's buffer. Text form `data[3][2]` for one chunk, else `data[3][2..5]`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Slice {
    /// The buffer.
    pub buffer: Buffer,
    /// The rank whose buffer it is.
    pub rank: Rank,
    /// First chunk.
    pub start: u32,
    /// Number of chunks, at least 1.
    pub len: u32,
}

impl Slice {
    /// Returns the chunk at `offset` in the slice.
    pub fn at(&self, offset: u32) -> Location {
        Location { buffer: self.buffer, rank: self.rank, chunk: self.start + offset }
    }

    /// Returns every chunk of the slice in order.
    pub fn locations(self) -> impl ExactSizeIterator<Item = Location> {
        (0..self.len).map(move |offset| self.at(offset))
    }

    /// Returns one past the last chunk.
    pub fn end(&self) -> u32 {
        self.start + self.len
    }

    /// Returns true if the two slices share a chunk.
    pub fn overlaps(&self, other: &Slice) -> bool {
        self.buffer == other.buffer
            && self.rank == other.rank
            && self.start < other.end()
            && other.start < self.end()
    }
}

impl fmt::Display for Rank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "r{}", self.0)
    }
}

impl fmt::Display for ThreadBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b{}", self.0)
    }
}

impl fmt::Display for BlockId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.rank, self.block)
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[{}][{}]", self.buffer, self.rank.0, self.chunk)
    }
}

impl fmt::Display for Slice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.len == 1 {
            write!(f, "{}", self.at(0))
        } else {
            write!(f, "{}[{}][{}..{}]", self.buffer, self.rank.0, self.start, self.end())
        }
    }
}
