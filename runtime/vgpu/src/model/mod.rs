//! The PTX memory model: which accesses race, and which values a read may return.
//!
//! `clock`: sets of moments; `clocks`: what every block, warp and lane knows, and how fences, barriers, releases and
//! acquires change it; `shadow`: who accessed what last; `history`: values that may still be read; `packets`: lines
//! that are written again only after they have been read; `report`: a finding in words.

mod asynchronous;
mod clocks;
mod history;
mod knowledge;
mod observer;
mod packets;
mod report;
mod shadow;
mod stamp;

use std::cell::Cell;
use std::sync::Arc;

use crate::fault::AccessKind;
use crate::fault::race::{Race, SlotReuse};
use crate::isa::{MemoryAccess, MemoryOrder, Scope};
use crate::memory::MemoryBytes;
use crate::observe::BlockInfo;
use crate::random::Random;
use crate::registers::Lanes;
use asynchronous::Asynchronous;
pub(crate) use asynchronous::{Extent, ModelCopy};
pub(crate) use clocks::WarpId;
use clocks::{Clocks, ReleaseMessage};
use history::{FoundValue, LocationHistory, LocationReader, Mark};
pub(crate) use knowledge::{LaunchId, Proxy, ThreadKnowledge};
pub use packets::PacketLayout;
use packets::Packets;
use rustc_hash::FxHashMap;
use shadow::Shadow;
use stamp::{AccessFlags, MemoryLocation, Relation, Stamp};
pub(crate) use stamp::{MemoryId, Path};

/// The checks of the memory model, beyond those of every run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelCheck {
    /// Two accesses to the same bytes, at least one a store, that nothing puts in order, are a fault unless they are
    /// strong and of one size, and their scopes include each other's thread.
    pub races: bool,
    /// The reads that may return values that have been replaced already.
    pub stale: Stale,
}

impl Default for ModelCheck {
    fn default() -> ModelCheck {
        ModelCheck { races: true, stale: Stale::default() }
    }
}

/// Reads that may return any value that nothing replaces in what their thread knows to have happened before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stale {
    /// None: every store is seen at once by all.
    Off,
    /// Relaxed, acquiring and volatile ones.
    #[default]
    Strong,
    /// Weak ones, too; for small programs, since every store is remembered.
    All,
}

/// The accesses of a warp's instruction to one memory.
pub(crate) struct ModelAccess<'t> {
    pub(crate) memory: MemoryId,
    /// Address of the memory's first byte.
    pub(crate) base: u64,
    pub(crate) at: &'t Lanes<u64>,
    pub(crate) mask: u32,
    pub(crate) access: &'t MemoryAccess,
    /// Number of the instruction in its module.
    pub(crate) site: u32,
    pub(crate) path: Path,
}

impl ModelAccess<'_> {
    fn strong(&self) -> bool {
        self.access.order != MemoryOrder::Weak
    }

    fn scope(&self) -> Scope {
        match self.access.order {
            MemoryOrder::Volatile | MemoryOrder::Mmio => Scope::Sys,
            _ => self.access.scope,
        }
    }

    fn acquires(&self) -> bool {
        matches!(self.access.order, MemoryOrder::Acquire | MemoryOrder::AcqRel)
    }

    fn releases(&self) -> bool {
        matches!(self.access.order, MemoryOrder::Release | MemoryOrder::AcqRel)
    }

    /// Bytes of an element: of what is accessed at once.
    fn size(&self) -> u64 {
        if self.access.whole { self.access.bytes() } else { self.access.ty.bytes() as u64 }
    }

    /// Elements of a lane.
    fn count(&self) -> u8 {
        if self.access.whole { 1 } else { self.access.count }
    }

    /// Lane, number and offset of every element.
    fn elements(&self) -> impl Iterator<Item = (usize, usize, u64)> {
        let (size, count, base, at) = (self.size(), self.count(), self.base, self.at);
        crate::registers::lanes(self.mask).flat_map(move |lane| {
            (0..usize::from(count)).map(move |e| (lane, e, at[lane] - base + e as u64 * size))
        })
    }

    /// The first lane and the one after the last, if those between access bytes one after another.
    fn lanes_of_run(&self) -> Option<(u32, u32)> {
        let (first, end) = (self.mask.trailing_zeros(), 32 - self.mask.leading_zeros());
        let begin = self.at[first as usize];
        let whole = self.mask.count_ones() == end - first;
        let next = |lane: u32| begin + u64::from(lane - first) * self.access.bytes();
        (whole && (first..end).all(|lane| self.at[lane as usize] == next(lane))).then_some((first, end))
    }

    /// The first byte of the lowest and the end of the highest.
    fn extent(&self) -> (u64, u64) {
        let offsets = crate::registers::lanes(self.mask).map(|lane| self.at[lane] - self.base);
        let (low, high) = offsets.fold((u64::MAX, 0), |(low, high), at| (low.min(at), high.max(at)));
        (low, high + self.access.bytes())
    }
}

