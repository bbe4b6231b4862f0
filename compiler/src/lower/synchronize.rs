//! Finds the waits that order the tasks: as few as imply all dependences, every start and every exit.
//!
//! Tasks are walked in their global order with a vector clock a block (how many tasks of each other block
//! are known to be done). A dependence that the clock already covers needs no wait. Beside the clock each block keeps
//! the ranks known to be in the *same call*: a start signal's hash has been compared with theirs, directly or by
//! somebody whose own hash has been. Only those ranks' buffers may be touched.

use super::Savings;
use super::assign::Placement;
use super::depend::TaskGraph;
use super::divide::{TaskEnd, Tasks};
use crate::options::Protocol;
use crate::program::ids::{BlockId, Rank};
use crate::program::location::RankSet;
use petgraph::Direction;
use petgraph::graph::NodeIndex;
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// The waits of a schedule.
pub(super) struct Synchronization {
    /// For each task, by number: what its block waits for right before it.
    pub(super) before: Vec<TaskWaits>,
    /// For each task: the blocks that wait for it, in the order they come to need it.
    pub(super) signals: Vec<Vec<BlockId>>,
    /// For each rank: the blocks that wait for its start.
    pub(super) starts: Vec<Vec<BlockId>>,
    /// For each rank: the tasks its blocks wait for before the kernel ends, with the waiting block.
    pub(super) exits: Vec<Vec<(BlockId, u32)>>,
    /// Dependences between blocks, and those of them that need no wait of their own.
    pub(super) dependences: usize,
    pub(super) implied: usize,
}

impl Synchronization {
    /// The dependences that needed a wait, and those that did not.
    pub(super) fn savings(&self) -> Savings {
        Savings { dependences: self.dependences, implied: self.implied, ..Savings::default() }
    }
}

/// The waits of a block right before a task.
#[derive(Clone, Default)]
pub(super) struct TaskWaits {
    /// Ranks whose start is awaited.
    pub(super) starts: Vec<Rank>,
    /// Tasks of other blocks.
    pub(super) tasks: Vec<u32>,
    /// Messages that are announced.
    pub(super) messages: Vec<u32>,
}

/// The knowledge of a block: for each block the number of tasks that are done, and the ranks in the same call.
#[derive(Clone)]
struct PlannedKnowledge {
    done: Vec<u32>,
    agreed: RankSet,
}

impl PlannedKnowledge {
    fn join(&mut self, other: &PlannedKnowledge) {
        for (known, more) in self.done.iter_mut().zip(&other.done) {
            *known = (*known).max(*more);
        }
    }
}

/// The walk's state.
struct TaskWalk<'a> {
    tasks: &'a Tasks,
    placement: &'a Placement,
    /// The number of each rank's first block.
    offsets: Vec<usize>,
    clocks: Vec<PlannedKnowledge>,
    /// Each task's number in its block, from 1.
    number: Vec<u32>,
    /// Tasks that may still be waited for.
    kept: FxHashMap<u32, KeptKnowledge>,
    out: Synchronization,
}

/// The knowledge that waiting for a task gives.
struct KeptKnowledge {
    clock: Rc<PlannedKnowledge>,
    /// Tasks known to be done; a clock that covers another has more.
    weight: u64,
    /// How often the task may still be waited for.
    uses: u32,
}

/// Chooses the waits. O(tasks x blocks).
pub(super) fn synchronize(
    ranks: u32,
    tasks: &Tasks,
    graph: &TaskGraph,
    placement: &Placement,
) -> Synchronization {
    let offsets: Vec<usize> = placement
        .blocks
        .iter()
        .scan(0, |at, &blocks| {
            let offset = *at;
            *at += blocks as usize;
            Some(offset)
        })
        .collect();
    let blocks = placement.blocks.iter().sum::<u32>() as usize;
    let clock = PlannedKnowledge { done: vec![0; blocks], agreed: RankSet::new(ranks) };
    let n = tasks.list.len();
    let mut walk = TaskWalk {
        tasks,
        placement,
        offsets,
        clocks: vec![clock; blocks],
        number: vec![0; n],
        kept: FxHashMap::default(),
        out: Synchronization {
            before: vec![TaskWaits::default(); n],
            signals: vec![Vec::new(); n],
            starts: vec![Vec::new(); ranks as usize],
            exits: vec![Vec::new(); ranks as usize],
            dependences: 0,
            implied: 0,
        },
    };
    let last_touches = walk.last_touches();
    let mut uses = vec![0u32; n];
    for &(_, task) in last_touches.iter().flatten() {
        uses[task as usize] += 1;
    }
    for message in tasks.messages.iter().filter(|message| message.protocol == Protocol::Simple) {
        uses[message.writer as usize] += 1;
    }
    for edge in graph.raw_edges() {
        let (from, to) = (edge.source().index(), edge.target().index());
        uses[from] += u32::from(placement.place[from] != placement.place[to]);
    }
    for &task in &placement.order {
        walk.visit(task, graph, uses[task as usize]);
    }
    for (rank, touches) in (0..).map(Rank).zip(last_touches) {
        walk.exit(rank, touches);
    }
    walk.out
}

