//! Judges a plan's own synchronization as MSCCL++ executes it, and reports the accesses that it leaves unordered.
//!
//! A block's *phase* ends at a `nop` or a barrier. A wait is one thread's: the others know of it when the phase ends. A
//! signal tells what its thread knows: the phases that are over, and what the thread has waited for in this one. Relaxed
//! signals tell nothing; one by port comes after all that its block has put by port.
//!
//! Packets carry themselves and nothing else, word by word: what has been read to make a packet was read before it comes, and
//! so it may be overwritten by who reads the packet (`read` below); nothing that was stored before is known to have been
//! stored. The virtual machine has no such order: where a plan relies on it, its schedule gets a signal of its own.

use super::plan::{At, Chunk, End, Plan, Tick, What};
use super::run::Order;
use crate::diagnostic::words;
use crate::diagnostic::{Check, Diagnostic, Loc};
use crate::interop::finding;
use crate::program::ids::Location;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Tasks of different blocks, one before the other: those of non-sync points, numbered in the plan's order.
pub(super) type Edge = (u32, u32);

/// Judges a plan; what its tasks wait for. `locate` says where a chunk lies.
///
/// Errors (`data-race`): accesses that nothing orders.
pub(super) fn judge(
    plan: &Plan,
    order: &Order,
    locate: impl Fn(At) -> Location,
) -> Result<Vec<Edge>, Vec<Diagnostic>> {
    let blocks = plan.blocks.len();
    let mut judge = Judge {
        plan,
        blocks: vec![Block::new(blocks); blocks],
        published: vec![FxHashMap::default(); plan.counters.len()],
        waited: vec![0; plan.counters.len()],
        packets: FxHashMap::default(),
        cells: FxHashMap::default(),
        edges: Vec::new(),
        races: BTreeMap::new(),
    };
    let mut task = 0;
    for point in &order.points {
        let act = &plan.acts[point.act as usize];
        match &act.what {
            What::Sync => {
                judge.blocks[act.block].sync(act.block);
                continue;
            }
            What::Post(ticks) => judge.post(act.block, ticks, task),
            What::Await(ticks) => judge.wait(act.block, ticks, task, order),
            What::Move(chunks) => {
                if let Some(chunk) = chunks.get(point.chunk as usize) {
                    judge.moved((act.block, act.loc), chunk, task, &locate);
                }
            }
        }
        task += 1;
    }
    let Judge { mut edges, races, .. } = judge;
    if races.is_empty() {
        edges.sort_unstable();
        edges.dedup();
        return Ok(edges);
    }
    let say = |(_, (found, more)): (_, (Diagnostic, u64))| match more {
        0 => found,
        more => found.note(format!("{} likewise", words::count(more, "more chunk"))),
    };
    Err(races.into_iter().map(say).collect())
}

/// The accesses that are over.
#[derive(Clone, Debug)]
struct Known {
    /// Phases, by block.
    phases: Vec<u32>,
    /// Tasks beyond, with their block and phase.
    tasks: Vec<Stamp>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Stamp {
    block: usize,
    phase: u32,
    task: u32,
    loc: Loc,
}

impl Known {
    fn new(blocks: usize) -> Known {
        Known { phases: vec![0; blocks], tasks: Vec::new() }
    }

    fn covers(&self, stamp: &Stamp) -> bool {
        self.phases[stamp.block] > stamp.phase || self.tasks.iter().any(|known| known.task == stamp.task)
    }

    fn add(&mut self, stamp: Stamp) {
        if !self.covers(&stamp) {
            self.tasks.push(stamp);
        }
    }

    fn join(&mut self, other: &Known) {
        for (known, more) in self.phases.iter_mut().zip(&other.phases) {
            *known = (*known).max(*more);
        }
        let phases = &self.phases;
        self.tasks.retain(|stamp| phases[stamp.block] <= stamp.phase);
        other.tasks.iter().for_each(|stamp| self.add(*stamp));
    }
}

/// The knowledge of a block or thread: the accesses of every sort that are over, and the reads.
#[derive(Clone, Debug)]
struct Clock {
    done: Known,
    read: Known,
}

impl Clock {
    fn new(blocks: usize) -> Clock {
        Clock { done: Known::new(blocks), read: Known::new(blocks) }
    }

    fn join(&mut self, other: &Clock) {
        self.done.join(&other.done);
        self.read.join(&other.read);
    }
}

#[derive(Clone, Debug)]
struct Block {
    clock: Clock,
    /// The knowledge that single threads have gained in this phase; `None` for all of them.
    threads: FxHashMap<Option<u32>, Clock>,
    /// The knowledge that packets have brought in this phase, word by word.
    heard: Option<Known>,
    /// The puts of the block by port.
    ported: Vec<Stamp>,
}

impl Block {
    fn new(blocks: usize) -> Block {
        Block { clock: Clock::new(blocks), threads: FxHashMap::default(), heard: None, ported: Vec::new() }
    }