/// An access that the model refuses.
#[derive(Clone, Debug)]
pub(crate) enum Refusal {
    Race(Box<Race>),
    SlotReuse(Box<SlotReuse>),
}

/// The state of the checks.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    check: ModelCheck,
    clocks: Clocks,
    shadow: Shadow,
    history: LocationHistory,
    packets: Packets,
    asynchronous: Asynchronous,
    random: Random,
    /// Chains of calls by number, from 1: the chain that a call was in, and the call's number in its module.
    chains: Vec<(u32, u32)>,
    chain_numbers: FxHashMap<(u32, u32), u32>,
    /// By number in the model: the machine's number less `first`.
    blocks: Vec<BlockInfo>,
    first: u32,
}

/// The messages that a lane's strong store publishes.
struct LaneMessages {
    lane: usize,
    fences: Vec<Arc<ReleaseMessage>>,
    /// By the store itself.
    own: Option<Arc<ReleaseMessage>>,
}

/// Bytes of the parts of a line that become visible together if one instruction stores them.
const PART: u64 = 16;

/// A value of a lane's element that a load returns instead of the one in memory.
pub(crate) type Override = (usize, usize, u128);

impl Model {
    pub(crate) fn new(check: ModelCheck, ranks: usize, seed: u64) -> Model {
        Model {
            check,
            clocks: Clocks::new(ranks),
            shadow: Shadow::default(),
            history: LocationHistory::default(),
            packets: Packets::default(),
            asynchronous: Asynchronous::default(),
            random: Random::new(seed ^ 0x6d65_6d6f_7279),
            chains: Vec::new(),
            chain_numbers: FxHashMap::default(),
            blocks: Vec::new(),
            first: 0,
        }
    }

    /// The host has waited for everything: what happened so far is known to all that follows.
    pub(crate) fn settle(&mut self) {
        if self.clocks.settle() {
            self.shadow.settle();
        } else {
            // The numbers of moments begin anew.
            self.clocks = Clocks::new(self.clocks.ranks());
            self.shadow = Shadow::default();
        }
        self.history.clear();
        self.packets.settle();
        self.asynchronous.clear();
        self.blocks.clear();
        self.chains.clear();
        self.chain_numbers.clear();
    }

    pub(crate) fn declare_packets(&mut self, memory: MemoryId, from: u64, bytes: u64, layout: PacketLayout) {
        self.packets.declare(memory, from, bytes, layout);
    }

    /// The host writes while kernels are under way: nobody reads what it replaces.
    pub(crate) fn host_writes(&mut self, memory: MemoryId, from: u64, bytes: u64) {
        self.history.replaced(memory, from, bytes);
    }

    pub(crate) fn forget(&mut self, memory: MemoryId) {
        self.shadow.forget(memory);
        self.history.forget(memory);
        self.packets.forget(memory);
    }

    /// A block begins; returns its number in the model.
    pub(crate) fn start_block(&mut self, block: &BlockInfo) -> u32 {
        self.blocks.push(block.clone());
        self.clocks.start_block(LaunchId::of(block), block.shape.warps())
    }

    pub(crate) fn end_block(&mut self, block: u32) {
        self.forget(MemoryId::Shared(block));
        self.asynchronous.end_block(block);
    }

    pub(crate) fn end_launch(&mut self, home: LaunchId) {
        self.clocks.end_launch(home);
    }