impl TaskWalk<'_> {
    fn index(&self, at: BlockId) -> usize {
        self.offsets[at.rank.0 as usize] + at.block.0 as usize
    }

    /// The other ranks whose buffers a task touches, each once.
    fn touched(&self, task: u32) -> Vec<Rank> {
        let own = self.placement.place[task as usize].rank;
        let task = &self.tasks.list[task as usize];
        let slices = task.reads().chain(task.stores());
        let mut ranks: Vec<Rank> = slices.map(|s| s.rank).filter(|&r| r != own).collect();
        ranks.sort_unstable();
        ranks.dedup();
        ranks
    }

    /// For each rank: of every other rank's block the last task that touches its buffers, latest first.
    fn last_touches(&self) -> Vec<Vec<(usize, u32)>> {
        let mut last: Vec<FxHashMap<BlockId, (usize, u32)>> =
            vec![FxHashMap::default(); self.out.starts.len()];
        for (at, &task) in self.placement.order.iter().enumerate() {
            for rank in self.touched(task) {
                last[rank.0 as usize].insert(self.placement.place[task as usize], (at, task));
            }
        }
        last.into_iter()
            .map(|of| {
                let mut touches: Vec<_> = of.into_values().collect();
                touches.sort_unstable_by(|a, b| b.cmp(a));
                touches
            })
            .collect()
    }

    fn visit(&mut self, task: u32, graph: &TaskGraph, uses: u32) {
        let i = task as usize;
        let place = self.placement.place[i];
        let block = self.index(place);
        let mut waits = TaskWaits::default();
        let mut joined = Vec::new();
        for end in &self.tasks.list[i].sources {
            let TaskEnd::Message(message) = *end else { continue };
            let sent = self.tasks.messages[message as usize];
            // Flags in the data order nothing but themselves.
            if sent.protocol == Protocol::Simple {
                waits.messages.push(message);
                let Some(clock) = self.release(sent.writer) else { continue };
                self.clocks[block].join(&clock);
                joined.push((sent.writer, clock));
            }
        }
        // Latest first, so that what a later wait implies is not waited for.
        let mut before: Vec<u32> = graph
            .neighbors_directed(NodeIndex::new(i), Direction::Incoming)
            .map(|p| p.index() as u32)
            .filter(|&p| self.placement.place[p as usize] != place)
            .collect();
        before.sort_unstable_by_key(|p| std::cmp::Reverse((self.kept.get(p).map(|kept| kept.weight), *p)));
        for dependence in before {
            let Some(clock) = self.release(dependence) else { continue };
            let writer = self.index(self.placement.place[dependence as usize]);
            self.out.dependences += 1;
            if self.clocks[block].done[writer] < self.number[dependence as usize] {
                self.clocks[block].join(&clock);
                self.out.signals[dependence as usize].push(place);
                waits.tasks.push(dependence);
                joined.push((dependence, clock));
            } else {
                self.out.implied += 1;
            }
        }
        self.agree(block, &joined);
        for rank in self.touched(task) {
            if !self.clocks[block].agreed.contains(rank) {
                self.clocks[block].agreed.insert(rank);
                self.out.starts[rank.0 as usize].push(place);
                waits.starts.push(rank);
            }
        }
        self.agree(block, &joined);
        self.out.before[i] = waits;
        self.number[i] = self.clocks[block].done[block] + 1;
        self.clocks[block].done[block] = self.number[i];
        if uses > 0 {
            let clock = Rc::new(self.clocks[block].clone());
            let weight = clock.done.iter().map(|&done| u64::from(done)).sum();
            self.kept.insert(task, KeptKnowledge { clock, weight, uses });
        }
    }

    /// The ranks that signalling blocks agree with are agreed with too, if their own rank is.
    fn agree(&mut self, block: usize, joined: &[(u32, Rc<PlannedKnowledge>)]) {
        let own = self.offsets.partition_point(|&offset| offset <= block) as u32 - 1;
        let mut pending: Vec<_> = joined.iter().collect();
        loop {
            let before = pending.len();
            pending.retain(|(task, clock)| {
                let rank = self.placement.place[*task as usize].rank;
                let known = rank == Rank(own) || self.clocks[block].agreed.contains(rank);
                if known {
                    self.clocks[block].agreed.union(&clock.agreed);
                }
                !known
            });
            if pending.len() == before {
                return;
            }
        }
    }

    /// Takes one use of a task's clock.
    fn release(&mut self, task: u32) -> Option<Rc<PlannedKnowledge>> {
        let kept = self.kept.get_mut(&task)?;
        kept.uses -= 1;
        if kept.uses > 0 {
            return Some(Rc::clone(&kept.clock));
        }
        self.kept.remove(&task).map(|kept| kept.clock)
    }

    /// The waits at the end of a rank's kernel: for every touch of its buffers that none of its blocks knows of.
    fn exit(&mut self, rank: Rank, touches: Vec<(usize, u32)>) {
        let first = self.offsets[rank.0 as usize];
        let blocks = self.placement.blocks[rank.0 as usize];
        let mut known = self.clocks[first].clone();
        for block in 1..blocks as usize {
            known.join(&self.clocks[first + block]);
        }
        for (_, task) in touches {
            let Some(clock) = self.release(task) else { continue };
            let writer = self.placement.place[task as usize];
            if known.done[self.index(writer)] >= self.number[task as usize] {
                continue;
            }
            let block = crate::program::ids::ThreadBlock(writer.block.0 % blocks);
            let waiter = BlockId { rank, block };
            known.join(&clock);
            self.out.signals[task as usize].push(waiter);
            self.out.exits[rank.0 as usize].push((waiter, task));
        }
    }
}
