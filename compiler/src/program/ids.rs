//! The names of things: newtypes whose `Display` is their text form in every IR.

use crate::names::table;
use std::fmt;

/// A participant of the collective, `0..RANKS`; one GPU. Text form `r3`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Rank(pub u32);

/// A thread block of one rank's kernel, `0..blocks`. Text form `b0`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct ThreadBlock(pub u32);

/// The thread block of a rank. Text form `r3.b0`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Place {
    /// The rank that runs the block.
    pub rank: Rank,
    /// The block in that rank's grid.
    pub block: ThreadBlock,
}

table! {
    /// A buffer, of which every rank has one. Text form: the name users write.
    pub enum Buffer {
        /// What the rank contributes; read-only for the collective.
        Input = "input",
        /// What the rank receives.
        Output = "output",
        /// Both in one, of an in-place collective.
        Data = "data",
        /// Memory of the communicator for the length of a call; its chunks have the size of the largest chunk.
        Scratch = "scratch",
    }
}

/// One chunk of one rank's buffer: the unit in which races, values and dependences are judged. Text form
/// `data[3][2]`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Location {
    /// Which buffer.
    pub buffer: Buffer,
    /// Whose.
    pub rank: Rank,
    /// The chunk's index in the buffer.
    pub chunk: u32,
}

/// `len` neighbouring chunks of one rank's buffer. Text form `data[3][2]` for one chunk, else `data[3][2..5]`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Slice {
    /// Which buffer.
    pub buffer: Buffer,
    /// Whose.
    pub rank: Rank,
    /// First chunk.
    pub start: u32,
    /// Number of chunks, at least 1.
    pub len: u32,
}

impl Slice {
    /// The chunk `offset` places into the slice.
    pub fn at(&self, offset: u32) -> Location {
        Location { buffer: self.buffer, rank: self.rank, chunk: self.start + offset }
    }

    /// Every chunk of the slice in order.
    pub fn locations(self) -> impl ExactSizeIterator<Item = Location> {
        (0..self.len).map(move |offset| self.at(offset))
    }

    /// One past the last chunk.
    pub fn end(&self) -> u32 {
        self.start + self.len
    }

    /// Whether the two slices share a chunk.
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

impl fmt::Display for Place {
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