    /// Checks an access before it takes place. `bytes` is the memory as it is.
    pub(crate) fn before(
        &mut self,
        who: WarpId,
        kind: AccessKind,
        touch: &ModelAccess<'_>,
        bytes: &MemoryBytes,
    ) -> Result<(), Refusal> {
        let epoch = self.clocks.epoch(who);
        if self.check.races {
            let noted = self.note(who, epoch, kind, touch);
            noted.map_err(|(lane, offset, earlier)| {
                Refusal::Race(Box::new(self.race(who, lane, touch, kind, offset, &earlier)))
            })?;
        }
        if kind == AccessKind::Load {
            return Ok(());
        }
        if self.packets.any() {
            let mut stored_to: Vec<MemoryLocation> = Vec::new();
            let elements = touch.elements();
            let stores = elements.flat_map(|(lane, _, at)| parts(at, touch.size()).map(move |at| (lane, at)));
            for (lane, offset) in stores {
                let Some(unit) = self.packets.unit((touch.memory, offset)) else { continue };
                if stored_to.contains(&unit) {
                    continue;
                }
                stored_to.push(unit);
                let stored = self.packets.store(unit, &self.clocks, who, (epoch, lane), touch.site);
                if let Err(reused) = stored {
                    let reuse = self.slot_reuse(who, lane, touch, offset, &reused);
                    return Err(Refusal::SlotReuse(Box::new(reuse)));
                }
            }
        }
        if touch.strong() || self.check.stale == Stale::All {
            let size = touch.size();
            for (_, _, offset) in touch.elements() {
                let at = (touch.memory, offset);
                self.history.forget_overlapping(at, size);
                if !self.history.knows(at, size) {
                    let written = !bytes.any_unwritten(offset as usize, size as usize);
                    self.history.watch(at, size, written.then(|| value(bytes, offset, size)));
                    self.shadow.watch(touch.memory, offset);
                }
            }
        }
        Ok(())
    }

    /// Notes who accesses what, unless an element (its lane and offset) races with an earlier access.
    fn note(
        &mut self,
        who: WarpId,
        epoch: u32,
        kind: AccessKind,
        touch: &ModelAccess<'_>,
    ) -> Result<(), (usize, u64, Stamp)> {
        let rw = match kind {
            AccessKind::Load => AccessFlags::READ,
            AccessKind::Store => AccessFlags::WRITE,
            AccessKind::Atomic => AccessFlags::READ | AccessFlags::WRITE,
        };
        let (size, count) = (touch.size(), u64::from(touch.count()));
        let how = AccessFlags::new(rw, touch.strong(), touch.scope() as u16, size);
        let (clocks, history) = (&self.clocks, &self.history);
        let settled = clocks.settled();
        // All lanes know all of this moment: most neighbouring cells were touched in the same one.
        let known = Cell::new(0);
        let mut relation = |old: &Stamp, new: &Stamp, offset: u64| {
            if old.epoch <= settled {
                return Relation::Settled;
            }
            let same = old.epoch == known.get() || old.epoch == epoch && old.lanes == new.lanes;
            if same && old.path == new.path {
                return Relation::Before;
            }
            let relation = clocks.relation(who, old, new);
            let lane = new.lanes.trailing_zeros() as usize;
            let reader = LocationReader { who, epoch, lane, scope: None, floor: 0, path: new.path };
            let at = (touch.memory, offset);
            match relation {
                Relation::Race if history.precedes(at, size, old, new, clocks, reader) => Relation::Before,
                Relation::Race if history.meets(at, size, old, new, clocks, reader) => Relation::Apart,
                Relation::Before
                    if old.path == new.path
                        && old.epoch != epoch
                        && clocks.all_know(who, clocks.moment(old.epoch)) =>
                {
                    known.set(old.epoch);
                    relation
                }
                _ => relation,
            }
        };
        let mut cells = self.shadow.cells(touch.memory);
        let stamp = Stamp { epoch, lanes: 1, site: touch.site, how, bytes: 0, path: touch.path };
        // Most instructions access a run of words that were last accessed at one time.
        let aligned = |lane: u32| (touch.at[lane as usize] - touch.base).is_multiple_of(count * size);
        let lanes = touch.lanes_of_run().filter(|(first, _)| size >= 4 && !touch.strong() && aligned(*first));
        let mut run = lanes.map(|(first, end)| {
            let bytes = count * size;
            let offset = (touch.at[first as usize] - touch.base).wrapping_sub(u64::from(first) * bytes);
            shadow::LaneRun { offset, bytes, size, stamp, end, settled, known: 0 }
        });
        let mut rest = touch.mask;
        while rest != 0 {
            if let Some(run) = &mut run {
                run.known = known.get();
                let next = cells.run(run, rest.trailing_zeros());
                rest &= u32::MAX.checked_shl(next).unwrap_or(0);
                if rest == 0 {
                    break;
                }
            }
            let lane = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            let stamp = Stamp { lanes: 1 << lane, ..stamp };
            let noted = cells.access(touch.at[lane] - touch.base, (count, size), stamp, &mut relation);
            noted.map_err(|(earlier, offset)| (lane, offset, earlier))?;
        }
        Ok(())
    }

