//! The steps of each block: waits, moves, block-wide barriers and signals, with counters and values.

use super::assign::Placement;
use super::divide::{Task, TaskEnd, Tasks};
use super::order::{TaskConnection, loads, wire};
use super::synchronize::Synchronization;
use crate::options::Protocol;
use crate::program::Program;
use crate::program::ids::{BlockId, Rank, ThreadBlock};
use crate::schedule::{
    Action, Arrival, Block, Connection, Counter, CounterKind, FifoMessage, Operand, Schedule, Step, lines,
};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// The frame of a schedule.
pub(super) struct ScheduleFrame {
    pub(super) block_cap: u32,
    pub(super) tile: Option<u64>,
    pub(super) slots: u32,
    pub(super) instances: u32,
}

/// Lays out the schedule. The order of the tasks matters as far as they are of one block.
pub(super) fn arrange(
    program: &Program,
    tasks: &Tasks,
    placement: &Placement,
    sync: &Synchronization,
    ScheduleFrame { block_cap, tile, slots, instances }: ScheduleFrame,
) -> Schedule {
    let values = number_signals(placement, sync);
    let ranks = program.shape.ranks;
    let mut blocks: Vec<Vec<BlockWriter>> = placement
        .blocks
        .iter()
        .zip(0..)
        .map(|(&count, rank)| (0..count).map(|_| BlockWriter::new(Rank(rank), ranks)).collect())
        .collect();
    for (rank, waiters) in (0..).map(Rank).zip(&sync.starts) {
        let writer = BlockId { rank, block: ThreadBlock(0) };
        let starts = waiters.iter().map(|&waiter| Counter { kind: CounterKind::Start, writer, waiter });
        blocks[rank.0 as usize][0].signal(starts.collect());
    }
    let data = |task: u32, waiter: BlockId| {
        let writer = placement.place[task as usize];
        let counter = Counter { kind: CounterKind::Data, writer, waiter };
        Arrival { counter, value: values[&(task, waiter)] as i32 }
    };
    let mut fifos = FifoNumbers::new(tasks, placement, slots);
    for &task in &placement.order {
        let place = placement.place[task as usize];
        let waits = &sync.before[task as usize];
        let starts = waits.starts.iter().map(|&rank| Arrival {
            counter: Counter {
                kind: CounterKind::Start,
                writer: BlockId { rank, block: ThreadBlock(0) },
                waiter: place,
            },
            value: 1,
        });
        let mut arrivals: Vec<Arrival> =
            starts.chain(waits.tasks.iter().map(|&dependence| data(dependence, place))).collect();
        arrivals.extend(fifos.messages(&waits.messages));
        arrivals.extend(fifos.store(task));
        let writer = &mut blocks[place.rank.0 as usize][place.block.0 as usize];
        writer.wait(arrivals);
        let carried = &tasks.list[task as usize];
        let operands = |ends: &[TaskEnd]| ends.iter().map(|end| fifos.operand(end)).collect();
        writer.carry_out(carried, operands(&carried.sources), operands(&carried.dests));
        let mut signals: Vec<Counter> =
            sync.signals[task as usize].iter().map(|&waiter| data(task, waiter).counter).collect();
        signals.extend(fifos.done(task));
        writer.signal(signals);
    }
    for (rank, exits) in sync.exits.iter().enumerate() {
        let mut by_block: BTreeMap<ThreadBlock, Vec<Arrival>> = BTreeMap::new();
        for &(waiter, task) in exits {
            by_block.entry(waiter.block).or_default().push(data(task, waiter));
        }
        for (block, arrivals) in by_block {
            blocks[rank][block.0 as usize].wait(arrivals);
        }
    }
    let mut expects = expectations(&values, placement);
    for (counter, count) in fifos.expectations() {
        expects.entry(counter.waiter).or_default().push((counter, count));
    }
    let blocks = blocks.into_iter().zip(0..).map(|(writers, rank)| {
        writers
            .into_iter()
            .zip(0..)
            .map(|(writer, block)| {
                let place = BlockId { rank: Rank(rank), block: ThreadBlock(block) };
                let mut own: Vec<_> = writer.started.iter().map(|&counter| (counter, 1)).collect();
                own.extend(expects.get(&place).into_iter().flatten().copied());
                own.sort_unstable();
                Block { steps: writer.steps, expects: own }
            })
            .collect()
    });
    let blocks = blocks.collect();
    let (name, shape) = (program.name.clone(), program.scheduled_shape());
    Schedule { name, shape, block_cap, tile, slots, instances, blocks }
}

/// The value of each signal: which one of its counter it is, in the writing block's order, from 1.
fn number_signals(placement: &Placement, sync: &Synchronization) -> FxHashMap<(u32, BlockId), u32> {
    let mut counts: FxHashMap<(BlockId, BlockId), u32> = FxHashMap::default();
    let mut values = FxHashMap::default();
    for &task in &placement.order {
        for &waiter in &sync.signals[task as usize] {
            let count = counts.entry((placement.place[task as usize], waiter)).or_default();
            *count += 1;
            values.insert((task, waiter), *count);
        }
    }
    values
}

