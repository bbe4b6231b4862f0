//! Dense tables over the chunks of all buffers of all ranks, and sets of ranks.

use crate::ids::{Buffer, Location};
use crate::kind::Shape;

/// One `T` for every location of a shape.
#[derive(Clone, Debug)]
pub struct LocationTable<T> {
    ranks: usize,
    /// For each buffer of [`Buffer::ALL`]: chunks of one rank, and where the buffer's cells begin.
    buffers: [(usize, usize); 3],
    cells: Vec<T>,
}

impl<T: Clone> LocationTable<T> {
    /// A table with `value` everywhere.
    pub fn new(shape: &Shape, value: T) -> LocationTable<T> {
        let ranks = shape.ranks as usize;
        let mut begin = 0;
        let buffers = Buffer::ALL.map(|buffer| {
            // A rooted kind's `input` exists at the root only; the table has a row for every rank all the same.
            let chunks = shape.chunks(buffer, shape.root) as usize;
            let at = (chunks, begin);
            begin += chunks * ranks;
            at
        });
        LocationTable { ranks, buffers, cells: vec![value; begin] }
    }
}

impl<T> LocationTable<T> {
    fn index(&self, at: Location) -> Option<usize> {
        let (chunks, begin) = self.buffers[at.buffer as usize];
        let (rank, chunk) = (at.rank.0 as usize, at.chunk as usize);
        (rank < self.ranks && chunk < chunks).then(|| begin + rank * chunks + chunk)
    }

    /// The cell of a location; `None` outside the shape's buffers.
    pub fn get(&self, at: Location) -> Option<&T> {
        self.index(at).map(|i| &self.cells[i])
    }

    /// The cell of a location, to change it.
    pub fn get_mut(&mut self, at: Location) -> Option<&mut T> {
        self.index(at).map(|i| &mut self.cells[i])
    }
}

/// A set of ranks.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RankSet(Vec<u64>);

impl RankSet {
    /// The empty set, for ranks below `ranks`.
    pub fn new(ranks: u32) -> RankSet {
        RankSet(vec![0; ranks.div_ceil(64) as usize])
    }

    /// Adds a rank.
    pub fn insert(&mut self, rank: crate::ids::Rank) {
        self.0[rank.0 as usize / 64] |= 1 << (rank.0 % 64);
    }

    /// Whether the rank is in the set.
    pub fn contains(&self, rank: crate::ids::Rank) -> bool {
        self.0[rank.0 as usize / 64] >> (rank.0 % 64) & 1 == 1
    }

    /// Adds all of `other`.
    pub fn union(&mut self, other: &RankSet) {
        for (word, more) in self.0.iter_mut().zip(&other.0) {
            *word |= more;
        }
    }
}
