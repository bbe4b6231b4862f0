//! Packet regions: memory whose lines carry data and flag together, so that a line is written again only after its
//! reader has read it. All these accesses are strong, hence no race detector sees a line that is overwritten early.

use rustc_hash::FxHashMap;

use super::clocks::{Clocks, WarpId};
use super::stamp::{MemoryId, MemoryLocation};

/// The layout of a packet region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PacketLayout {
    /// Packets of 8 bytes, half data and half flag, each stored at once.
    Ll,
    /// Lines of 128 bytes, 120 of data and 8 of flag. 16-byte stores of one instruction of a warp to a line become
    /// visible together.
    Ll128,
}

/// Bytes that are written and read as one.
pub(super) const UNIT: u64 = 8;

#[derive(Clone, Debug)]
struct Region {
    memory: MemoryId,
    from: u64,
    to: u64,
    layout: PacketLayout,
}

/// The last content of a unit: who wrote it, and who has read it since.
#[derive(Clone, Debug)]
struct PacketUnit {
    by: (u32, usize),
    site: u32,
    readers: Vec<(u32, usize)>,
}

/// Why a store to a unit is refused: the earlier store, and the first reader if there is one (of whom it knows
/// nothing).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reused {
    pub(crate) by: (u32, usize),
    pub(crate) site: u32,
    pub(crate) reader: Option<(u32, usize)>,
}

/// Bytes of a line whose parts become visible together.
const LINE: u64 = 128;
/// Readers that a line remembers; beyond it only the newest parts can be read.
const READERS: usize = 64;

/// A line of 128 bytes: how many instructions have stored to it, and who has read what which of them stored.
#[derive(Clone, Debug, Default)]
struct PacketLine {
    version: u64,
    readers: Vec<((u32, usize), u64)>,
    /// The version that nobody may fall behind.
    floor: u64,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Packets {
    regions: Vec<Region>,
    units: FxHashMap<MemoryLocation, PacketUnit>,
    lines: FxHashMap<MemoryLocation, PacketLine>,
}

impl Packets {
    pub(crate) fn declare(&mut self, memory: MemoryId, from: u64, bytes: u64, layout: PacketLayout) {
        self.regions.push(Region { memory, from, to: from + bytes, layout });
    }

    pub(crate) fn any(&self) -> bool {
        !self.regions.is_empty()
    }

    /// The unit that a byte belongs to.
    pub(crate) fn unit(&self, (memory, offset): MemoryLocation) -> Option<MemoryLocation> {
        let region = self.regions.iter().find(|r| r.memory == memory && (r.from..r.to).contains(&offset))?;
        let within = (offset - region.from) / UNIT * UNIT;
        Some((memory, region.from + within))
    }

    /// The line that a byte belongs to, where lines become visible as a whole.
    pub(crate) fn line(&self, (memory, offset): MemoryLocation) -> Option<MemoryLocation> {
        let region = self.regions.iter().find(|r| r.memory == memory && (r.from..r.to).contains(&offset))?;
        let within = (offset - region.from) / LINE * LINE;
        (region.layout == PacketLayout::Ll128).then_some((memory, region.from + within))
    }

    /// An instruction stores 16-byte parts to a line; returns the line's new version.
    pub(crate) fn store_line(&mut self, line: MemoryLocation) -> u64 {
        let line = self.lines.entry(line).or_default();
        line.version += 1;
        line.version
    }

    /// The version of a line behind which a lane may not fall: what its warp, or anyone of whom it knows, has read.
    pub(crate) fn floor(&self, line: MemoryLocation, clocks: &Clocks, who: WarpId, lane: usize) -> u64 {
        let Some(line) = self.lines.get(&line) else { return 0 };
        let bound = |(epoch, reader): (u32, usize)| {
            let moment = clocks.moment(epoch);
            (moment.block, moment.warp) == (who.block, who.warp)
                || clocks.knows(who, lane, moment, 1 << reader)
        };
        let read = line.readers.iter().filter(|(reader, _)| bound(*reader)).map(|(_, version)| *version);
        read.max().unwrap_or(0).max(line.floor)
    }

    /// A lane has read a part of a line that came with a version.
    pub(crate) fn read_line(&mut self, line: MemoryLocation, reader: (u32, usize), version: u64) {
        let Some(line) = self.lines.get_mut(&line) else { return };
        if version <= line.floor || line.readers.contains(&(reader, version)) {
            return;
        }
        line.readers.push((reader, version));
        if line.readers.len() > READERS {
            line.readers.clear();
            line.floor = line.version;
        }
    }

    /// A store of a lane to a unit, once an instruction: all that it stores there comes at once.
    pub(crate) fn store(
        &mut self,
        unit: MemoryLocation,
        clocks: &Clocks,
        who: WarpId,
        (epoch, lane): (u32, usize),
        site: u32,
    ) -> Result<(), Reused> {
        if let Some(last) = self.units.get(&unit) {
            let known = |&&(epoch, reader): &&(u32, usize)| {
                clocks.knows(who, lane, clocks.moment(epoch), 1 << reader)
            };
            // Who polls for the next content reads the last one again and again: one known read is enough.
            if !last.readers.iter().any(|reader| known(&reader)) {
                return Err(Reused { by: last.by, site: last.site, reader: last.readers.first().copied() });
            }
        }
        self.units.insert(unit, PacketUnit { by: (epoch, lane), site, readers: Vec::new() });
        Ok(())
    }

    /// A load of a lane returned the unit's last content. Of each thread the first such read is remembered.
    pub(crate) fn read(&mut self, unit: MemoryLocation, clocks: &Clocks, reader: (u32, usize)) {
        let Some(unit) = self.units.get_mut(&unit) else { return };
        let thread = |(epoch, lane): (u32, usize)| {
            let moment = clocks.moment(epoch);
            (moment.block, moment.warp, lane)
        };
        if !unit.readers.iter().any(|old| thread(*old) == thread(reader)) {
            unit.readers.push(reader);
        }
    }

    /// All that has happened so far is over: the regions stay, and what they hold may be overwritten.
    pub(crate) fn settle(&mut self) {
        self.units.clear();
        self.lines.clear();
    }

    pub(crate) fn forget(&mut self, memory: MemoryId) {
        self.regions.retain(|r| r.memory != memory);
        self.units.retain(|(m, _), _| *m != memory);
        self.lines.retain(|(m, _), _| *m != memory);
    }
}