/// For each waiting block its data counters with their number of signals.
fn expectations(
    values: &FxHashMap<(u32, BlockId), u32>,
    placement: &Placement,
) -> FxHashMap<BlockId, Vec<(Counter, u32)>> {
    let mut most: FxHashMap<(BlockId, BlockId), u32> = FxHashMap::default();
    for (&(task, waiter), &value) in values {
        let total = most.entry((waiter, placement.place[task as usize])).or_default();
        *total = value.max(*total);
    }
    let mut expects: FxHashMap<BlockId, Vec<(Counter, u32)>> = FxHashMap::default();
    for ((waiter, writer), total) in most {
        let counter = Counter { kind: CounterKind::Data, writer, waiter };
        expects.entry(waiter).or_default().push((counter, total));
    }
    expects
}

/// The messages of all connections while blocks are written.
struct FifoNumbers<'a> {
    tasks: &'a Tasks,
    placement: &'a Placement,
    slots: u32,
    /// Messages of a tile.
    load: FxHashMap<TaskConnection, u32>,
    /// Messages stored so far.
    stored: FxHashMap<TaskConnection, u32>,
    /// Messages waited for.
    heard: FxHashMap<TaskConnection, u32>,
    read: FxHashMap<TaskConnection, FifoReads>,
    /// The number of each message on its connection.
    number: Vec<u32>,
}

/// The messages of a connection that have been read.
struct FifoReads {
    /// True for each message that has been read.
    read: Vec<bool>,
    /// Messages at the beginning that have all been read.
    prefix: u32,
    /// Credits given.
    given: u32,
}

impl FifoReads {
    fn new(load: u32) -> FifoReads {
        FifoReads { read: vec![false; load as usize], prefix: 0, given: 0 }
    }
}

impl<'a> FifoNumbers<'a> {
    fn new(tasks: &'a Tasks, placement: &'a Placement, slots: u32) -> FifoNumbers<'a> {
        let mut number = vec![0; tasks.messages.len()];
        let mut stored: FxHashMap<TaskConnection, u32> = FxHashMap::default();
        for &task in &placement.order {
            for end in &tasks.list[task as usize].dests {
                let TaskEnd::Message(message) = *end else { continue };
                let next = stored.entry(wire(tasks, placement, message)).or_default();
                number[message as usize] = *next;
                *next += 1;
            }
        }
        FifoNumbers {
            tasks,
            placement,
            slots,
            load: loads(tasks, placement),
            stored: FxHashMap::default(),
            heard: FxHashMap::default(),
            read: FxHashMap::default(),
            number,
        }
    }

    fn wire(&self, message: u32) -> TaskConnection {
        wire(self.tasks, self.placement, message)
    }

    fn connection((protocol, writer, reader): TaskConnection) -> Connection {
        Connection { protocol, writer, reader }
    }

    fn operand(&self, end: &TaskEnd) -> Operand {
        match end {
            TaskEnd::Memory(slice) => Operand::Memory(*slice),
            TaskEnd::Multicast(multicast) => Operand::Multicast(*multicast),
            TaskEnd::Message(message) => Operand::Message(FifoMessage {
                connection: FifoNumbers::connection(self.wire(*message)),
                number: self.number[*message as usize],
            }),
        }
    }

    /// The arrivals that a block needs before it reads announced messages.
    fn messages(&mut self, messages: &[u32]) -> Vec<Arrival> {
        let mut wanted: BTreeMap<TaskConnection, u32> = BTreeMap::new();
        for &message in messages {
            let up_to = wanted.entry(self.wire(message)).or_default();
            *up_to = (self.number[message as usize] + 1).max(*up_to);
        }
        let mut arrivals = Vec::new();
        for (wire, up_to) in wanted {
            let heard = self.heard.entry(wire).or_default();
            if *heard < up_to {
                *heard = up_to;
                let announced = FifoNumbers::connection(wire).announced();
                arrivals.extend(announced.map(|counter| Arrival { counter, value: up_to as i32 }));
            }
        }
        arrivals
    }

    /// The credits that a task needs to store its messages. Where all of a tile's messages have slots, it is enough to
    /// wait once.
    fn store(&mut self, task: u32) -> Vec<Arrival> {
        let mut arrivals: BTreeMap<TaskConnection, i32> = BTreeMap::new();
        let tasks = self.tasks;
        for end in &tasks.list[task as usize].dests {
            let TaskEnd::Message(message) = *end else { continue };
            let wire = self.wire(message);
            let (load, slots) = (self.load[&wire], self.slots);
            let stored = self.stored.entry(wire).or_default();
            *stored += 1;
            if load > slots {
                arrivals.insert(wire, *stored as i32 - slots as i32);
            } else if *stored == 1 {
                arrivals.insert(wire, load as i32 - slots as i32);
            }
        }
        let arrival = |(wire, value)| Arrival { counter: FifoNumbers::connection(wire).credit(), value };
        arrivals.into_iter().map(arrival).collect()
    }

    /// The signals of a task's block about messages: for those that it has stored, and credits for those that it has read.
    /// If no slot is short before, all credits come at the end.
    fn done(&mut self, task: u32) -> Vec<Counter> {
        let mut signals = Vec::new();
        let tasks = self.tasks;
        for end in &tasks.list[task as usize].dests {
            let TaskEnd::Message(message) = *end else { continue };
            signals.extend(FifoNumbers::connection(self.wire(message)).announced());
        }
        for end in &tasks.list[task as usize].sources {
            let TaskEnd::Message(message) = *end else { continue };
            let wire = self.wire(message);
            let load = self.load[&wire];
            let FifoReads { read, prefix, given } =
                self.read.entry(wire).or_insert_with(|| FifoReads::new(load));
            read[self.number[message as usize] as usize] = true;
            *prefix += read[*prefix as usize..].iter().take_while(|read| **read).count() as u32;
            if load > self.slots || *prefix == load {
                let credits = *prefix - *given;
                *given = *prefix;
                signals.extend((0..credits).map(|_| FifoNumbers::connection(wire).credit()));
            }
        }
        signals
    }

    /// The counters of all connections, with the signals of a tile.
    fn expectations(&self) -> Vec<(Counter, u32)> {
        let counters = |(&wire, &load): (&TaskConnection, &u32)| {
            let connection = FifoNumbers::connection(wire);
            let both = connection.announced().into_iter().chain([connection.credit()]);
            both.map(move |counter| (counter, load)).collect::<Vec<_>>()
        };
        self.load.iter().flat_map(counters).collect()
    }
}

