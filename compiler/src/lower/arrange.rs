//! The steps of each block: waits, moves, block-wide barriers and signals, with counters and values.

use super::assign::Placement;
use super::synchronize::Synchronization;
use crate::ids::{Place, Rank, Slice, ThreadBlock};
use crate::program::{Op, OpId, Program};
use crate::schedule::{Action, Arrival, Block, Counter, CounterKind, Schedule, Step};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Lays out the schedule.
pub(super) fn arrange(
    program: &Program,
    placement: &Placement,
    sync: &Synchronization,
    block_cap: u32,
) -> Schedule {
    let values = number_signals(placement, sync);
    let ranks = program.shape.ranks;
    let mut blocks: Vec<Vec<Writer>> = placement
        .blocks
        .iter()
        .zip(0..)
        .map(|(&count, rank)| (0..count).map(|_| Writer::new(Rank(rank), ranks)).collect())
        .collect();
    for (rank, waiters) in (0..).map(Rank).zip(&sync.starts) {
        let writer = Place { rank, block: ThreadBlock(0) };
        let starts = waiters.iter().map(|&waiter| Counter { kind: CounterKind::Start, writer, waiter });
        blocks[rank.0 as usize][0].signal(starts.collect());
    }
    let data = |op: OpId, waiter: Place| {
        let writer = placement.place[op.0 as usize];
        let counter = Counter { kind: CounterKind::Data, writer, waiter };
        Arrival { counter, value: values[&(op, waiter)] }
    };
    for &op in &placement.order {
        let place = placement.place[op.0 as usize];
        let waits = &sync.before[op.0 as usize];
        let starts = waits.starts.iter().map(|&rank| Arrival {
            counter: Counter {
                kind: CounterKind::Start,
                writer: Place { rank, block: ThreadBlock(0) },
                waiter: place,
            },
            value: 1,
        });
        let arrivals = starts.chain(waits.ops.iter().map(|&dependence| data(dependence, place))).collect();
        let writer = &mut blocks[place.rank.0 as usize][place.block.0 as usize];
        writer.wait(arrivals);
        writer.carry_out(op, &program.ops[op.0 as usize]);
        writer.signal(sync.signals[op.0 as usize].iter().map(|&waiter| data(op, waiter).counter).collect());
    }
    for (rank, exits) in sync.exits.iter().enumerate() {
        let mut by_block: BTreeMap<ThreadBlock, Vec<Arrival>> = BTreeMap::new();
        for &(waiter, op) in exits {
            by_block.entry(waiter.block).or_default().push(data(op, waiter));
        }
        for (block, arrivals) in by_block {
            blocks[rank][block.0 as usize].wait(arrivals);
        }
    }
    let expects = expectations(&values, placement);
    let blocks = blocks.into_iter().zip(0..).map(|(writers, rank)| {
        writers
            .into_iter()
            .zip(0..)
            .map(|(writer, block)| {
                let place = Place { rank: Rank(rank), block: ThreadBlock(block) };
                let mut own: Vec<_> = writer.started.iter().map(|&counter| (counter, 1)).collect();
                own.extend(expects.get(&place).into_iter().flatten().copied());
                own.sort_unstable();
                Block { steps: writer.steps, expects: own }
            })
            .collect()
    });
    Schedule { name: program.name.clone(), shape: program.shape, block_cap, blocks: blocks.collect() }
}

/// The value of each signal: which one of its counter it is, in the writing block's order, from 1.
fn number_signals(placement: &Placement, sync: &Synchronization) -> FxHashMap<(OpId, Place), u32> {
    let mut counts: FxHashMap<(Place, Place), u32> = FxHashMap::default();
    let mut values = FxHashMap::default();
    for &op in &placement.order {
        for &waiter in &sync.signals[op.0 as usize] {
            let count = counts.entry((placement.place[op.0 as usize], waiter)).or_default();
            *count += 1;
            values.insert((op, waiter), *count);
        }
    }
    values
}

/// For each waiting block its data counters with their number of signals.
fn expectations(
    values: &FxHashMap<(OpId, Place), u32>,
    placement: &Placement,
) -> FxHashMap<Place, Vec<(Counter, u32)>> {
    let mut most: FxHashMap<(Place, Place), u32> = FxHashMap::default();
    for (&(op, waiter), &value) in values {
        let total = most.entry((waiter, placement.place[op.0 as usize])).or_default();
        *total = value.max(*total);
    }
    let mut expects: FxHashMap<Place, Vec<(Counter, u32)>> = FxHashMap::default();
    for ((waiter, writer), total) in most {
        let counter = Counter { kind: CounterKind::Data, writer, waiter };
        expects.entry(waiter).or_default().push((counter, total));
    }
    expects
}

/// A block being written.
struct Writer {
    rank: Rank,
    ranks: u32,
    steps: Vec<Step>,
    started: Vec<Counter>,
    /// What moves since the last barrier have read and stored.
    reads: Vec<Slice>,
    stores: Vec<Slice>,
}

impl Writer {
    fn new(rank: Rank, ranks: u32) -> Writer {
        Writer { rank, ranks, steps: Vec::new(), started: Vec::new(), reads: Vec::new(), stores: Vec::new() }
    }

    /// Peers are named starting from the next rank, so that the lists of all ranks look alike.
    fn distance(&self, peer: Place) -> (u32, ThreadBlock) {
        ((peer.rank.0 + self.ranks - self.rank.0) % self.ranks, peer.block)
    }

    fn step(&mut self, action: Action, origin: Option<OpId>) {
        if matches!(action, Action::Wait(_) | Action::BlockSync) {
            self.reads.clear();
            self.stores.clear();
        }
        self.steps.push(Step { action, origin });
    }

    fn wait(&mut self, mut arrivals: Vec<Arrival>) {
        if arrivals.is_empty() {
            return;
        }
        arrivals.sort_unstable_by_key(|a| (a.counter.kind, self.distance(a.counter.writer)));
        self.started.extend(arrivals.iter().map(|a| a.counter).filter(|c| c.kind == CounterKind::Start));
        self.step(Action::Wait(arrivals), None);
    }

    fn carry_out(&mut self, id: OpId, op: &Op) {
        // Threads of a block are unordered between barriers, and the moves of one block may map elements to threads
        // differently: they depend on the addresses.
        let meet = |of: &[Slice], with: &[Slice]| of.iter().any(|a| with.iter().any(|b| a.overlaps(b)));
        if meet(&op.sources, &self.stores) || meet(&op.dests, &self.stores) || meet(&op.dests, &self.reads) {
            self.step(Action::BlockSync, None);
        }
        self.reads.extend(op.sources.iter().copied());
        self.stores.extend(op.dests.iter().copied());
        let (sources, dests) = (op.sources.to_vec(), op.dests.to_vec());
        self.step(Action::Move { sources, dests, position: op.position }, Some(id));
    }

    fn signal(&mut self, mut counters: Vec<Counter>) {
        if counters.is_empty() {
            return;
        }
        counters.sort_unstable_by_key(|c| (c.kind, self.distance(c.waiter)));
        if !(self.reads.is_empty() && self.stores.is_empty()) {
            self.step(Action::BlockSync, None);
        }
        self.step(Action::Signal(counters), None);
    }
}
