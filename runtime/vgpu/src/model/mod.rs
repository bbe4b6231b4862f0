//! The PTX memory model: which accesses race, and which values a read may return.
//!
//! `clock`: sets of moments; `clocks`: what every block, warp and lane knows, and how fences, barriers, releases and
//! acquires change it; `shadow`: who accessed what last; `history`: values that may still be read; `packets`: lines
//! that are written again only after they have been read; `report`: a finding in words.

mod clock;
mod clocks;
mod history;
mod observer;
mod packets;
mod report;
mod shadow;

use std::sync::Arc;

use crate::isa::{Access, Order, Scope};
use crate::memory::Bytes;
use crate::module::Module;
use crate::random::Random;
use crate::regs::Lanes;
pub(crate) use clock::{Home, Proxy, View};
pub(crate) use clocks::Who;
use clocks::{Clocks, Message};
use history::{Found, History};
pub use packets::Layout;
use packets::Packets;
pub use report::{Party, Race, RaceReason, SlotReuse};
use shadow::{How, Relation, Shadow, Stamp};
pub(crate) use shadow::{Memory, Path};

/// What the machine checks of the memory model, beyond what every run checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Check {
    /// Two accesses to the same bytes, at least one a store, that nothing puts in order, are a fault unless they are
    /// strong and of one size, and their scopes include each other's thread.
    pub races: bool,
    /// Which reads may return values that have been replaced already.
    pub stale: Stale,
}

impl Default for Check {
    fn default() -> Check {
        Check { races: true, stale: Stale::default() }
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

/// A block of which the clocks speak, for reports.
#[derive(Clone, Debug)]
struct Info {
    module: Arc<Module>,
    kernel: Arc<str>,
    shape: crate::block::Shape,
}

/// The accesses of a warp's instruction to one memory.
pub(crate) struct Touch<'t> {
    pub(crate) memory: Memory,
    /// Address of the memory's first byte.
    pub(crate) base: u64,
    pub(crate) at: &'t Lanes<u64>,
    pub(crate) mask: u32,
    pub(crate) access: &'t Access,
    /// Number of the instruction in its module.
    pub(crate) site: u32,
    pub(crate) path: Path,
}

/// What an access does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Load,
    Store,
    Atomic,
}

impl Touch<'_> {
    fn strong(&self) -> bool {
        self.access.order != Order::Weak
    }

    fn scope(&self) -> Scope {
        match self.access.order {
            Order::Volatile | Order::Mmio => Scope::Sys,
            _ => self.access.scope,
        }
    }

    fn acquires(&self) -> bool {
        matches!(self.access.order, Order::Acquire | Order::AcqRel)
    }

    fn releases(&self) -> bool {
        matches!(self.access.order, Order::Release | Order::AcqRel)
    }

    /// Bytes of an element.
    fn size(&self) -> u64 {
        self.access.ty.bytes() as u64
    }

    /// Lane, number and offset of every element.
    fn elements(&self) -> impl Iterator<Item = (usize, usize, u64)> {
        let (size, count, base, at) = (self.size(), self.access.count, self.base, self.at);
        crate::access::lanes(self.mask).flat_map(move |lane| {
            (0..usize::from(count)).map(move |e| (lane, e, at[lane] - base + e as u64 * size))
        })
    }

    /// The first byte of the lowest and the end of the highest.
    fn extent(&self) -> (u64, u64) {
        let offsets = crate::access::lanes(self.mask).map(|lane| self.at[lane] - self.base);
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
    check: Check,
    ranks: usize,
    clocks: Clocks,
    shadow: Shadow,
    history: History,
    packets: Packets,
    random: Random,
    /// By number in the model: the machine's number less `first`.
    blocks: Vec<Info>,
    first: u32,
}

/// A value of a lane's element that a load returns instead of the one in memory.
pub(crate) type Override = (usize, usize, u64);

impl Model {
    pub(crate) fn new(check: Check, ranks: usize, seed: u64) -> Model {
        Model {
            check,
            ranks,
            clocks: Clocks::new(ranks),
            shadow: Shadow::default(),
            history: History::default(),
            packets: Packets::default(),
            random: Random::new(seed ^ 0x6d65_6d6f_7279),
            blocks: Vec::new(),
            first: 0,
        }
    }

    /// The host has waited for everything: what happened so far is known to all that follows.
    pub(crate) fn settle(&mut self) {
        self.clocks = Clocks::new(self.ranks);
        self.shadow.clear();
        self.history.clear();
        self.packets.settle();
        self.blocks.clear();
    }

    pub(crate) fn declare_packets(&mut self, memory: Memory, from: u64, bytes: u64, layout: Layout) {
        self.packets.declare(memory, from, bytes, layout);
    }

    pub(crate) fn forget(&mut self, memory: Memory) {
        self.shadow.forget(memory);
        self.history.forget(memory);
        self.packets.forget(memory);
    }