/// A block being written.
struct BlockWriter {
    rank: Rank,
    ranks: u32,
    steps: Vec<Step>,
    started: Vec<Counter>,
    /// Operands that moves since the last barrier have read and stored, with the protocol of the lines they went through.
    reads: Vec<(Operand, Option<Protocol>)>,
    stores: Vec<(Operand, Option<Protocol>)>,
}

impl BlockWriter {
    fn new(rank: Rank, ranks: u32) -> BlockWriter {
        BlockWriter {
            rank,
            ranks,
            steps: Vec::new(),
            started: Vec::new(),
            reads: Vec::new(),
            stores: Vec::new(),
        }
    }

    /// Peers are named starting from the next rank, so that the lists of all ranks look alike.
    fn distance(&self, peer: BlockId) -> (u32, ThreadBlock) {
        ((peer.rank.0 + self.ranks - self.rank.0) % self.ranks, peer.block)
    }

    fn step(&mut self, step: Step) {
        if matches!(step.action, Action::Wait(_) | Action::BlockSync) {
            self.reads.clear();
            self.stores.clear();
        }
        self.steps.push(step);
    }

    fn wait(&mut self, mut arrivals: Vec<Arrival>) {
        if arrivals.is_empty() {
            return;
        }
        arrivals.sort_unstable_by_key(|a| (a.counter.kind, self.distance(a.counter.writer)));
        self.started.extend(arrivals.iter().map(|a| a.counter).filter(|c| c.kind == CounterKind::Start));
        self.step(Step::plain(Action::Wait(arrivals)));
    }

    fn carry_out(&mut self, task: &Task, sources: Vec<Operand>, dests: Vec<Operand>) {
        // A task without ends is there for its waits and signals alone.
        if dests.is_empty() {
            return;
        }
        // Threads of a block are unordered between barriers, and the moves of one block may map elements to threads
        // differently: they depend on the addresses, but for lines.
        let through = lines(&sources, &dests);
        let meet = |of: &[Operand], with: &[(Operand, Option<Protocol>)]| {
            let apart = |other: Option<Protocol>| through.is_none() || other != through;
            of.iter().any(|a| with.iter().any(|(b, other)| apart(*other) && a.overlaps(b)))
        };
        if meet(&sources, &self.stores) || meet(&dests, &self.stores) || meet(&dests, &self.reads) {
            self.step(Step::plain(Action::BlockSync));
        }
        self.reads.extend(sources.iter().map(|&source| (source, through)));
        self.stores.extend(dests.iter().map(|&dest| (dest, through)));
        let action = Action::Move { sources, dests, position: task.position };
        self.step(Step { action, origin: Some(task.op), transfer: task.transfer });
    }

    fn signal(&mut self, mut counters: Vec<Counter>) {
        if counters.is_empty() {
            return;
        }
        counters.sort_by_key(|c| (c.kind, self.distance(c.waiter)));
        if !(self.reads.is_empty() && self.stores.is_empty()) {
            self.step(Step::plain(Action::BlockSync));
        }
        self.step(Step::plain(Action::Signal(counters)));
    }
}
