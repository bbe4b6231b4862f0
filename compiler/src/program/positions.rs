//! The positions of chunks in their units, which decide their sizes. A chunk of `scratch` has the position of the chunk
//! that was stored there last.

use crate::program::Op;
use crate::program::ids::{Buffer, Location, Slice};
use crate::program::kind::Shape;
use rustc_hash::FxHashMap;

/// The positions of all chunks at a point of a run.
#[derive(Clone, Debug)]
pub(crate) struct Positions {
    chunks: u32,
    scratch: FxHashMap<Location, u32>,
}

impl Positions {
    /// Returns the positions when the call begins.
    pub(crate) fn new(shape: &Shape) -> Positions {
        Positions { chunks: shape.chunks, scratch: FxHashMap::default() }
    }

    /// Returns the position of a chunk; `None` for a chunk of scratch that nothing was stored to.
    pub(crate) fn of(&self, at: Location) -> Option<u32> {
        match at.buffer {
            Buffer::Scratch => self.scratch.get(&at).copied(),
            _ => Some(at.chunk % self.chunks),
        }
    }

    /// Returns the position of chunk `offset` of an operation: that of an operand outside scratch, or, where all lie in
    /// scratch, that of the first source that holds something.
    pub(crate) fn of_operation(&self, sources: &[Slice], dests: &[Slice], offset: u32) -> u32 {
        let sized = sources.iter().chain(dests).find(|slice| slice.buffer != Buffer::Scratch);
        match sized {
            Some(slice) => (slice.start + offset) % self.chunks,
            None => sources.iter().find_map(|source| self.of(source.at(offset))).unwrap_or(0),
        }
    }

    /// Notes the positions of the chunks that the operation stores.
    pub(crate) fn stored(&mut self, op: &Op) {
        for dest in op.dests.iter().filter(|dest| dest.buffer == Buffer::Scratch) {
            for (at, offset) in dest.locations().zip(0..) {
                self.scratch.insert(at, (op.position + offset) % self.chunks);
            }
        }
    }
}
