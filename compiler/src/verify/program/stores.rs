//! The operations that stored to each chunk first and last, and reads of chunks before any store. Gathered only once
//! something is wrong.

use crate::program::ids::Location;
use crate::program::location::Locations;
use crate::program::{OpId, Program};
use crate::values::replay::{ReplayObserver, replay};
use crate::values::{ValueId, Values};
use std::ops::Range;

/// The first and last store of each chunk, and reads before any store.
#[derive(Debug)]
pub(crate) struct StoreTable {
    locations: Locations,
    first_and_last: Vec<Option<(OpId, OpId)>>,
    /// Reads of chunks that held nothing, in the order of the run.
    pub(crate) unwritten: Vec<(OpId, Location)>,
}

impl StoreTable {
    /// Replays the program.
    pub(crate) fn of(program: &Program) -> StoreTable {
        let locations = Locations::new(&program.shape);
        let first_and_last = vec![None; locations.len()];
        let mut stores = StoreTable { locations, first_and_last, unwritten: Vec::new() };
        replay(program, &mut Values::new(&program.shape), &mut stores);
        stores
    }

    /// The first operation that stored to a chunk.
    pub(crate) fn first(&self, at: Location) -> Option<OpId> {
        self.first_and_last[self.locations.index(at)?].map(|(first, _)| first)
    }

    /// The last operation that stored to a chunk.
    pub(crate) fn last(&self, at: Location) -> Option<OpId> {
        self.first_and_last[self.locations.index(at)?].map(|(_, last)| last)
    }
}

impl ReplayObserver for StoreTable {
    fn read(&mut self, op: OpId, chunks: Range<usize>, held: &[Option<ValueId>]) {
        let unwritten = chunks.zip(held).filter(|(_, held)| held.is_none());
        self.unwritten.extend(unwritten.filter_map(|(at, _)| Some((op, self.locations.at(at)?))));
    }

    fn store(&mut self, op: OpId, chunks: Range<usize>, _: &[Option<ValueId>]) {
        for stored in &mut self.first_and_last[chunks] {
            stored.get_or_insert((op, op)).1 = op;
        }
    }
}