    /// A store has taken place.
    pub(crate) fn stored(&mut self, who: WarpId, touch: &ModelAccess<'_>, bytes: &MemoryBytes) {
        let strong = touch.strong();
        if !strong && self.check.stale != Stale::All {
            let (from, to) = touch.extent();
            if !self.shadow.watched(touch.memory, from, to - from) {
                return;
            }
        }
        let epoch = self.clocks.epoch(who);
        let size = touch.size();
        let messages = if strong { self.messages(who, touch) } else { Vec::new() };
        // Versions of the lines that this instruction stores parts of.
        let mut lines: Vec<(MemoryLocation, u64)> = Vec::new();
        for (lane, _, offset) in touch.elements() {
            let at = (touch.memory, offset);
            if !strong {
                self.history.forget_overlapping(at, size);
            }
            let mut version = 0;
            if self.packets.any()
                && touch.access.bytes() == PART
                && let Some(line) = self.packets.line(at)
            {
                version = match lines.iter().find(|(known, _)| *known == line) {
                    Some((_, version)) => *version,
                    None => {
                        let version = self.packets.store_line(line);
                        lines.push((line, version));
                        version
                    }
                };
            }
            let scope = strong.then(|| touch.scope());
            let mark = Mark { scope, atomic: false, version, path: touch.path };
            let own = self.published_at(who, touch, &messages, lane, at);
            self.history.write(at, value(bytes, offset, size), (epoch, lane), mark, own);
        }
    }

    /// The messages that a strong store of each lane publishes by fences before it and, if it releases, by itself.
    fn messages(&mut self, who: WarpId, touch: &ModelAccess<'_>) -> Vec<LaneMessages> {
        let scope = touch.scope();
        let lanes = crate::registers::lanes(touch.mask);
        let mut messages: Vec<LaneMessages> = lanes
            .map(|lane| LaneMessages { lane, fences: self.clocks.ready(who, lane), own: None })
            .collect();
        if touch.releases() {
            for (published, (_, view)) in messages.iter_mut().zip(self.clocks.release(who, touch.mask)) {
                published.own = Some(Arc::new(ReleaseMessage { view, scope, from: who.block }));
            }
        }
        messages
    }

    /// The messages that the strong store of a lane publishes at one location.
    fn published_at(
        &mut self,
        who: WarpId,
        touch: &ModelAccess<'_>,
        messages: &[LaneMessages],
        lane: usize,
        at: MemoryLocation,
    ) -> Vec<Arc<ReleaseMessage>> {
        let Some(LaneMessages { fences, own, .. }) = messages.iter().find(|m| m.lane == lane) else {
            return Vec::new();
        };
        let mut all: Vec<Arc<ReleaseMessage>> = fences.clone();
        match own {
            Some(own) => {
                self.history.released(at, who, lane, own);
                all.push(own.clone());
            }
            None if touch.strong() => all.extend(self.history.releases(at, who, lane).cloned()),
            None => {}
        }
        all
    }

    fn reader(&self, who: WarpId, epoch: u32, lane: usize, touch: &ModelAccess<'_>) -> LocationReader {
        let scope = touch.strong().then(|| touch.scope());
        LocationReader { who, epoch, lane, scope, floor: 0, path: touch.path }
    }

    /// A load has taken place; returns what lanes read instead of what lies in memory.
    pub(crate) fn loaded(&mut self, who: WarpId, touch: &ModelAccess<'_>) -> Vec<Override> {
        let strong = touch.strong();
        let mut instead = Vec::new();
        if !strong && self.check.stale != Stale::All {
            return instead;
        }
        let (from, to) = touch.extent();
        if !self.packets.any() && !self.shadow.watched(touch.memory, from, to - from) {
            // Nothing is remembered of these locations, and so no message has been seen there.
            return instead;
        }
        let epoch = self.clocks.epoch(who);
        let size = touch.size();
        for (lane, e, offset) in touch.elements() {
            let at = (touch.memory, offset);
            if touch.acquires() {
                self.clocks.take_seen(who, 1 << lane, touch.scope(), Some(at));
            }
            let mut found = None;
            let line = if self.packets.any() { self.packets.line(at) } else { None };
            if self.history.knows(at, size) {
                let mut reader = self.reader(who, epoch, lane, touch);
                if let Some(line) = line {
                    reader.floor = self.packets.floor(line, &self.clocks, who, lane);
                }
                let random = (self.check.stale != Stale::Off).then_some(&mut self.random);
                found = self.history.read(at, &self.clocks, reader, random);
            }
            let newest = found.as_ref().is_none_or(|found| found.newest);
            if newest && self.packets.any() {
                for offset in parts(offset, size) {
                    if let Some(unit) = self.packets.unit((touch.memory, offset)) {
                        self.packets.read(unit, &self.clocks, (epoch, lane));
                    }
                }
            }
            let Some(FoundValue { value, newest, version, messages }) = found else { continue };
            if let Some(line) = line {
                self.packets.read_line(line, (epoch, lane), version);
            }
            if !newest {
                instead.push((lane, e, value));
            }
            if strong {
                self.take(who, lane, touch, at, &messages);
            }
        }
        instead
    }

