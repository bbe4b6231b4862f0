//! Values of locations that strong accesses use, and which of them a read may return.
//!
//! A location keeps its last writes in coherence order, which is the order of execution. A read may return any write
//! that no later one replaces in what the reader knows to have happened before, and none older than one that it, or
//! anything that happened before it, has read (PTX ISA, "Causality" and "Coherence").

use std::collections::VecDeque;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::clocks::{Clocks, Message, Who};
use super::shadow::Memory;
use crate::isa::Scope;
use crate::random::Random;

/// Writes that a location remembers.
const REMEMBERED: usize = 8;
/// Readers that a location remembers; beyond it only the newest value can be read.
const READERS: usize = 64;

/// Who did something: number of the moment, and the lane.
type Doer = (u32, usize);

#[derive(Clone, Debug)]
struct Write {
    value: u128,
    /// Nobody: what lay there before.
    by: Option<Doer>,
    /// Of a strong write.
    scope: Option<Scope>,
    messages: Vec<Arc<Message>>,
}

#[derive(Clone, Debug)]
struct Location {
    bytes: u64,
    writes: VecDeque<Write>,
    /// Number of the first of `writes`.
    first: u64,
    /// Who has read which write.
    readers: Vec<(Doer, u64)>,
}

/// What a read returns.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) value: u128,
    /// Whether it is the last one written.
    pub(crate) newest: bool,
    /// What was published with it, and the scope with which it was written.
    pub(crate) messages: Vec<Arc<Message>>,
}

/// A location: its memory and first byte.
pub(crate) type Where = (Memory, u64);

#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    locations: FxHashMap<Where, Location>,
}

impl History {
    /// Whether the location is known with this size.
    pub(crate) fn knows(&self, at: Where, bytes: u64) -> bool {
        self.locations.get(&at).is_some_and(|l| l.bytes == bytes)
    }

    /// Begins to remember a location that is to be written, with the value that lies there now, if any.
    pub(crate) fn watch(&mut self, at: Where, bytes: u64, value: Option<u128>) {
        let before = value.map(|value| Write { value, by: None, scope: None, messages: Vec::new() });
        let writes = before.into_iter().collect();
        self.locations.insert(at, Location { bytes, writes, first: 0, readers: Vec::new() });
    }

    /// An access of another size: only what lies in memory counts from now on.
    pub(crate) fn forget_overlapping(&mut self, (memory, offset): Where, bytes: u64) {
        let from = offset.saturating_sub(15);
        for other in from..offset + bytes {
            let overlaps = |l: &Location| other + l.bytes > offset;
            if (other, bytes) != (offset, self.locations.get(&(memory, other)).map_or(0, |l| l.bytes))
                && self.locations.get(&(memory, other)).is_some_and(overlaps)
            {
                self.locations.remove(&(memory, other));
            }
        }
    }

    /// What was published with the location's last write.
    pub(crate) fn messages(&self, at: Where) -> &[Arc<Message>] {
        self.locations.get(&at).and_then(|l| l.writes.back()).map_or(&[], |w| &w.messages)
    }

    /// A write, the last in coherence order.
    pub(crate) fn write(
        &mut self,
        at: Where,
        value: u128,
        by: Doer,
        scope: Option<Scope>,
        messages: Vec<Arc<Message>>,
    ) {
        let Some(location) = self.locations.get_mut(&at) else { return };
        location.writes.push_back(Write { value, by: Some(by), scope, messages });
        if location.writes.len() > REMEMBERED {
            location.trim(1);
        }
    }

    /// Reads the newest value, or, with `random`, any that may be read.
    pub(crate) fn read(
        &mut self,
        at: Where,
        clocks: &Clocks,
        who: Who,
        (epoch, lane): Doer,
        random: Option<&mut Random>,
    ) -> Option<Found> {
        let location = self.locations.get_mut(&at)?;
        let last = location.first + (location.writes.len() as u64).checked_sub(1)?;
        let mut number = last;
        if let Some(random) = random {
            let oldest = location.oldest(clocks, who, lane);
            // The newest half of the time, so that polls end.
            if oldest < last && random.below(2) == 0 {
                number = oldest + random.below(last - oldest + 1);
            }
            location.note_reader(clocks, (epoch, lane), number, who);
        }
        let write = &location.writes[(number - location.first) as usize];
        let reaches = |scope: Scope| {
            let by = write.by.map(|(epoch, _)| clocks.moment(epoch).block);
            by.is_none_or(|by| clocks.reaches(scope, by, who.block))
        };
        let messages = if write.scope.is_some_and(reaches) { write.messages.clone() } else { Vec::new() };
        Some(Found { value: write.value, newest: number == last, messages })
    }

    pub(crate) fn clear(&mut self) {
        self.locations.clear();
    }

    /// Forgets what a memory held.
    pub(crate) fn forget(&mut self, memory: Memory) {
        self.locations.retain(|(m, _), _| *m != memory);
    }
}

impl Location {
    fn trim(&mut self, writes: usize) {
        self.writes.drain(..writes);
        self.first += writes as u64;
        let first = self.first;
        self.readers.retain(|(_, read)| *read > first);
    }

    /// The number of the oldest write that a lane may read.
    fn oldest(&self, clocks: &Clocks, who: Who, lane: usize) -> u64 {
        let known = |(epoch, by): Doer| clocks.knows(who, lane, clocks.moment(epoch), 1 << by);
        let written = self.writes.iter().rposition(|w| w.by.is_none_or(known)).unwrap_or(0);
        let read = self.readers.iter().filter(|(reader, _)| known(*reader)).map(|(_, read)| *read);
        read.max().unwrap_or(0).max(self.first + written as u64)
    }

    fn note_reader(&mut self, clocks: &Clocks, reader: Doer, number: u64, who: Who) {
        if number == self.first {
            return;
        }
        let mine = |&((epoch, lane), read): &(Doer, u64)| {
            let moment = clocks.moment(epoch);
            lane == reader.1 && (moment.block, moment.warp) == (who.block, who.warp) && read <= number
        };
        self.readers.retain(|old| !mine(old));
        self.readers.push((reader, number));
        if self.readers.len() > READERS {
            self.trim(self.writes.len() - 1);
        }
    }
}
