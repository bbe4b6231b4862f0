//! The promises of a custom collective: its `expect!` and `unspecified!` statements, for one world size.

use crate::program::ids::Rank;
use crate::program::kind::{Contribution, Expected};
use std::sync::Arc;

/// The promises of a custom collective for every output chunk.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Contract {
    output_chunks: u32,
    /// By rank, then chunk; `None` where no statement speaks of the chunk.
    promises: Vec<Option<Promise>>,
}

/// The promise for one output chunk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Promise {
    /// `expect!`: the chunk holds these inputs combined, ascending; a single one is a copy.
    Holds(Arc<[Contribution]>),
    /// `unspecified!`: the chunk holds anything.
    Unspecified,
}

impl Contract {
    /// Makes a contract without promises, for `ranks` outputs of `output_chunks` chunks.
    pub fn new(ranks: u32, output_chunks: u32) -> Contract {
        Contract { output_chunks, promises: vec![None; ranks as usize * output_chunks as usize] }
    }

    fn index(&self, rank: Rank, chunk: u32) -> usize {
        rank.0 as usize * self.output_chunks as usize + chunk as usize
    }

    /// Adds a promise for a chunk that has none. Otherwise the earlier promise stays and is returned.
    pub fn promise(&mut self, rank: Rank, chunk: u32, promise: Promise) -> Option<&Promise> {
        let index = self.index(rank, chunk);
        match &mut self.promises[index] {
            Some(before) => Some(before),
            open => {
                *open = Some(promise);
                None
            }
        }
    }

    /// Returns what a chunk must hold; `None` where no statement speaks of it.
    pub fn expected(&self, rank: Rank, chunk: u32) -> Option<Expected<'_>> {
        Some(match self.promises.get(self.index(rank, chunk))?.as_ref()? {
            Promise::Holds(inputs) => match **inputs {
                [only] => Expected::Copied(only),
                _ => Expected::Combined(inputs),
            },
            Promise::Unspecified => Expected::Unspecified,
        })
    }

    /// Returns the chunks that no statement speaks of, ascending.
    pub fn open(&self) -> impl Iterator<Item = (Rank, u32)> {
        let chunks = self.output_chunks.max(1);
        let open = self.promises.iter().zip(0_u32..).filter(|(promise, _)| promise.is_none());
        open.map(move |(_, index)| (Rank(index / chunks), index % chunks))
    }
}