    /// A block begins; returns its number in the model.
    pub(crate) fn start_block(
        &mut self,
        home: Home,
        module: &Arc<Module>,
        kernel: &Arc<str>,
        shape: crate::block::Shape,
    ) -> u32 {
        self.blocks.push(Info { module: module.clone(), kernel: kernel.clone(), shape });
        self.clocks.start_block(home, shape.warps())
    }

    pub(crate) fn end_block(&mut self, block: u32) {
        self.forget(Memory::Shared(block));
    }

    pub(crate) fn end_launch(&mut self, home: Home) {
        self.clocks.end_launch(home);
    }

    /// Checks an access before it takes place. `bytes` is the memory as it is.
    pub(crate) fn before(
        &mut self,
        who: Who,
        kind: Kind,
        touch: &Touch<'_>,
        bytes: &Bytes,
    ) -> Result<(), Refusal> {
        let epoch = self.clocks.epoch(who);
        let rw = match kind {
            Kind::Load => How::READ,
            Kind::Store => How::WRITE,
            Kind::Atomic => How::READ | How::WRITE,
        };
        let size = touch.size();
        let how = How::new(rw, touch.strong(), touch.scope() as u16, size);
        let clocks = &self.clocks;
        // All lanes know all of this moment: most neighbouring cells were touched in the same one.
        let mut known = 0;
        let mut relation = |old: &Stamp, new: &Stamp| {
            if old.path == new.path && (old.epoch == known || old.epoch == epoch && old.lanes == new.lanes) {
                return Relation::Before;
            }
            let relation = clocks.relation(who, old, new);
            if relation == Relation::Before
                && old.path == new.path
                && old.epoch != epoch
                && clocks.all_know(who, clocks.moment(old.epoch))
            {
                known = old.epoch;
            }
            relation
        };
        for (lane, _, offset) in touch.elements() {
            let stamp = Stamp { epoch, lanes: 1 << lane, site: touch.site, how, bytes: 0, path: touch.path };
            let noted = self.shadow.access(touch.memory, offset, size, stamp, &mut relation);
            if let Err(earlier) = noted
                && self.check.races
            {
                let race = self.race(who, lane, touch, kind, offset, &earlier);
                return Err(Refusal::Race(Box::new(race)));
            }
        }
        if kind == Kind::Load {
            return Ok(());
        }
        if self.packets.any() {
            for (lane, _, offset) in touch.elements() {
                let Some((unit, _)) = self.packets.unit((touch.memory, offset)) else { continue };
                let stored = self.packets.store(unit, &self.clocks, who, (epoch, lane), touch.site);
                if let Err(reused) = stored {
                    let reuse = self.slot_reuse(who, lane, touch, offset, &reused);
                    return Err(Refusal::SlotReuse(Box::new(reuse)));
                }
            }
        }
        if touch.strong() || self.check.stale == Stale::All {
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

    /// A store has taken place.
    pub(crate) fn stored(&mut self, who: Who, touch: &Touch<'_>, bytes: &Bytes) {
        let strong = touch.strong();
        if !strong && self.check.stale != Stale::All {
            let (from, to) = touch.extent();
            if !self.shadow.watched(touch.memory, from, to - from) {
                return;
            }
        }
        let epoch = self.clocks.epoch(who);
        let size = touch.size();
        let mut messages = if strong { self.messages(who, touch) } else { Vec::new() };
        for (lane, _, offset) in touch.elements() {
            let at = (touch.memory, offset);
            if !strong {
                self.history.forget_overlapping(at, size);
            }
            let own = messages.iter_mut().find(|(l, _)| *l == lane).map(|(_, m)| m.clone());
            let scope = strong.then(|| touch.scope());
            let value = value(bytes, offset, size);
            self.history.write(at, value, (epoch, lane), scope, own.unwrap_or_default());
        }
    }

    /// What a strong store of each lane publishes.
    fn messages(&mut self, who: Who, touch: &Touch<'_>) -> Vec<(usize, Vec<Arc<Message>>)> {
        let scope = touch.scope();
        let ready =
            |clocks: &Clocks, lane| clocks.ready(who, lane, scope).into_iter().map(Arc::new).collect();
        let mut messages: Vec<(usize, Vec<Arc<Message>>)> =
            crate::access::lanes(touch.mask).map(|lane| (lane, ready(&self.clocks, lane))).collect();
        if touch.releases() {
            for ((_, list), (_, view)) in messages.iter_mut().zip(self.clocks.release(who, touch.mask)) {
                list.push(Arc::new(Message { view, scope, from: who.block }));
            }
        }
        messages
    }

    /// A load has taken place; returns what lanes read instead of what lies in memory.
    pub(crate) fn loaded(&mut self, who: Who, touch: &Touch<'_>) -> Vec<Override> {
        let strong = touch.strong();
        let mut instead = Vec::new();
        if !strong && self.check.stale != Stale::All {
            return instead;
        }
        let epoch = self.clocks.epoch(who);
        let size = touch.size();
        for (lane, e, offset) in touch.elements() {
            let at = (touch.memory, offset);
            if self.shadow.watched(touch.memory, offset, size) {
                self.history.forget_overlapping(at, size);
            }
            let known = self.history.knows(at, size);
            let random = (self.check.stale != Stale::Off).then_some(&mut self.random);
            let found =
                if known { self.history.read(at, &self.clocks, who, (epoch, lane), random) } else { None };
            let newest = found.as_ref().is_none_or(|found| found.newest);
            if newest
                && self.packets.any()
                && let Some((unit, _)) = self.packets.unit(at)
            {
                self.packets.read(unit, (epoch, lane));
            }
            let Some(Found { value, newest, messages }) = found else { continue };
            if !newest {
                instead.push((lane, e, value as u64));
            }
            if strong {
                self.take(who, lane, touch, &messages);
            }
        }
        instead
    }

    /// A strong read of a lane saw a write with these messages.
    fn take(&mut self, who: Who, lane: usize, touch: &Touch<'_>, messages: &[Arc<Message>]) {
        let scope = touch.scope();
        for message in messages {
            let mutual = self.clocks.reaches(message.scope, message.from, who.block)
                && self.clocks.reaches(scope, who.block, message.from);
            if touch.acquires() && mutual {
                self.clocks.acquire(who, lane, &message.view);
            } else {
                self.clocks.see(who, lane, scope, message);
            }
        }
    }

    /// A read-modify-write of one lane has taken place.
    pub(crate) fn modified(&mut self, who: Who, touch: &Touch<'_>, bytes: &Bytes) {
        let size = touch.size();
        let epoch = self.clocks.epoch(who);
        for (lane, _, offset) in touch.elements() {
            let at = (touch.memory, offset);
            let newest = self.history.read(at, &self.clocks, who, (epoch, lane), None);
            let before = newest.map(|found| found.messages).unwrap_or_default();
            self.take(who, lane, touch, &before);
        }
        let own = self.messages(who, touch);
        for (lane, _, offset) in touch.elements() {
            let at = (touch.memory, offset);
            // What earlier writes published stays published (PTX ISA, "Observation").
            let mut messages = self.history.messages(at).to_vec();
            for new in own.iter().filter(|(l, _)| *l == lane).flat_map(|(_, list)| list) {
                messages.retain(|old| {
                    !(old.from == new.from && old.scope <= new.scope && covers(&new.view, &old.view))
                });
                messages.push(new.clone());
            }
            let value = value(bytes, offset, size);
            self.history.write(at, value, (epoch, lane), Some(touch.scope()), messages);
        }
    }

    pub(crate) fn fence(&mut self, who: Who, lanes: u32, order: Order, scope: Scope) {
        let acquires = order != Order::Release;
        if order == Order::SeqCst {
            self.clocks.fence(who, lanes, scope, true, false);
            self.clocks.order_fence(who, lanes, scope);
        }
        self.clocks.fence(who, lanes, scope, acquires, order != Order::Acquire);
    }

    pub(crate) fn fence_proxy(&mut self, who: Who, lanes: u32, proxy: Proxy) {
        self.clocks.fence_proxy(who, lanes, proxy);
    }

    pub(crate) fn meet(&mut self, who: Who, lanes: u32, live: u32) {
        self.clocks.meet(who, lanes, live);
    }

    pub(crate) fn arrive(&mut self, who: Who, barrier: u32, lanes: u32, waits: bool) {
        self.clocks.arrive(who, barrier, lanes, waits);
    }

    pub(crate) fn complete(&mut self, block: u32, barrier: u32, threads: u32) {
        self.clocks.complete(block, barrier, threads);
    }

    /// What the lanes of a warp publish, all together (for barriers in memory).
    pub(crate) fn publish(&mut self, who: Who, lanes: u32) -> View {
        let mut all = View::default();
        self.clocks.release(who, lanes).iter().for_each(|(_, view)| all.join(view));
        all
    }

    /// Lanes learn what others published.
    pub(crate) fn learn(&mut self, who: Who, lanes: u32, view: &View) {
        crate::access::lanes(lanes).for_each(|lane| self.clocks.acquire(who, lane, view));
    }
}

/// Whether a view makes another one superfluous.
fn covers(wide: &View, narrow: &View) -> bool {
    let mut both = wide.clone();
    both.join(narrow);
    both == *wide
}

/// What lies at some bytes.
fn value(bytes: &Bytes, offset: u64, size: u64) -> u128 {
    let mut raw = [0; 16];
    let size = size as usize;
    bytes.copy_to(offset as usize, &mut raw[..size]);
    u128::from_le_bytes(raw)
}