    /// A strong read of a lane saw a write with these messages.
    fn take(
        &mut self,
        who: WarpId,
        lane: usize,
        touch: &ModelAccess<'_>,
        at: MemoryLocation,
        messages: &[Arc<ReleaseMessage>],
    ) {
        let scope = touch.scope();
        for message in messages {
            let mutual = self.clocks.reaches(message.scope, message.from, who.block)
                && self.clocks.reaches(scope, who.block, message.from);
            if touch.acquires() && mutual {
                self.clocks.acquire(who, lane, &message.view);
            } else {
                self.clocks.see(who, lane, at, message);
            }
        }
    }

    /// A read-modify-write of one lane has taken place.
    pub(crate) fn modified(&mut self, who: WarpId, touch: &ModelAccess<'_>, bytes: &MemoryBytes) {
        let size = touch.size();
        let epoch = self.clocks.epoch(who);
        for (lane, _, offset) in touch.elements() {
            let at = (touch.memory, offset);
            let newest = self.history.read(at, &self.clocks, self.reader(who, epoch, lane, touch), None);
            let mut messages = newest.map(|found| found.messages).unwrap_or_default();
            if touch.acquires() {
                self.clocks.take_seen(who, 1 << lane, touch.scope(), Some(at));
            }
            self.take(who, lane, touch, at, &messages);
            // What it has seen goes with what it writes (PTX ISA, "Observation").
            let own = self.messages(who, touch);
            for new in self.published_at(who, touch, &own, lane, at) {
                messages.retain(|old| {
                    !(old.from == new.from && old.scope <= new.scope && covers(&new.view, &old.view))
                });
                messages.push(new);
            }
            let mark = Mark { scope: Some(touch.scope()), atomic: true, version: 0, path: touch.path };
            self.history.write(at, value(bytes, offset, size), (epoch, lane), mark, messages);
        }
    }

    pub(crate) fn fence(&mut self, who: WarpId, lanes: u32, order: MemoryOrder, scope: Scope) {
        let acquires = order != MemoryOrder::Release;
        if order == MemoryOrder::SeqCst {
            self.clocks.fence(who, lanes, scope, true, false);
            self.clocks.order_fence(who, lanes, scope);
        }
        self.clocks.fence(who, lanes, scope, acquires, order != MemoryOrder::Acquire);
    }

    pub(crate) fn fence_proxy(&mut self, who: WarpId, lanes: u32, proxy: Proxy) {
        self.clocks.fence_proxy(who, lanes, proxy);
    }

    pub(crate) fn meet(&mut self, who: WarpId, lanes: u32, live: u32) {
        self.clocks.meet(who, lanes, live);
    }

    pub(crate) fn arrive(&mut self, who: WarpId, barrier: u32, lanes: u32, waits: bool) {
        self.clocks.arrive(who, barrier, lanes, waits);
    }

    pub(crate) fn complete(&mut self, block: u32, barrier: u32, threads: u32) {
        self.clocks.complete(block, barrier, threads);
    }
}

/// Returns true if a view makes another one superfluous.
fn covers(wide: &ThreadKnowledge, narrow: &ThreadKnowledge) -> bool {
    let mut both = wide.clone();
    both.join(narrow);
    both == *wide
}

/// The offsets of the parts of an element that packet regions tell apart.
fn parts(offset: u64, size: u64) -> impl Iterator<Item = u64> {
    (offset..offset + size).step_by(packets::UNIT as usize)
}

/// The value of some bytes.
fn value(bytes: &MemoryBytes, offset: u64, size: u64) -> u128 {
    let mut raw = [0; 16];
    let size = size as usize;
    bytes.copy_to(offset as usize, &mut raw[..size]);
    u128::from_le_bytes(raw)
}
