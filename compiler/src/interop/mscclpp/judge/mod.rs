//! Judges a plan's own synchronization as MSCCL++ executes it, and reports the accesses that it leaves unordered.
//!
//! A block's *phase* ends at a `nop` or a barrier. A wait is one thread's: the others know of it when the phase ends. A
//! signal tells what its thread knows: the phases that are over, and what the thread has waited for in this one. Relaxed
//! signals tell nothing of this call; one by port comes after all that its block has put by port. Operations of one sort go
//! over their words alike, so that a thread meets the words again that it has touched.
//!
//! Packets carry themselves and nothing else, word by word: what has been read to make a packet was read before it comes, and
//! so it may be overwritten by who reads the packet (`read` below); nothing that was stored before is known to have been
//! stored. The virtual machine has no such order: where a plan relies on it, its schedule gets a signal of its own.
//!
//! [`judge`] judges one call, and gives what Quadrille's schedule has to wait for. [`own`] judges several calls in a row as
//! MSCCL++ itself runs them.

mod clock;
mod own;
mod race;

use self::clock::{BlockClock, Clock, Known, Stamp};
use self::own::Calls;
pub(super) use self::own::own;
use self::race::{Access, Races};
use super::plan::{At, Chunk, End, Plan, Tick, What};
use super::run::{PlanOrder, Point};
use crate::diagnostic::Diagnostic;
use crate::program::ids::Location;
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// Tasks of different blocks, one before the other: those of non-sync points, numbered in the plan's order.
pub(super) type Edge = (u32, u32);

/// Judges a plan; what its tasks wait for. `locate` says where a chunk lies.
///
/// Errors (`data-race`): accesses that nothing orders.
pub(super) fn judge(
    plan: &Plan,
    order: &PlanOrder,
    locate: impl Fn(At) -> Location,
) -> Result<Vec<Edge>, Vec<Diagnostic>> {
    let mut judge = Judge::new(plan, order, plan.blocks.len());
    judge.call(&locate);
    let Judge { mut edges, races, .. } = judge;
    if races.is_empty() {
        edges.sort_unstable();
        edges.dedup();
        return Ok(edges);
    }
    Err(races.into_findings())
}

#[derive(Clone, Debug, Default)]
struct Cell {
    store: Option<Stamp>,
    reads: Vec<Stamp>,
    reported: bool,
}

/// Memory of a chunk: plain or as packets, and of scratch in two halves the one of the call.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct CellKey {
    location: Location,
    packets: bool,
    half: u32,
}

/// A post's task and what it tells, if anything.
type Told = (u32, Option<Rc<Clock>>);

struct Judge<'a> {
    plan: &'a Plan,
    order: &'a PlanOrder,
    blocks: Vec<BlockClock>,
    /// For each counter and block what its posts tell, with their tasks; `None` where nothing.
    published: Vec<FxHashMap<usize, Vec<Told>>>,
    /// How often each counter has been waited for.
    waited: Vec<u32>,
    packets: FxHashMap<At, Rc<Known>>,
    cells: FxHashMap<CellKey, Cell>,
    edges: Vec<Edge>,
    races: Races,
    /// The calls, where several are judged.
    calls: Option<Calls>,
    /// See [`own::OwnJudgement`].
    trailing: bool,
    task: u32,
}

