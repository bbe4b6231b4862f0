//! Asynchronous copies and mbarriers.
//!
//! A copy is two moments of its own, one that reads and one that writes: it happens after what its thread did before it,
//! and before nothing until somebody waits for it. Completion that is waited for is also in order with generic accesses
//! (PTX ISA, "Async proxy": completion of a bulk copy is followed by an implicit proxy fence); what comes before a bulk
//! copy takes a `fence.proxy.async`.

use rustc_hash::FxHashMap;

use super::knowledge::ThreadKnowledge;
use super::stamp::{AccessFlags, MemoryId, Path, Relation, Stamp};
use super::{Model, ModelAccess, Refusal, WarpId};
use crate::arithmetic::types::Ty;
use crate::fault::{AccessKind, Space};
use crate::isa::{MemoryAccess, MemoryOrder, Scope};
use crate::registers::{Bank, LANES};

/// Bytes of one memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    pub(crate) memory: MemoryId,
    /// Address of offset 0.
    pub(crate) base: u64,
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
    pub(crate) path: Path,
}

/// An asynchronous copy of a lane.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ModelCopy {
    pub(crate) lane: usize,
    /// Number of the instruction in its module.
    pub(crate) site: u32,
    pub(crate) bulk: bool,
    /// None where nothing is read.
    pub(crate) from: Option<Extent>,
    pub(crate) to: Extent,
    /// The mbarrier that is told, by its offset, and its phase.
    pub(crate) mbarrier: Option<(u64, u64)>,
}

/// The knowledge that completion publishes: that of having read, and that of everything.
#[derive(Clone, Debug, Default)]
struct Views {
    read: ThreadKnowledge,
    all: ThreadKnowledge,
}

/// Copies of a thread that belong to no group yet, and those of each group.
#[derive(Clone, Debug, Default)]
struct GroupViews {
    open: Views,
    made: Vec<Views>,
}

/// The knowledge that copies and arrivals publish to those who wait for them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asynchronous {
    /// By block, thread and whether they are bulk copies.
    groups: FxHashMap<(u32, u32, bool), GroupViews>,
    /// By block and offset of the mbarrier: phases and what was published in them.
    phases: FxHashMap<(u32, u64), Vec<(u64, ThreadKnowledge)>>,
}

impl Asynchronous {
    pub(crate) fn clear(&mut self) {
        *self = Asynchronous::default();
    }

    pub(crate) fn end_block(&mut self, block: u32) {
        self.groups.retain(|(other, ..), _| *other != block);
        self.phases.retain(|(other, _), _| *other != block);
    }

    fn publish(&mut self, block: u32, mbarrier: u64, phase: u64, view: &ThreadKnowledge) {
        let phases = self.phases.entry((block, mbarrier)).or_default();
        match phases.iter_mut().find(|(number, _)| *number == phase) {
            Some((_, known)) => known.join(view),
            None => phases.push((phase, view.clone())),
        }
    }
}

fn thread(who: WarpId, lane: usize) -> u32 {
    who.warp * LANES as u32 + lane as u32
}

impl Model {
    /// A lane begins a copy.
    pub(crate) fn copy(&mut self, who: WarpId, copy: &ModelCopy) -> Result<(), Refusal> {
        let mut views = Views::default();
        if let Some(from) = &copy.from {
            views.read = self.part_of_copy(who, copy, from, AccessKind::Load)?;
        }
        views.all = self.part_of_copy(who, copy, &copy.to, AccessKind::Store)?;
        views.all.join(&views.read);
        self.history.replaced(copy.to.memory, copy.to.offset, copy.to.bytes);
        match copy.mbarrier {
            Some((at, phase)) => self.asynchronous.publish(who.block, at, phase, &views.all),
            None => {
                let key = (who.block, thread(who, copy.lane), copy.bulk);
                let open = &mut self.asynchronous.groups.entry(key).or_default().open;
                open.read.join(&views.read);
                open.all.join(&views.all);
            }
        }
        Ok(())
    }

