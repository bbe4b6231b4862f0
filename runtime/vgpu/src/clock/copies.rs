//! The cost of asynchronous copies and mbarriers. Copies proceed beside the warps, which wait for the bytes only where
//! they say so.

use std::collections::VecDeque;

use super::access::AccessTimes;
use super::fabric::Footprint;
use super::{Current, Picoseconds, VirtualClock};
use crate::fault::{AccessKind, Space};
use crate::observe::WarpSite;
use crate::registers::LANES;

/// Bytes of a bulk copy that are transferred together: parts overlap with each other on links and in memory.
const PART: u64 = 2048;

/// The times at which copies have read everything, and at which all of it has arrived.
#[derive(Clone, Copy, Debug, Default)]
struct Ends {
    read: Picoseconds,
    all: Picoseconds,
}

impl Ends {
    fn join(&mut self, other: Ends) {
        (self.read, self.all) = (self.read.max(other.read), self.all.max(other.all));
    }
}

/// The copies of a thread.
#[derive(Debug, Default)]
struct GroupTimes {
    /// Those of no group yet.
    open: Ends,
    /// Groups that have been waited for.
    over: u64,
    /// The groups after those.
    made: VecDeque<Ends>,
    /// Of all copies.
    last: Ends,
}

/// The phases of an mbarrier: when the copies and arrivals of each have come. Long past ones count as one.
#[derive(Debug, Default)]
struct Phases {
    past: Picoseconds,
    known: Vec<(u64, Picoseconds)>,
}

/// Copies on their way.
#[derive(Debug, Default)]
pub(super) struct CopiesUnderWay {
    /// By block, thread and whether they are bulk copies.
    groups: rustc_hash::FxHashMap<(u32, u32, bool), GroupTimes>,
    /// By block and offset of the mbarrier.
    phases: rustc_hash::FxHashMap<(u32, u64), Phases>,
    /// The instruction that last began a small copy, and the end of what its lanes have read so far.
    last: Option<((u32, u32, u32, Picoseconds), u64)>,
}

impl CopiesUnderWay {
    pub(super) fn end_block(&mut self, block: u32) {
        self.groups.retain(|(other, ..), _| *other != block);
        self.phases.retain(|(other, _), _| *other != block);
    }

    fn arrives(&mut self, block: u32, mbarrier: u64, phase: u64, at: Picoseconds) {
        let phases = self.phases.entry((block, mbarrier)).or_default();
        match phases.known.iter_mut().find(|(number, _)| *number == phase) {
            Some((_, end)) => *end = (*end).max(at),
            None => phases.known.push((phase, at)),
        }
        let past = &mut phases.past;
        phases.known.retain(|&(number, end)| {
            let recent = number + 1 >= phase;
            *past = if recent { *past } else { (*past).max(end) };
            recent
        });
    }
}

fn key(site: &WarpSite<'_>, lane: u32, bulk: bool) -> (u32, u32, bool) {
    (site.block.number, site.warp * LANES as u32 + lane, bulk)
}

impl VirtualClock {
    /// A lane begins a copy: bytes to read from a place, and to write to another one.
    pub(super) fn copy(
        &mut self,
        site: &WarpSite<'_>,
        lane: u32,
        bulk: bool,
        (from, read): ((Space, u64), u64),
        (to, bytes): ((Space, u64), u64),
        mbarrier: Option<(u64, u64)>,
    ) {
        self.visit(site.function, site.pc);
        let mut ends = Ends::default();
        for begin in (0..bytes.max(1)).step_by(PART as usize) {
            let part = |bytes: u64| bytes.saturating_sub(begin).min(PART);
            let at = |(space, at): (Space, u64)| (space, at + begin);
            ends.join(self.part(site, bulk, (at(from), part(read)), (at(to), part(bytes))));
        }
        let flying = &mut self.flying;
        let groups = flying.groups.entry(key(site, lane, bulk)).or_default();
        groups.last.join(ends);
        match mbarrier {
            Some((at, phase)) => flying.arrives(site.block.number, at, phase, ends.all),
            None => groups.open.join(ends),
        }
    }

