//! Dense numbers for the chunks of all buffers of all ranks, tables by these numbers, and sets of ranks.

use crate::program::ids::{Buffer, Location, Rank, Slice};
use crate::program::kind::Shape;
use std::ops::Range;

/// A dense numbering of all chunks of all ranks, for tables by location.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Locations {
    ranks: u32,
    /// For each of [`Buffer::ALL`]: its chunks on a rank that has the buffer, and its first number.
    buffers: [(u32, usize); 4],
    len: usize,
}

impl Locations {
    /// Numbers a shape's chunks.
    pub fn new(shape: &Shape) -> Locations {
        let mut len = 0;
        let buffers = Buffer::ALL.map(|buffer| {
            let (chunks, first) = (shape.chunks(buffer, shape.root), len);
            len += chunks as usize * shape.ranks as usize;
            (chunks, first)
        });
        Locations { ranks: shape.ranks, buffers, len }
    }

    /// Counts the chunks of a shape; saturating.
    pub fn count(shape: &Shape) -> u64 {
        let chunks: u64 = Buffer::ALL.iter().map(|&b| u64::from(shape.chunks(b, shape.root))).sum();
        chunks.saturating_mul(shape.ranks.into())
    }

    /// Returns one past the last number.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if the shape has no chunks.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns every location in the order of its number.
    pub fn iter(self) -> impl Iterator<Item = Location> {
        Buffer::ALL.into_iter().flat_map(move |buffer| {
            let chunks = self.buffers[buffer as usize].0;
            (0..self.ranks).flat_map(move |rank| {
                (0..chunks).map(move |chunk| Location { buffer, rank: Rank(rank), chunk })
            })
        })
    }

    /// Returns the numbers of a slice's chunks, which are consecutive; `None` if it leaves its buffer.
    pub fn range(&self, slice: &Slice) -> Option<Range<usize>> {
        let (chunks, _) = self.buffers[slice.buffer as usize];
        let first = self.index(slice.at(0)).filter(|_| slice.len <= chunks - slice.start)?;
        Some(first..first + slice.len as usize)
    }

    /// Returns the location of a number; `None` beyond the last.
    pub fn at(&self, index: usize) -> Option<Location> {
        Buffer::ALL.into_iter().find_map(|buffer| {
            let (chunks, first) = self.buffers[buffer as usize];
            let within = index.checked_sub(first)?;
            let (rank, chunk) = (within.checked_div(chunks as usize)?, within % chunks as usize);
            (rank < self.ranks as usize).then_some(Location {
                buffer,
                rank: Rank(rank as u32),
                chunk: chunk as u32,
            })
        })
    }

    /// Returns the number of a location; `None` outside the buffers.
    pub fn index(&self, at: Location) -> Option<usize> {
        let (chunks, first) = self.buffers[at.buffer as usize];
        (at.rank.0 < self.ranks && at.chunk < chunks)
            .then(|| first + at.rank.0 as usize * chunks as usize + at.chunk as usize)
    }
}

/// One `T` for every location of a shape.
#[derive(Clone, Debug)]
pub struct LocationTable<T> {
    locations: Locations,
    cells: Vec<T>,
}

impl<T: Clone> LocationTable<T> {
    /// Makes a table with `value` everywhere.
    pub fn new(shape: &Shape, value: T) -> LocationTable<T> {
        let locations = Locations::new(shape);
        LocationTable { locations, cells: vec![value; locations.len()] }
    }
}

impl<T> LocationTable<T> {
    /// Returns the cell of a location; `None` outside the shape's buffers.
    pub fn get_mut(&mut self, at: Location) -> Option<&mut T> {
        self.cells.get_mut(self.locations.index(at)?)
    }
}

/// A set of ranks.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RankSet(Vec<u64>);

impl RankSet {
    /// Makes the empty set, for ranks below `ranks`.
    pub fn new(ranks: u32) -> RankSet {
        RankSet(vec![0; ranks.div_ceil(64) as usize])
    }

    /// Adds a rank.
    pub fn insert(&mut self, rank: Rank) {
        self.0[rank.0 as usize / 64] |= 1 << (rank.0 % 64);
    }

    /// Returns true if the rank is in the set.
    pub fn contains(&self, rank: Rank) -> bool {
        self.0[rank.0 as usize / 64] >> (rank.0 % 64) & 1 == 1
    }

    /// Adds all of `other`.
    pub fn union(&mut self, other: &RankSet) {
        for (word, more) in self.0.iter_mut().zip(&other.0) {
            *word |= more;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::kind::Kind;

    #[test]
    fn locations_are_dense_and_distinct() {
        for kind in Kind::ALL {
            for in_place in [false, true] {
                let shape = Shape { in_place, scratch: 5, ..Shape::new(kind, 3, 2) };
                let locations = Locations::new(&shape);
                let mut seen = vec![false; locations.len()];
                for buffer in Buffer::ALL {
                    for rank in (0..4).map(Rank) {
                        for chunk in 0..8 {
                            let index = locations.index(Location { buffer, rank, chunk });
                            if rank.0 < 3 && chunk < shape.chunks(buffer, rank) {
                                assert!(!std::mem::replace(&mut seen[index.unwrap()], true));
                            } else if rank.0 == 3 || chunk >= shape.chunks(buffer, Rank(0)) {
                                assert_eq!(index, None);
                            }
                        }
                    }
                }
                assert_eq!(locations.len() as u64, Locations::count(&shape));
                let numbers: Vec<_> = locations.iter().map(|at| locations.index(at).unwrap()).collect();
                assert_eq!(numbers, (0..locations.len()).collect::<Vec<_>>());
                assert!(locations.iter().eq((0..locations.len()).map(|i| locations.at(i).unwrap())));
                assert_eq!(locations.at(locations.len()), None);
            }
        }
    }
}