impl<'a> Judge<'a> {
    fn new(plan: &'a Plan, order: &'a PlanOrder, clocks: usize) -> Judge<'a> {
        Judge {
            plan,
            order,
            blocks: vec![BlockClock::new(clocks); plan.blocks.len()],
            published: vec![FxHashMap::default(); plan.counters.len()],
            waited: vec![0; plan.counters.len()],
            packets: FxHashMap::default(),
            cells: FxHashMap::default(),
            edges: Vec::new(),
            races: Races::default(),
            calls: None,
            trailing: false,
            task: 0,
        }
    }

    /// Goes through a call.
    fn call(&mut self, locate: &impl Fn(At) -> Location) {
        let (plan, order) = (self.plan, self.order);
        for &Point { act, chunk } in &order.points {
            let act = &plan.acts[act as usize];
            match &act.what {
                What::Sync => {
                    self.sync(act.block);
                    continue;
                }
                What::Flush { channels, thread } => {
                    self.flush(act.block, channels, *thread);
                    continue;
                }
                What::Post(ticks) => self.post(act.block, ticks),
                What::Await(ticks) => self.wait(act.block, ticks),
                What::Move(chunks) => {
                    if let Some(chunk) = chunks.get(chunk as usize) {
                        self.moved(act.block, chunk, locate);
                    }
                }
            }
            self.task += 1;
        }
    }

    fn sync(&mut self, block: usize) {
        let state = &mut self.blocks[block];
        state.sync(block);
        match &self.calls {
            Some(calls) => state.clock.reach(calls.strong(block), state.clock.done.phases[block]),
            None => state.ported.clear(),
        }
    }

    fn flush(&mut self, block: usize, channels: &[u32], thread: Option<u32>) {
        let clocks = self.blocks[block].clock.done.phases.len();
        let BlockClock { ported, threads, .. } = &mut self.blocks[block];
        let over = |on: &[u32]| on.iter().all(|channel| channels.contains(channel));
        let clock = threads.entry(thread).or_insert_with(|| Clock::new(clocks));
        ported.iter().filter(|(on, _)| over(on)).for_each(|(_, stamp)| clock.add(*stamp));
    }

    fn post(&mut self, block: usize, ticks: &[Tick]) {
        let state = &self.blocks[block];
        let plain = Rc::new(state.clock.clone());
        for tick in ticks {
            let more = state.threads.get(&tick.thread);
            let port = tick.port && !state.ported.is_empty();
            let clock = match (tick.relaxed, more.is_some() || port) {
                (true, _) => self.calls.as_ref().map(|calls| {
                    let mut clock = calls.begun(self.plan, block);
                    let strong = calls.strong(block);
                    clock.reach(strong, state.clock.done.phases[strong]);
                    Rc::new(clock)
                }),
                (false, false) => Some(Rc::clone(&plain)),
                (false, true) => {
                    let mut clock = state.clock.clone();
                    more.iter().for_each(|more| clock.join(more));
                    state.ported.iter().filter(|_| port).for_each(|(_, stamp)| clock.add(*stamp));
                    Some(Rc::new(clock))
                }
            };
            self.published[tick.counter as usize].entry(block).or_default().push((self.task, clock));
        }
    }

    /// A wait is after those posts that must have come: of each block as many as make up for what the others and the
    /// counter's first value can give.
    fn wait(&mut self, block: usize, ticks: &[Tick]) {
        let calls = self.calls.as_ref().map_or(1, |calls| i64::from(calls.call) + 1);
        for tick in ticks {
            let counter = tick.counter as usize;
            self.waited[counter] += 1;
            if tick.relaxed && self.calls.is_none() {
                continue;
            }
            let due = i64::from(self.waited[counter]) - i64::from(self.plan.counters[counter].initial());
            let all = &self.order.posts[counter];
            let own = |of: usize| all.iter().filter(|(block, _)| *block == of).count() as i64;
            for (&of, posts) in &self.published[counter] {
                let last = due - calls * (all.len() as i64 - own(of));
                let Some(&(post, ref clock)) =
                    usize::try_from(last - 1).ok().and_then(|last| posts.get(last))
                else {
                    continue;
                };
                let Some(clock) = clock else { continue };
                let clocks = clock.done.phases.len();
                let thread = self.blocks[block].threads.entry(tick.thread);
                thread.or_insert_with(|| Clock::new(clocks)).join(clock);
                if of != block {
                    self.edges.push((post, self.task));
                }
            }
        }
    }

    fn moved(&mut self, block: usize, chunk: &Chunk, locate: &impl Fn(At) -> Location) {
        let own = self.calls.is_some();
        let beside = own && !chunk.ports.is_empty();
        let clock = match &self.calls {
            // What goes on by itself has a clock that never advances.
            Some(_) if beside => self.blocks[block].clock.done.phases.len() - 1,
            Some(calls) if chunk.strong => calls.strong(block),
            _ => block,
        };
        let stamp = Stamp {
            block,
            clock,
            phase: self.blocks[block].clock.done.phases[clock],
            task: self.task,
            call: self.calls.as_ref().map_or(0, |calls| calls.call),
            loc: chunk.loc,
            lane: chunk.lane,
        };
        let mut heard: Option<Known> = None;
        for source in &chunk.sources {
            let End::Packet(at) = source else { continue };
            if let Some(known) = self.packets.get(at) {
                match &mut heard {
                    Some(heard) => heard.join(known),
                    None => heard = Some((**known).clone()),
                }
            }
        }
        for (ends, stores) in [(&chunk.sources, false), (&chunk.dests, true)] {
            for end in ends {
                let (End::Plain(at) | End::Packet(at)) = end;
                let packets = matches!(end, End::Packet(_));
                if packets && !own {
                    continue;
                }
                let key = self.key(locate(*at), packets);
                // Threads wait for packets; copies of them by port do not.
                let awaited = packets && !stores && !beside;
                self.access(key, Access { stamp, stores }, heard.as_ref(), awaited);
            }
        }
        if chunk.dests.iter().any(|dest| matches!(dest, End::Packet(_))) {
            let mut known = self.blocks[block].clock.read.clone();
            known.join(&self.blocks[block].clock.done);
            heard.iter().for_each(|heard| known.join(heard));
            known.add(stamp);
            let known = Rc::new(known);
            for dest in &chunk.dests {
                if let End::Packet(at) = dest {
                    self.packets.insert(*at, Rc::clone(&known));
                }
            }
        }
        let state = &mut self.blocks[block];
        if let Some(heard) = heard {
            match &mut state.heard {
                Some(known) => known.join(&heard),
                None => state.heard = Some(heard),
            }
        }
        if !chunk.ports.is_empty() {
            state.ported.push((chunk.ports.clone(), stamp));
        }
    }

    fn key(&self, location: Location, packets: bool) -> CellKey {
        let half = self.calls.as_ref().map_or(0, |calls| calls.half(location.buffer));
        CellKey { location, packets, half }
    }

    fn access(&mut self, key: CellKey, access: Access, heard: Option<&Known>, awaited: bool) {
        let Access { stamp: at, stores } = access;
        let early = self.calls.as_ref().is_some_and(|calls| {
            calls.before_begin(self.plan, key, &at, &self.blocks[at.block].clock, heard)
        });
        if early {
            self.too_early(key.location, access);
        }
        let clock = &self.blocks[at.block].clock;
        let cell = self.cells.entry(key).or_default();
        // The same thread comes to the same words.
        let same = |other: &Stamp| {
            other.task == at.task
                || other.clock == at.clock && other.clock == at.block && other.lane.meets(&at.lane)
        };
        let done = |other: &Stamp| same(other) || clock.done.covers(other);
        let read = |other: &Stamp| clock.read.covers(other) || heard.is_some_and(|heard| heard.covers(other));
        // A packet that has been read has been stored.
        let stored = |other: &Stamp| awaited || done(other) || key.packets && stores && read(other);
        let mut rival = cell.store.filter(|store| !stored(store)).map(|stamp| Access { stamp, stores: true });
        if stores {
            for before in cell.reads.iter().filter(|before| !done(before)) {
                if !read(before) {
                    rival = rival.or(Some(Access { stamp: *before, stores: false }));
                } else if before.block != at.block {
                    self.edges.push((before.task, at.task));
                }
            }
            cell.store = Some(at);
            cell.reads.clear();
        } else {
            cell.reads.retain(|before| !clock.done.covers(before));
            cell.reads.push(at);
        }
        if let (Some(first), false) = (rival, cell.reported) {
            cell.reported = true;
            let packets = if key.packets { "packets of " } else { "" };
            self.race(&format!("{packets}{}", key.location), first, access);
        }
    }
}
