//! Values of locations that strong accesses use, and which of them a read may return.
//!
//! A location keeps its last writes in coherence order, which is the order of execution. A read may return any write
//! that no later one replaces in what the reader knows to have happened before, and none older than one that it, or
//! anything that happened before it, has read (PTX ISA, "Causality" and "Coherence"). What releases publish goes with
//! the writes that read-modify-writes make of theirs (PTX ISA, "Observation"), and with later strong writes of their
//! own threads ("Release patterns").

use std::collections::VecDeque;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::clocks::{Clocks, ReleaseMessage, WarpId};
use super::stamp::{MemoryId, MemoryLocation, Path, Stamp};
use crate::isa::Scope;
use crate::random::Random;

/// Writes that a location remembers.
const REMEMBERED: usize = 8;
/// Readers that a location remembers; beyond it only the newest value can be read.
const READERS: usize = 64;

/// The lane that did something: number of the moment, and of the lane.
type Doer = (u32, usize);

/// A lane that reads a location.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LocationReader {
    pub(crate) who: WarpId,
    pub(crate) epoch: u32,
    pub(crate) lane: usize,
    /// Of a strong read.
    pub(crate) scope: Option<Scope>,
    /// The version of its line (see [`Mark::version`]) that it may not fall behind.
    pub(crate) floor: u64,
    pub(crate) path: Path,
}

impl LocationReader {
    fn doer(&self) -> Doer {
        (self.epoch, self.lane)
    }
}

/// How a value was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    /// Of a strong write.
    pub(crate) scope: Option<Scope>,
    /// By a read-modify-write.
    pub(crate) atomic: bool,
    /// The version of a line whose parts become visible together, 0 elsewhere.
    pub(crate) version: u64,
    pub(crate) path: Path,
}

#[derive(Clone, Debug)]
struct RecordedWrite {
    value: u128,
    /// Nobody: what lay there before.
    by: Option<Doer>,
    mark: Mark,
    messages: Vec<Arc<ReleaseMessage>>,
}

#[derive(Clone, Debug)]
struct RecordedRead {
    by: Doer,
    number: u64,
    /// It and the write are morally strong.
    observed: bool,
    path: Path,
}

/// A releasing operation on a location: what it published goes with later strong writes of its thread, too.
#[derive(Clone, Debug)]
struct RecordedRelease {
    thread: (u32, u32, usize),
    message: Arc<ReleaseMessage>,
}

#[derive(Clone, Debug)]
struct TrackedLocation {
    bytes: u64,
    writes: VecDeque<RecordedWrite>,
    /// Number of the first of `writes`.
    first: u64,
    readers: Vec<RecordedRead>,
    releases: Vec<RecordedRelease>,
}

/// The result of a read.
#[derive(Clone, Debug)]
pub(crate) struct FoundValue {
    pub(crate) value: u128,
    /// It is the last one written.
    pub(crate) newest: bool,
    pub(crate) version: u64,
    /// The messages published with it; none unless the read and the write are morally strong.
    pub(crate) messages: Vec<Arc<ReleaseMessage>>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct LocationHistory {
    locations: FxHashMap<MemoryLocation, TrackedLocation>,
    /// The sizes of all of them: powers of two, added.
    sizes: u64,
}

impl LocationHistory {
    /// Returns true if the location is known with this size.
    pub(crate) fn knows(&self, at: MemoryLocation, bytes: u64) -> bool {
        self.locations.get(&at).is_some_and(|l| l.bytes == bytes)
    }

    /// Begins to remember a location that is to be written, with the value that lies there now, if any.
    pub(crate) fn watch(&mut self, at: MemoryLocation, bytes: u64, value: Option<u128>) {
        let mark = Mark { scope: None, atomic: false, version: 0, path: Path::OWN };
        let before = value.map(|value| RecordedWrite { value, by: None, mark, messages: Vec::new() });
        let writes = before.into_iter().collect();
        let location = TrackedLocation { bytes, writes, first: 0, readers: Vec::new(), releases: Vec::new() };
        self.sizes |= bytes;
        self.locations.insert(at, location);
    }

