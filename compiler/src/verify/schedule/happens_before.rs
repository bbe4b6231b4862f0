//! The happens-before order of a schedule, as streaming vector clocks.
//!
//! BlockNumbers are run step by step in turn, as far as their waits allow; since every wait is for one known signal, the
//! order that results is the same for every interleaving. A block's clock says, for each block, how many of its *phases* are
//! known to be over (a phase ends at a `sync` or a `wait`, which all threads of the block pass together), and which
//! ranks are known to be in the same call. O(steps x blocks).
//!
//! One tile stands for all. Tiles share no location but slots, which their credits guard (`slot-reuse`), and a block goes
//! through the tiles in order; so the graph of all tiles has, beside edges within a tile, only edges from a tile to a later
//! one. It has a cycle only if that of one tile has, and whatever is ordered within a tile is ordered in each.

use crate::options::Protocol;
use crate::program::ids::{BlockId, Rank};
use crate::program::location::RankSet;
use crate::schedule::{
    Action, Arrival, Connection, Counter, CounterKind, FifoMessage, Operand, Schedule, Step,
};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::rc::Rc;

/// The knowledge of a block.
#[derive(Clone, Debug)]
pub(super) struct BlockKnowledge {
    /// Phases over, by block number.
    pub(super) phases: Vec<u32>,
    /// Ranks whose kernel has begun with an equal call: their start's hash has been compared with ours, or with that
    /// of a rank known to be equal.
    pub(super) agreed: RankSet,
}

/// A step of a block, in a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StepStamp {
    /// The block's number.
    pub(super) block: u32,
    /// The step in the block.
    pub(super) step: u32,
    /// The phase of the block.
    pub(super) phase: u32,
}

impl BlockKnowledge {
    /// Returns true if all threads' part of the access is over.
    pub(super) fn covers(&self, stamp: StepStamp) -> bool {
        self.phases[stamp.block as usize] > stamp.phase
    }

    fn join(&mut self, other: &BlockKnowledge) {
        for (known, more) in self.phases.iter_mut().zip(&other.phases) {
            *known = (*known).max(*more);
        }
    }
}

/// A check that watches the walk.
pub(super) trait WalkObserver {
    /// A move begins; `clock` is what its block knows.
    fn moved(&mut self, at: StepStamp, step: &Step, clock: &BlockKnowledge);
    /// A wait has ended; `at` is the wait itself.
    fn waited(&mut self, _at: StepStamp, _arrivals: &[Arrival]) {}
    /// Signals are given.
    fn signalled(&mut self, _at: StepStamp, _counters: &[Counter], _clock: &BlockKnowledge) {}
}

/// How the walk ended.
pub(super) struct Ended {
    /// The knowledge of each block at its end.
    pub(super) clocks: Vec<BlockKnowledge>,
    /// BlockNumbers that wait for ever, and at which step.
    pub(super) stuck: Vec<(usize, usize)>,
}

/// The numbering of all blocks of all ranks.
pub(super) struct BlockNumbers {
    places: Vec<BlockId>,
    offsets: Vec<usize>,
}

impl BlockNumbers {
    /// Numbers the blocks of a schedule, rank by rank.
    pub(super) fn of(schedule: &Schedule) -> BlockNumbers {
        let places: Vec<BlockId> = schedule.places().map(|(place, _)| place).collect();
        let offsets =
            (0..schedule.blocks.len()).map(|r| places.partition_point(|p| (p.rank.0 as usize) < r)).collect();
        BlockNumbers { places, offsets }
    }

    /// The number of blocks.
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// The place of a block's number.
    pub(super) fn place(&self, block: usize) -> BlockId {
        self.places[block]
    }

    /// The number of a block; the block must exist.
    pub(super) fn number(&self, place: BlockId) -> usize {
        self.offsets[place.rank.0 as usize] + place.block.0 as usize
    }

    /// The numbers of a rank's blocks.
    pub(super) fn of_rank(&self, rank: Rank) -> std::ops::Range<usize> {
        let begin = self.offsets[rank.0 as usize];
        begin..self.offsets.get(rank.0 as usize + 1).copied().unwrap_or(self.places.len())
    }
}

/// The order in which the walk takes blocks that can go on. It does not decide what is found, only where it is seen first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum WalkOrder {
    /// Each as far as it can, which is faster.
    Eager,
    /// A step each in turn, so that the accesses nearest to each other meet first: for messages.
    InTurn,
}

