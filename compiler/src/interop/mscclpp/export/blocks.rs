//! Blocks as lists of the format's operations, on chunks and counters of the schedule. Signals are numbered, and every wait
//! says which ones it takes.

use super::moves::{Piece, pieces};
use crate::diagnostic::{Check, Diagnostic, Loc};
use crate::interop::finding;
use crate::interop::mscclpp::most::{MOST_CHANNELS_OF_OP, MOST_SEMAPHORES_OF_OP};
use crate::program::Program;
use crate::program::ids::{BlockId, Buffer, Rank, Slice, ThreadBlock};
use crate::schedule::{Action, Block, Counter, CounterKind, Operand, Schedule, Step};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// Two blocks, the first of which signals to the second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct Wire {
    pub(super) writer: BlockId,
    pub(super) waiter: BlockId,
}

/// One signal, or the wait that takes it: the `nth` on its wire, from 0.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Tick {
    pub(super) wire: Wire,
    pub(super) nth: u32,
}

/// An operation.
#[derive(Clone, Debug)]
pub(super) enum Item {
    Nop,
    /// Signals, or waits, on several wires.
    Tell {
        waits: bool,
        sort: Sort,
        ticks: Vec<Tick>,
    },
    Move(Piece),
}

/// The means by which signals are given.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Sort {
    /// A channel, without order.
    Relaxed,
    Channel,
    Semaphore,
}

/// All blocks.
pub(super) struct Blocks {
    /// Each block's operations: `list[rank][block]`.
    pub(super) list: Vec<Vec<Vec<Item>>>,
    /// Chunks of each rank's scratch that are used, with those for what lies between two operations.
    pub(super) scratch: u32,
}

/// Writes the blocks; with the moves that the format has no operations for (`unsupported`), once a statement.
pub(super) fn blocks(schedule: &Schedule, program: &Program) -> (Blocks, Vec<Diagnostic>) {
    let signals = Signals::of(schedule);
    let mut findings = Vec::new();
    let mut told = FxHashSet::default();
    let mut list = Vec::new();
    let mut scratch = 0;
    for (rank, blocks) in schedule.blocks.iter().enumerate() {
        let mut relay = schedule.shape.scratch;
        let mut written = Vec::new();
        for (number, block) in blocks.iter().enumerate() {
            let place = BlockId { rank: Rank(rank as u32), block: ThreadBlock(number as u32) };
            let mut writer = Writer::new(place, relay, &signals);
            for (step, why) in writer.block(block) {
                let origin = step.origin.and_then(|op| program.ops.get(op.0 as usize));
                let statement = origin.map(|op| &program.statements[op.statement.0 as usize]);
                let loc = statement.map_or(program.name_loc, |statement| statement.loc);
                if told.insert((loc, why)) {
                    findings.push(refused(program, loc, &step, why));
                }
            }
            relay += writer.relayed;
            written.push(writer.items);
        }
        scratch = scratch.max(written.iter().flatten().map(scratch_of).max().unwrap_or(0));
        list.push(written);
    }
    (Blocks { list, scratch }, findings)
}

/// The end of the scratch that an operation names.
fn scratch_of(item: &Item) -> u32 {
    let Item::Move(piece) = item else { return 0 };
    let slices = piece.sources.iter().chain(&piece.dests).flat_map(Operand::slices);
    slices.filter(|slice| slice.buffer == Buffer::Scratch).map(|slice| slice.end()).max().unwrap_or(0)
}

fn refused(program: &Program, loc: Loc, step: &Step, why: &str) -> Diagnostic {
    let message = format!("`{step}` has no operation in MSCCL++'s plans");
    let found = finding(Check::Unsupported, loc, message).context(program.context()).note(why);
    let Action::Move { sources, dests, .. } = &step.action else { return found };
    match sources.iter().chain(dests).any(|operand| operand.message().is_some()) {
        true => found.help("take protocol Simple and transport put or get"),
        false => found.help(
            "compile for an architecture without the switch, as in --arch sm_80, or leave out multimem",
        ),
    }
}

/// The number on its wire of each signal of a counter.
struct Signals {
    numbers: FxHashMap<Counter, Vec<u32>>,
    /// For each waiting block its wires, with their signals: whether each is a start.
    wires: BTreeMap<BlockId, BTreeMap<Wire, Vec<bool>>>,
}

impl Signals {
    fn of(schedule: &Schedule) -> Signals {
        let mut signals = Signals { numbers: FxHashMap::default(), wires: BTreeMap::new() };
        for (_, block) in schedule.places() {
            let counters = block.steps.iter().filter_map(|step| match &step.action {
                Action::Signal(counters) => Some(counters),
                _ => None,
            });
            for counter in counters.flatten().filter(|counter| known(counter)) {
                let wire = Wire { writer: counter.writer, waiter: counter.waiter };
                let all = signals.wires.entry(counter.waiter).or_default().entry(wire).or_default();
                signals.numbers.entry(*counter).or_default().push(all.len() as u32);
                all.push(counter.kind == CounterKind::Start);
            }
        }
        signals
    }

    fn sort(&self, tick: &Tick) -> Sort {
        let Wire { writer, waiter } = tick.wire;
        let all = self.wires.get(&waiter).and_then(|wires| wires.get(&tick.wire));
        match all.and_then(|all| all.get(tick.nth as usize)) {
            _ if writer.rank == waiter.rank => Sort::Semaphore,
            Some(true) => Sort::Relaxed,
            _ => Sort::Channel,
        }
    }
}

/// Returns true if a counter belongs to blocks and not to a connection, whose moves are refused.
fn known(counter: &Counter) -> bool {
    matches!(counter.kind, CounterKind::Start | CounterKind::Data)
}