    /// A write of another size: only what lies in memory counts from now on. Elements are aligned to their sizes.
    pub(crate) fn forget_overlapping(&mut self, (memory, offset): MemoryLocation, bytes: u64) {
        let mut others = self.sizes & !bytes;
        while others != 0 {
            let size = 1 << others.trailing_zeros();
            others &= others - 1;
            for at in (offset / size * size..offset + bytes).step_by(size as usize) {
                if self.knows((memory, at), size) {
                    self.locations.remove(&(memory, at));
                }
            }
        }
    }

    /// A write, the last in coherence order, with what it publishes itself.
    pub(crate) fn write(
        &mut self,
        at: MemoryLocation,
        value: u128,
        by: Doer,
        mark: Mark,
        messages: Vec<Arc<ReleaseMessage>>,
    ) {
        let Some(location) = self.locations.get_mut(&at) else { return };
        location.writes.push_back(RecordedWrite { value, by: Some(by), mark, messages });
        if location.writes.len() > REMEMBERED {
            location.trim(1);
        }
    }

    /// A releasing operation of a lane on the location has published a message.
    pub(crate) fn released(
        &mut self,
        at: MemoryLocation,
        who: WarpId,
        lane: usize,
        message: &Arc<ReleaseMessage>,
    ) {
        let Some(location) = self.locations.get_mut(&at) else { return };
        let thread = (who.block, who.warp, lane);
        // A later one publishes all that an earlier one did.
        location.releases.retain(|old| old.thread != thread || old.message.scope > message.scope);
        location.releases.push(RecordedRelease { thread, message: message.clone() });
    }

    /// The messages that earlier releasing operations of a lane on the location have published.
    pub(crate) fn releases(
        &self,
        at: MemoryLocation,
        who: WarpId,
        lane: usize,
    ) -> impl Iterator<Item = &Arc<ReleaseMessage>> {
        let releases = self.locations.get(&at).map_or(&[][..], |l| &l.releases);
        let thread = (who.block, who.warp, lane);
        releases.iter().filter(move |r| r.thread == thread).map(|r| &r.message)
    }

    /// Returns true if an earlier strong write that a new access does not know came before it all the same, since strong
    /// reads that the new one knows have seen it (PTX ISA, "Causality order").
    #[cold]
    pub(crate) fn precedes(
        &self,
        at: MemoryLocation,
        bytes: u64,
        old: &Stamp,
        new: &Stamp,
        clocks: &Clocks,
        reader: LocationReader,
    ) -> bool {
        let moment = clocks.moment(old.epoch);
        old.how.writes()
            && old.how.strong()
            && old.path == new.path
            && crate::registers::lanes(old.lanes).all(|by| {
                clocks.knows(reader.who, reader.lane, moment, 1 << by)
                    || self.observed(at, bytes, (old.epoch, by), clocks, reader)
            })
    }

    /// Returns true if an earlier strong write and a new strong access, one of them by a multicast range and the other by
    /// the location's own address, need no order: strong reads that the new access knows have seen the write, or it is no
    /// longer remembered.
    #[cold]
    pub(crate) fn meets(
        &self,
        at: MemoryLocation,
        bytes: u64,
        old: &Stamp,
        new: &Stamp,
        clocks: &Clocks,
        reader: LocationReader,
    ) -> bool {
        let forgotten = |by: Doer| {
            let location = self.locations.get(&at).filter(|l| l.bytes == bytes);
            location.is_some_and(|l| l.writes.iter().all(|w| w.by != Some(by)))
        };
        old.how.writes()
            && clocks.morally_strong(reader.who, old, new)
            && crate::registers::lanes(old.lanes).all(|lane| {
                let by = (old.epoch, lane);
                forgotten(by) || self.observed(at, bytes, by, clocks, reader)
            })
    }

    /// Returns true if a lane knows of a strong read that has seen a write, directly or through atomics.
    fn observed(
        &self,
        at: MemoryLocation,
        bytes: u64,
        by: Doer,
        clocks: &Clocks,
        reader: LocationReader,
    ) -> bool {
        let Some(location) = self.locations.get(&at).filter(|l| l.bytes == bytes) else { return false };
        let Some(at) = location.writes.iter().rposition(|w| w.by == Some(by)) else { return false };
        let through = location.writes.iter().skip(at + 1).take_while(|w| w.mark.atomic).count();
        let numbers = location.first + at as u64..=location.first + (at + through) as u64;
        let known =
            |(epoch, lane): Doer| clocks.knows(reader.who, reader.lane, clocks.moment(epoch), 1 << lane);
        location.readers.iter().any(|r| r.observed && numbers.contains(&r.number) && known(r.by))
    }

