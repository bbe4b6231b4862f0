//! Who stored to a chunk first and last, and who read it before anybody did.

use crate::ids::Location;
use crate::location::Locations;
use crate::program::OpId;
use crate::verify::replay::Observe;
use crate::verify::values::ValueId;

/// Gathered during a replay.
#[derive(Debug)]
pub(crate) struct Stores {
    locations: Locations,
    first_and_last: Vec<Option<(OpId, OpId)>>,
    /// Reads of chunks that held nothing, in the order of the run.
    pub(crate) unwritten: Vec<(OpId, Location)>,
}

impl Stores {
    /// Nothing gathered yet.
    pub(crate) fn new(locations: Locations) -> Stores {
        Stores { locations, first_and_last: vec![None; locations.len()], unwritten: Vec::new() }
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

impl Observe for Stores {
    fn read(&mut self, op: OpId, at: Location, value: Option<ValueId>) {
        if value.is_none() {
            self.unwritten.push((op, at));
        }
    }

    fn store(&mut self, op: OpId, at: Location, _: ValueId) {
        if let Some(index) = self.locations.index(at) {
            self.first_and_last[index].get_or_insert((op, op)).1 = op;
        }
    }
}