struct Writer<'a> {
    place: BlockId,
    signals: &'a Signals,
    items: Vec<Item>,
    /// The location and the number of chunks that are between two operations.
    relay: u32,
    relayed: u32,
    /// How many signals of each wire have been given, and taken.
    given: FxHashMap<Wire, u32>,
    taken: FxHashMap<Wire, u32>,
    /// The reads and stores since the last `nop`, and the wires that were signalled and waited on.
    reads: Vec<Operand>,
    stores: Vec<Operand>,
    used: FxHashSet<(bool, Wire)>,
}

impl<'a> Writer<'a> {
    fn new(place: BlockId, relay: u32, signals: &'a Signals) -> Writer<'a> {
        Writer {
            place,
            signals,
            items: Vec::new(),
            relay,
            relayed: 0,
            given: FxHashMap::default(),
            taken: FxHashMap::default(),
            reads: Vec::new(),
            stores: Vec::new(),
            used: FxHashSet::default(),
        }
    }

    /// Writes a block; the steps that cannot be, with the reason.
    fn block(&mut self, block: &Block) -> Vec<(Step, &'static str)> {
        let mut wrong = Vec::new();
        for step in &block.steps {
            match &step.action {
                Action::BlockSync => self.moved_sync(),
                Action::Signal(counters) => {
                    self.moved_sync();
                    let ticks = counters.iter().filter(|counter| known(counter)).map(|counter| {
                        let wire = Wire { writer: counter.writer, waiter: counter.waiter };
                        let given = self.given.entry(wire).or_default();
                        *given += 1;
                        Tick { wire, nth: *given - 1 }
                    });
                    let ticks = ticks.collect();
                    self.tell(false, ticks);
                }
                Action::Wait(arrivals) => {
                    let mut ticks = Vec::new();
                    for arrival in arrivals.iter().filter(|arrival| known(&arrival.counter)) {
                        let numbers = self.signals.numbers.get(&arrival.counter);
                        let place = usize::try_from(arrival.value - 1).ok();
                        let Some(&nth) = numbers.zip(place).and_then(|(numbers, at)| numbers.get(at)) else {
                            continue;
                        };
                        let Counter { writer, waiter, .. } = arrival.counter;
                        self.take(Wire { writer, waiter }, nth + 1, &mut ticks);
                    }
                    self.wait(ticks);
                }
                Action::Move { sources, dests, .. } => {
                    let len = dests.first().map_or(1, Operand::len);
                    let relay =
                        Slice { buffer: Buffer::Scratch, rank: self.place.rank, start: self.relay, len };
                    match pieces(self.place.rank, sources, dests, relay) {
                        Ok(pieces) => pieces.into_iter().for_each(|piece| self.carry_out(piece, relay)),
                        Err(why) => wrong.push((step.clone(), why)),
                    }
                }
            }
        }
        // Counters begin every call at nought.
        let mut rest = Vec::new();
        for (wire, all) in self.signals.wires.get(&self.place).into_iter().flatten() {
            self.take(*wire, all.len() as u32, &mut rest);
        }
        self.wait(rest);
        while matches!(self.items.last(), Some(Item::Nop)) {
            self.items.pop();
        }
        wrong
    }

    /// The signals of a wire up to a number that have not been waited for.
    fn take(&mut self, wire: Wire, up_to: u32, ticks: &mut Vec<Tick>) {
        let taken = self.taken.entry(wire).or_default();
        ticks.extend((*taken..up_to).map(|nth| Tick { wire, nth }));
        *taken = up_to.max(*taken);
    }

    fn nop(&mut self) {
        self.items.push(Item::Nop);
        self.reads.clear();
        self.stores.clear();
        self.used.clear();
    }

    /// A barrier, if anything has moved since the last one.
    fn moved_sync(&mut self) {
        if !(self.reads.is_empty() && self.stores.is_empty()) {
            self.nop();
        }
    }

    fn wait(&mut self, ticks: Vec<Tick>) {
        if !ticks.is_empty() {
            self.tell(true, ticks);
            self.nop();
        }
    }

    /// Signals or waits. Each is of one thread; what it counts with is not to be shared with another thread's before the next
    /// barrier.
    fn tell(&mut self, waits: bool, mut ticks: Vec<Tick>) {
        while !ticks.is_empty() {
            if ticks.iter().any(|tick| self.used.contains(&(waits, tick.wire))) {
                self.nop();
            }
            let mut now: BTreeMap<Sort, Vec<Tick>> = BTreeMap::new();
            let mut later = Vec::new();
            for tick in ticks {
                if self.used.insert((waits, tick.wire)) {
                    now.entry(self.signals.sort(&tick)).or_default().push(tick);
                } else {
                    later.push(tick);
                }
            }
            for (sort, ticks) in now {
                let most = if sort == Sort::Semaphore { MOST_SEMAPHORES_OF_OP } else { MOST_CHANNELS_OF_OP };
                for ticks in ticks.chunks(most) {
                    self.items.push(Item::Tell { waits, sort, ticks: ticks.to_vec() });
                }
            }
            ticks = later;
        }
    }

    fn carry_out(&mut self, piece: Piece, relay: Slice) {
        let meet = |of: &[Operand], with: &[Operand]| of.iter().any(|a| with.iter().any(|b| a.overlaps(b)));
        let Piece { sources, dests, .. } = &piece;
        if meet(sources, &self.stores) || meet(dests, &self.stores) || meet(dests, &self.reads) {
            self.nop();
        }
        let relays = sources.iter().chain(dests).any(|operand| *operand == Operand::Memory(relay));
        self.relayed = self.relayed.max(if relays { relay.len } else { 0 });
        self.reads.extend(sources);
        self.stores.extend(dests);
        self.items.push(Item::Move(piece));
    }
}
