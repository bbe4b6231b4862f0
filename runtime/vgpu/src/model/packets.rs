//! Packet regions: memory whose lines carry data and flag together, so that a line is written again only after its
//! reader has read it. All these accesses are strong, hence no race detector sees a line that is overwritten early.

use rustc_hash::FxHashMap;

use super::clocks::{Clocks, Who};
use super::history::Where;
use super::shadow::Memory;

/// How a packet region is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Layout {
    /// Packets of 8 bytes, half data and half flag, each stored at once.
    Ll,
    /// Lines of 128 bytes, 120 of data and 8 of flag. 16-byte stores of one instruction of a warp to a line become
    /// visible together.
    Ll128,
}

impl Layout {
    /// Bytes that are written and read as one.
    fn unit(self) -> u64 {
        match self {
            Layout::Ll => 8,
            Layout::Ll128 => 16,
        }
    }
}

#[derive(Clone, Debug)]
struct Region {
    memory: Memory,
    from: u64,
    to: u64,
    layout: Layout,
}

/// The last content of a unit: who wrote it, and who has read it since.
#[derive(Clone, Debug)]
struct Unit {
    by: (u32, usize),
    site: u32,
    readers: Vec<(u32, usize)>,
}

/// Why a store to a unit is refused: the earlier store, and a reader if there is one that is not known to be done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reused {
    pub(crate) by: (u32, usize),
    pub(crate) site: u32,
    pub(crate) reader: Option<(u32, usize)>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Packets {
    regions: Vec<Region>,
    units: FxHashMap<Where, Unit>,
}

impl Packets {
    pub(crate) fn declare(&mut self, memory: Memory, from: u64, bytes: u64, layout: Layout) {
        self.regions.push(Region { memory, from, to: from + bytes, layout });
    }

    pub(crate) fn any(&self) -> bool {
        !self.regions.is_empty()
    }

    /// The unit that a byte belongs to, and its layout.
    pub(crate) fn unit(&self, (memory, offset): Where) -> Option<(Where, Layout)> {
        let region = self.regions.iter().find(|r| r.memory == memory && (r.from..r.to).contains(&offset))?;
        let within = (offset - region.from) / region.layout.unit() * region.layout.unit();
        Some(((memory, region.from + within), region.layout))
    }

    /// A store of a lane to a unit.
    pub(crate) fn store(
        &mut self,
        unit: Where,
        clocks: &Clocks,
        who: Who,
        (epoch, lane): (u32, usize),
        site: u32,
    ) -> Result<(), Reused> {
        if let Some(last) = self.units.get(&unit)
            // Further parts of one store.
            && (last.by != (epoch, lane) || last.site != site || !last.readers.is_empty())
        {
            let done = |&&(epoch, reader): &&(u32, usize)| {
                !clocks.knows(who, lane, clocks.moment(epoch), 1 << reader)
            };
            let reader = last.readers.iter().find(done).copied();
            if last.readers.is_empty() || reader.is_some() {
                return Err(Reused { by: last.by, site: last.site, reader });
            }
        }
        self.units.insert(unit, Unit { by: (epoch, lane), site, readers: Vec::new() });
        Ok(())
    }

    /// A load of a lane returned the unit's last content.
    pub(crate) fn read(&mut self, unit: Where, reader: (u32, usize)) {
        if let Some(unit) = self.units.get_mut(&unit)
            && !unit.readers.contains(&reader)
        {
            unit.readers.push(reader);
        }
    }

    /// All that has happened so far is over: the regions stay, and what they hold may be overwritten.
    pub(crate) fn settle(&mut self) {
        self.units.clear();
    }

    pub(crate) fn forget(&mut self, memory: Memory) {
        self.regions.retain(|r| r.memory != memory);
        self.units.retain(|(m, _), _| *m != memory);
    }
}