    fn part(
        &mut self,
        site: &WarpSite<'_>,
        bulk: bool,
        (from, read): ((Space, u64), u64),
        (to, bytes): ((Space, u64), u64),
    ) -> Ends {
        let mut ends = Ends { read: self.current.at, all: self.current.at };
        let owner = |(space, at)| match space {
            Space::Global => site.memory.locate(at).map(|(rank, _)| rank),
            _ => None,
        };
        let shared = self.cycles(self.options.topology.gpu.shared_cycles);
        if read > 0
            && let Some(owner) = owner(from)
        {
            let load =
                if bulk { Footprint::extent(from.1, read) } else { self.neighbour(site, from.1, read) };
            let AccessTimes { back, .. } = self.transfer(AccessKind::Load, false, load, owner);
            ends = Ends { read: back, all: back };
        } else if bytes > 0 {
            ends.all += shared;
        }
        if bytes > 0
            && let Some(owner) = owner(to)
        {
            let AccessTimes { left, effect, back } =
                self.transfer(AccessKind::Store, false, Footprint::extent(to.1, bytes), owner);
            ends.join(Ends { read: left, all: back });
            if let Some(state) = self.blocks.get_mut(&self.current.block) {
                state.arrived = state.arrived.max(effect);
            }
        }
        ends
    }

    /// The bytes that a lane's small copy reads beyond those that the lane before it has touched.
    fn neighbour(&mut self, site: &WarpSite<'_>, at: u64, bytes: u64) -> Footprint {
        let instruction = (site.block.number, site.warp, site.pc, self.current.at);
        let before = self.flying.last.replace((instruction, at + bytes));
        let all = Footprint::extent(at, bytes);
        match before {
            Some((other, end)) if other == instruction && end <= at + bytes => all.beyond(at, end),
            _ => all,
        }
    }

    /// A lane makes a group of its copies so far.
    pub(super) fn commit(&mut self, site: &WarpSite<'_>, lane: u32, bulk: bool) {
        let groups = self.flying.groups.entry(key(site, lane, bulk)).or_default();
        groups.made.push_back(std::mem::take(&mut groups.open));
    }

    /// A lane waits for the first `count` of its groups.
    pub(super) fn await_groups(
        &mut self,
        site: &WarpSite<'_>,
        lane: u32,
        bulk: bool,
        read: bool,
        count: u64,
    ) {
        let Some(groups) = self.flying.groups.get_mut(&key(site, lane, bulk)) else { return };
        let due = count.saturating_sub(groups.over) as usize;
        let waits = |ends: &Ends| if read { ends.read } else { ends.all };
        let end = groups.made.iter().take(due).map(waits).max().unwrap_or(0);
        if !read {
            groups.made.drain(..due.min(groups.made.len()));
            groups.over = groups.over.max(count);
        }
        self.hold(end);
    }

    /// A lane arrives at an mbarrier, with `copies` once its small copies so far have come.
    pub(super) fn arrive_at(
        &mut self,
        site: &WarpSite<'_>,
        lane: u32,
        mbarrier: u64,
        phase: u64,
        copies: bool,
    ) {
        let own = self.flying.groups.get(&key(site, lane, false)).filter(|_| copies);
        let at = self.current.at.max(own.map_or(0, |groups| groups.last.all));
        self.flying.arrives(site.block.number, mbarrier, phase, at);
    }

    /// A lane has found that the phases before `phase` are over: they end when everything has come.
    pub(super) fn await_phase(&mut self, site: &WarpSite<'_>, mbarrier: u64, phase: u64) {
        let Some(phases) = self.flying.phases.get(&(site.block.number, mbarrier)) else { return };
        let over = phases.known.iter().filter(|(number, _)| *number < phase).map(|(_, end)| *end);
        let end = over.fold(phases.past, Picoseconds::max);
        self.hold(end);
    }

    /// Holds the running warp until a time.
    fn hold(&mut self, until: Picoseconds) {
        let Current { block, warp, .. } = self.current;
        if let Some(state) = self.blocks.get_mut(&block) {
            let times = &mut state.warps[warp];
            times.next = times.next.max(until);
        }
    }
}