/// Runs the schedule, which satisfies `form`, under the eyes of the observers.
pub(super) fn walk(
    schedule: &Schedule,
    blocks: &BlockNumbers,
    order: WalkOrder,
    observers: &mut [&mut dyn WalkObserver],
) -> Ended {
    let start = BlockKnowledge { phases: vec![0; blocks.len()], agreed: RankSet::new(schedule.shape.ranks) };
    let steps: Vec<&[Step]> = schedule.places().map(|(_, block)| &block.steps[..]).collect();
    let mut walk = ScheduleWalk {
        blocks,
        clocks: vec![start; blocks.len()],
        next: vec![0; blocks.len()],
        signalled: FxHashMap::default(),
        sleeping: FxHashMap::default(),
        stored: FxHashMap::default(),
        listening: FxHashMap::default(),
        ready: (0..blocks.len()).collect(),
    };
    while let Some(block) = walk.ready.pop_front() {
        while let Some(step) = steps[block].get(walk.next[block]) {
            if !walk.step(block, step, observers) {
                break;
            }
            walk.next[block] += 1;
            if order == WalkOrder::InTurn {
                walk.ready.push_back(block);
                break;
            }
        }
    }
    let stuck =
        (0..blocks.len()).filter(|&b| walk.next[b] < steps[b].len()).map(|b| (b, walk.next[b])).collect();
    Ended { clocks: walk.clocks, stuck }
}

/// The messages among operands that are waited for by their flags.
pub(super) fn flagged(operands: &[Operand]) -> impl Iterator<Item = &FifoMessage> {
    operands.iter().filter_map(Operand::message).filter(|m| m.connection.protocol != Protocol::Simple)
}

struct ScheduleWalk<'a> {
    blocks: &'a BlockNumbers,
    clocks: Vec<BlockKnowledge>,
    next: Vec<usize>,
    /// For each counter what its signals publish; taken when waited for.
    signalled: FxHashMap<Counter, Vec<Option<Rc<BlockKnowledge>>>>,
    /// BlockNumbers waiting for a counter's next signal.
    sleeping: FxHashMap<Counter, usize>,
    /// Messages of each connection that carry flags and have been stored.
    stored: FxHashMap<Connection, u32>,
    /// BlockNumbers waiting for such a message.
    listening: FxHashMap<Connection, usize>,
    ready: VecDeque<usize>,
}

impl ScheduleWalk<'_> {
    /// Carries out one step; false if the block has to wait.
    fn step(&mut self, block: usize, step: &Step, observers: &mut [&mut dyn WalkObserver]) -> bool {
        let at = StepStamp {
            block: block as u32,
            step: self.next[block] as u32,
            phase: self.clocks[block].phases[block],
        };
        match &step.action {
            Action::Wait(arrivals) => {
                if let Some(missing) = arrivals.iter().find(|a| !self.arrived(a)) {
                    self.sleeping.insert(missing.counter, block);
                    return false;
                }
                self.acquire(block, arrivals);
                self.clocks[block].phases[block] += 1;
                for observer in observers.iter_mut() {
                    observer.waited(at, arrivals);
                }
            }
            Action::Signal(counters) => {
                let clock = Rc::new(self.clocks[block].clone());
                for &counter in counters {
                    self.signalled.entry(counter).or_default().push(Some(Rc::clone(&clock)));
                    self.ready.extend(self.sleeping.remove(&counter));
                }
                for observer in observers.iter_mut() {
                    observer.signalled(at, counters, &clock);
                }
            }
            Action::Move { sources, dests, .. } => {
                let arrived =
                    |m: &&FifoMessage| self.stored.get(&m.connection).is_some_and(|&n| n > m.number);
                if let Some(missing) = flagged(sources).find(|message| !arrived(message)) {
                    self.listening.insert(missing.connection, block);
                    return false;
                }
                for observer in observers.iter_mut() {
                    observer.moved(at, step, &self.clocks[block]);
                }
                for FifoMessage { connection, number } in flagged(dests) {
                    self.stored.insert(*connection, number + 1);
                    self.ready.extend(self.listening.remove(connection));
                }
            }
            Action::BlockSync => self.clocks[block].phases[block] += 1,
        }
        true
    }

    fn arrived(&self, arrival: &Arrival) -> bool {
        let given = self.signalled.get(&arrival.counter).map_or(0, Vec::len);
        i64::from(arrival.value) <= given as i64
    }

    fn acquire(&mut self, block: usize, arrivals: &[Arrival]) {
        let own = self.blocks.place(block).rank;
        let mut pending = Vec::new();
        for arrival in arrivals {
            let signals = self.signalled.get_mut(&arrival.counter).map(Vec::as_mut_slice).unwrap_or_default();
            // A later signal of the same block publishes all that an earlier one does; one of an earlier tile, nothing that
            // this one has not seen.
            let upto = &mut signals[..arrival.value.max(0) as usize];
            let Some(clock) = upto.last_mut().and_then(Option::take) else { continue };
            // What an earlier wait was for is gone already, and all before it.
            upto.iter_mut().rev().skip(1).map_while(Option::take).for_each(drop);
            self.clocks[block].join(&clock);
            if arrival.counter.kind == CounterKind::Start {
                self.clocks[block].agreed.insert(arrival.counter.writer.rank);
            }
            pending.push((arrival.counter.writer.rank, clock));
        }
        // Who signals may be trusted about others' calls only if its own call is known to be equal.
        loop {
            let before = pending.len();
            let agreed = &mut self.clocks[block].agreed;
            pending.retain(|(rank, clock)| {
                let known = *rank == own || agreed.contains(*rank);
                if known {
                    agreed.union(&clock.agreed);
                }
                !known
            });
            if pending.len() == before {
                return;
            }
        }
    }
}