    /// Checks one side of a copy; returns the knowledge that its end publishes.
    fn part_of_copy(
        &mut self,
        who: WarpId,
        copy: &ModelCopy,
        part: &Extent,
        kind: AccessKind,
    ) -> Result<ThreadKnowledge, Refusal> {
        let (epoch, view) = self.clocks.asynchronous(who);
        if !self.check.races || part.bytes == 0 {
            return Ok(view);
        }
        let rw = if kind == AccessKind::Load { AccessFlags::READ } else { AccessFlags::WRITE };
        let size = if part.offset.is_multiple_of(4) && part.bytes.is_multiple_of(4) { 4 } else { 1 };
        let path = if copy.bulk { part.path.asynchronous() } else { part.path };
        let how = AccessFlags::new(rw, false, 0, size);
        let stamp = Stamp { epoch, lanes: 1 << copy.lane, site: copy.site, how, bytes: 0, path };
        let (clocks, settled) = (&self.clocks, self.clocks.settled());
        let mut relation = |old: &Stamp, new: &Stamp, _: u64| match old.epoch <= settled {
            true => Relation::Before,
            false => clocks.relation(who, old, new),
        };
        let mut cells = self.shadow.cells(part.memory);
        let noted = cells.access(part.offset, (part.bytes / size, size), stamp, &mut relation);
        if let Err((earlier, offset)) = noted {
            let ty = if size == 4 { Ty::U32 } else { Ty::U8 };
            let access = &MemoryAccess {
                space: Space::Generic,
                ty,
                count: 1,
                whole: true,
                order: MemoryOrder::Weak,
                scope: Scope::Cta,
                bank: Bank::B32,
            };
            let touch = ModelAccess {
                memory: part.memory,
                base: part.base,
                at: &[0; LANES],
                mask: 0,
                access,
                site: copy.site,
                path,
            };
            let race = self.race(who, copy.lane, &touch, kind, offset, &earlier);
            return Err(Refusal::Race(Box::new(race)));
        }
        Ok(view)
    }

    /// A lane makes a group of its copies so far.
    pub(crate) fn commit(&mut self, who: WarpId, lane: usize, bulk: bool) {
        let groups = self.asynchronous.groups.entry((who.block, thread(who, lane), bulk)).or_default();
        groups.made.push(std::mem::take(&mut groups.open));
    }

    /// The first `groups` groups of a lane are complete, or have been read.
    pub(crate) fn await_groups(&mut self, who: WarpId, lane: usize, bulk: bool, read: bool, groups: u64) {
        let key = (who.block, thread(who, lane), bulk);
        let Some(found) = self.asynchronous.groups.get_mut(&key) else { return };
        let mut known = ThreadKnowledge::default();
        for views in found.made.iter_mut().take(groups as usize) {
            known.join(&views.read);
            if !read {
                known.join(&views.all);
                *views = Views::default();
            }
        }
        self.clocks.acquire(who, lane, &known);
    }

    /// A lane arrives at an mbarrier in a phase; with `copies`, once its copies so far are complete.
    pub(crate) fn arrive_at(&mut self, who: WarpId, lane: usize, mbarrier: u64, phase: u64, copies: bool) {
        let mut view = ThreadKnowledge::default();
        if copies {
            if let Some(groups) = self.asynchronous.groups.get(&(who.block, thread(who, lane), false)) {
                view.join(&groups.open.all);
                groups.made.iter().for_each(|views| view.join(&views.all));
            }
        } else {
            for (_, published) in self.clocks.release(who, 1 << lane) {
                view.join(&published);
            }
        }
        self.asynchronous.publish(who.block, mbarrier, phase, &view);
    }

    /// A lane has seen that the mbarrier's phases before `phase` are over.
    pub(crate) fn await_phase(&mut self, who: WarpId, lane: usize, mbarrier: u64, phase: u64) {
        let Some(phases) = self.asynchronous.phases.get(&(who.block, mbarrier)) else { return };
        let mut known = ThreadKnowledge::default();
        phases.iter().filter(|(number, _)| *number < phase).for_each(|(_, view)| known.join(view));
        self.clocks.acquire(who, lane, &known);
    }
}