    /// Reads the newest value, or, with `random`, any that may be read.
    pub(crate) fn read(
        &mut self,
        at: MemoryLocation,
        clocks: &Clocks,
        reader: LocationReader,
        random: Option<&mut Random>,
    ) -> Option<FoundValue> {
        let location = self.locations.get_mut(&at)?;
        let last = location.first + (location.writes.len() as u64).checked_sub(1)?;
        let mut number = last;
        if let Some(random) = random {
            let oldest = location.oldest(clocks, reader);
            // The newest half of the time, so that polls end.
            if oldest < last && random.below(2) == 0 {
                number = oldest + random.below(last - oldest + 1);
            }
        }
        let write = &location.writes[(number - location.first) as usize];
        let mutual = |scope: Scope, own: Scope| {
            let by = write.by.map(|(epoch, _)| clocks.moment(epoch).block);
            by.is_none_or(|by| {
                clocks.reaches(scope, by, reader.who.block) && clocks.reaches(own, reader.who.block, by)
            })
        };
        let observed = write.mark.scope.zip(reader.scope).is_some_and(|(scope, own)| mutual(scope, own));
        let messages = if observed { write.messages.clone() } else { Vec::new() };
        let found =
            FoundValue { value: write.value, newest: number == last, version: write.mark.version, messages };
        location.note_reader(clocks, reader, number, observed);
        Some(found)
    }

    pub(crate) fn clear(&mut self) {
        self.locations.clear();
        self.sizes = 0;
    }

    /// The host has written these bytes.
    pub(crate) fn replaced(&mut self, memory: MemoryId, from: u64, bytes: u64) {
        let apart = |at: u64, l: &TrackedLocation| at + l.bytes <= from || from + bytes <= at;
        self.locations.retain(|(m, at), l| *m != memory || apart(*at, l));
    }

    /// Forgets what a memory held.
    pub(crate) fn forget(&mut self, memory: MemoryId) {
        self.locations.retain(|(m, _), _| *m != memory);
    }
}

impl TrackedLocation {
    fn trim(&mut self, writes: usize) {
        self.writes.drain(..writes);
        self.first += writes as u64;
        let first = self.first;
        self.readers.retain(|read| read.number >= first);
    }

    /// The number of the oldest write that a lane may read.
    fn oldest(&self, clocks: &Clocks, reader: LocationReader) -> u64 {
        let before = |(epoch, by): Doer, path: Path| {
            clocks.precedes(reader.who, reader.lane, (clocks.moment(epoch), 1 << by), path, reader.path)
        };
        let bound = |w: &RecordedWrite| {
            w.by.is_none_or(|by| before(by, w.mark.path))
                || w.mark.version != 0 && w.mark.version <= reader.floor
        };
        let written = self.writes.iter().rposition(bound).unwrap_or(0);
        let read = self.readers.iter().filter(|read| before(read.by, read.path)).map(|read| read.number);
        read.max().unwrap_or(0).max(self.first + written as u64)
    }

    fn note_reader(&mut self, clocks: &Clocks, reader: LocationReader, number: u64, observed: bool) {
        // Of what was written by nobody, and read by all, nothing has to be remembered.
        if number == self.first && self.writes[0].by.is_none() {
            return;
        }
        let mine = |old: &RecordedRead| {
            let moment = clocks.moment(old.by.0);
            old.by.1 == reader.lane
                && old.path == reader.path
                && (moment.block, moment.warp) == (reader.who.block, reader.who.warp)
                && (old.number < number || old.number == number && old.observed <= observed)
        };
        // The first read of a value stays: others may know of it, and not of later ones.
        if self.readers.iter().any(|old| mine(old) && old.number == number && old.observed == observed) {
            return;
        }
        self.readers.retain(|old| !mine(old));
        self.readers.push(RecordedRead { by: reader.doer(), number, observed, path: reader.path });
        if self.readers.len() > READERS {
            self.trim(self.writes.len() - 1);
            // The newest is all that can be read now.
            let excess = self.readers.len().saturating_sub(READERS);
            self.readers.drain(..excess);
        }
    }
}