    fn sync(&mut self, own: usize) {
        for (_, clock) in self.threads.drain() {
            self.clock.join(&clock);
        }
        if let Some(heard) = self.heard.take() {
            self.clock.read.join(&heard);
        }
        self.clock.done.phases[own] += 1;
        self.clock.read.phases[own] += 1;
        self.ported.clear();
    }
}

#[derive(Clone, Debug, Default)]
struct Cell {
    store: Option<Stamp>,
    reads: Vec<Stamp>,
    reported: bool,
}

/// A post's task and what it tells, if anything.
type Told = (u32, Option<Rc<Clock>>);

struct Judge<'a> {
    plan: &'a Plan,
    blocks: Vec<Block>,
    /// For each counter and block what its posts tell, with their tasks; `None` where nothing.
    published: Vec<FxHashMap<usize, Vec<Told>>>,
    /// How often each counter has been waited for.
    waited: Vec<u32>,
    packets: FxHashMap<At, Rc<Known>>,
    cells: FxHashMap<Location, Cell>,
    edges: Vec<Edge>,
    races: BTreeMap<(Loc, Loc), (Diagnostic, u64)>,
}

impl Judge<'_> {
    fn post(&mut self, block: usize, ticks: &[Tick], task: u32) {
        let state = &self.blocks[block];
        let plain = Rc::new(state.clock.clone());
        for tick in ticks {
            let more = state.threads.get(&tick.thread);
            let port = tick.port && !state.ported.is_empty();
            let clock = match (tick.relaxed, more.is_some() || port) {
                (true, _) => None,
                (false, false) => Some(Rc::clone(&plain)),
                (false, true) => {
                    let mut clock = state.clock.clone();
                    more.iter().for_each(|more| clock.join(more));
                    for stamp in state.ported.iter().filter(|_| port) {
                        clock.done.add(*stamp);
                        clock.read.add(*stamp);
                    }
                    Some(Rc::new(clock))
                }
            };
            self.published[tick.counter as usize].entry(block).or_default().push((task, clock));
        }
    }

    /// A wait is after those posts that must have come: of each block as many as make up for what the others and the
    /// counter's first value can give.
    fn wait(&mut self, block: usize, ticks: &[Tick], task: u32, order: &Order) {
        for tick in ticks {
            let counter = tick.counter as usize;
            self.waited[counter] += 1;
            if tick.relaxed {
                continue;
            }
            let due = i64::from(self.waited[counter]) - i64::from(self.plan.counters[counter].initial());
            let all = &order.posts[counter];
            let own = |of: usize| all.iter().filter(|(block, _)| *block == of).count() as i64;
            for (&of, posts) in &self.published[counter] {
                let last = due - (all.len() as i64 - own(of));
                let Some(&(post, ref clock)) =
                    usize::try_from(last - 1).ok().and_then(|last| posts.get(last))
                else {
                    continue;
                };
                let Some(clock) = clock else { continue };
                let clocks = self.blocks.len();
                let thread = self.blocks[block].threads.entry(tick.thread);
                thread.or_insert_with(|| Clock::new(clocks)).join(clock);
                if of != block {
                    self.edges.push((post, task));
                }
            }
        }
    }

    fn moved(
        &mut self,
        (block, loc): (usize, Loc),
        chunk: &Chunk,
        task: u32,
        locate: &impl Fn(At) -> Location,
    ) {
        let phase = self.blocks[block].clock.done.phases[block];
        let stamp = Stamp { block, phase, task, loc };
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
                let End::Plain(at) = end else { continue };
                self.access(stamp, locate(*at), stores, heard.as_ref());
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
        if chunk.port {
            state.ported.push(stamp);
        }
    }

    fn access(&mut self, at: Stamp, location: Location, stores: bool, heard: Option<&Known>) {
        let clock = &self.blocks[at.block].clock;
        let cell = self.cells.entry(location).or_default();
        let same = |other: &Stamp| other.task == at.task;
        let done = |other: &Stamp| same(other) || clock.done.covers(other);
        let read = |other: &Stamp| clock.read.covers(other) || heard.is_some_and(|heard| heard.covers(other));
        let mut rival = cell.store.filter(|store| !done(store)).map(|store| (store, true));
        if stores {
            for before in cell.reads.iter().filter(|before| !done(before)) {
                if !read(before) {
                    rival = rival.or(Some((*before, false)));
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
        if let (Some((first, first_stores)), false) = (rival, cell.reported) {
            cell.reported = true;
            self.race(location, (first, first_stores), (at, stores));
        }
    }

    fn race(&mut self, location: Location, first: (Stamp, bool), second: (Stamp, bool)) {
        let name = |stamp: Stamp| {
            let place = self.plan.blocks[stamp.block].0;
            format!("gpu {}, tb {}", place.rank.0, place.block.0)
        };
        let act = |stores| if stores { "store" } else { "read" };
        let ((one, one_stores), (other, other_stores)) = (first, second);
        let (by, and) = (name(one), name(other));
        let message = format!(
            "nothing orders the {} of {location} by {by} and the {} by {}",
            act(one_stores),
            act(other_stores),
            if one.block == other.block { format!("another thread of {and}") } else { and.clone() },
        );
        let missing = if one.block == other.block {
            "missing: a `nop` between the two".to_owned()
        } else {
            format!(
                "missing: `nop` and a signal of {by} after the first, for which {and} waits, and `nop`, before the \
                 second; or the reverse"
            )
        };
        let describe = || {
            let found = finding(Check::DataRace, other.loc, message);
            (found.note(format!("the other access stands at {}", one.loc)).note(missing), 0)
        };
        let key = (other.loc, one.loc);
        self.races.entry(key).and_modify(|(_, more)| *more += 1).or_insert_with(describe);
    }
}
