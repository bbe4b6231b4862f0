//! `form`: the rules that make a static proof possible (one writing and one waiting block a counter, every wait for a
//! signal that exists, every operand in its buffer).

use super::site::Sites;
use crate::diagnostic::words;
use crate::diagnostic::{Check, Diagnostic};
use crate::options::Protocol;
use crate::program::ids::{BlockId, Buffer, Slice};
use crate::schedule::FIFOS;
use crate::schedule::SLOTS;
use crate::schedule::domain::Domain;
use crate::schedule::{
    Action, Arrival, Connection, Counter, CounterKind, FifoMessage, Fifos, Operand, Schedule, Step,
};
use crate::verify::program::out_of_bounds::extent;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// Returns all breaches. The other checks of stage 2 rely on there being none.
pub(super) fn form(sites: &Sites<'_>, domain: &Domain) -> Vec<Diagnostic> {
    let scales = sites.program.ops.iter().any(|op| !op.scaling.is_none());
    let mut form = FormCheck { sites, scales, multicast: domain.multicast, findings: Vec::new() };
    form.world(domain);
    if !form.findings.is_empty() {
        return form.findings;
    }
    let signals = form.steps();
    let waited = form.waits(&signals);
    form.fifos(&signals);
    let mut unwaited: Vec<_> = signals.into_iter().filter(|(c, _)| !waited.contains(c)).collect();
    unwaited.sort_unstable_by_key(|(counter, _)| *counter);
    for (counter, CounterSignals { first: (place, step), .. }) in unwaited {
        let waiter = counter.waiter;
        form.breach(place, step, format_args!("signals `{counter}`, for which {waiter} never waits"));
    }
    form.findings
}

/// The signals of one counter.
#[derive(Clone, Copy)]
struct CounterSignals {
    count: u32,
    first: (BlockId, usize),
}

struct FormCheck<'a> {
    sites: &'a Sites<'a>,
    /// Some operation scales.
    scales: bool,
    /// The world has a switch that multicasts.
    multicast: bool,
    findings: Vec<Diagnostic>,
}

impl FormCheck<'_> {
    fn finding(&mut self, message: String) {
        self.findings.push(Diagnostic::new(Check::Form, self.sites.program.name_loc, message));
    }

    fn breach(&mut self, place: BlockId, step: usize, what: impl std::fmt::Display) {
        let at = self.sites.stamp(place, step);
        let message = format!("step {step} of {place} {what}");
        let note = format!("the step is {}", self.sites.what(at));
        self.findings.push(Diagnostic::new(Check::Form, self.sites.served(at), message).note(note));
    }

    /// Judges every step but waits; returns the signals.
    fn steps(&mut self) -> FxHashMap<Counter, CounterSignals> {
        let ops = self.sites.program.ops.len();
        let mut signals: FxHashMap<Counter, CounterSignals> = FxHashMap::default();
        for (place, block) in self.sites.schedule.places() {
            for (i, step) in block.steps.iter().enumerate() {
                if let Some(op) = step.origin.filter(|op| op.0 as usize >= ops) {
                    let has = words::count(ops as u64, "operation");
                    self.breach(place, i, format_args!("carries out {op} of a program that has {has}"));
                }
                match &step.action {
                    Action::Move { sources, dests, position } => {
                        self.scaled(place, i, step, (sources, dests));
                        self.operands(place, i, (sources, dests, *position));
                    }
                    Action::Signal(counters) => {
                        for counter in counters {
                            self.counter(place, i, counter);
                            let given = signals
                                .entry(*counter)
                                .or_insert(CounterSignals { count: 0, first: (place, i) });
                            given.count += 1;
                            if counter.kind == CounterKind::Start && given.count > 1 {
                                let what = format_args!("signals `{counter}` a second time in one call");
                                self.breach(place, i, what);
                            }
                        }
                    }
                    Action::Wait(_) | Action::BlockSync => {}
                }
            }
        }
        signals
    }

    /// Judges every wait; returns the counters waited for.
    fn waits(&mut self, signals: &FxHashMap<Counter, CounterSignals>) -> FxHashSet<Counter> {
        let mut waited = FxHashSet::default();
        for (place, block) in self.sites.schedule.places() {
            for (i, step) in block.steps.iter().enumerate() {
                let Action::Wait(arrivals) = &step.action else { continue };
                for &Arrival { counter, value } in arrivals {
                    self.counter(place, i, &counter);
                    waited.insert(counter);
                    let count = signals.get(&counter).map_or(0, |given| given.count);
                    // A credit may be one of an earlier tile or call.
                    let least = if matches!(counter.kind, CounterKind::Credit(_)) { i32::MIN } else { 1 };
                    if value < least || i64::from(value) > i64::from(count) || count == 0 {
                        let given = match count {
                            0 => "nobody signals".to_owned(),
                            n => format!("gets {} a call", words::count(n.into(), "signal")),
                        };
                        let what = format_args!("waits for signal {value} of `{counter}`, which {given}");
                        self.breach(place, i, what);
                    }
                }
            }
        }
        waited
    }

    fn world(&mut self, domain: &Domain) {
        let (schedule, program) = (self.sites.schedule, self.sites.program);
        if schedule.shape != program.scheduled_shape() {
            self.finding(format!(
                "the schedule is for {}, the program for {}",
                schedule.shape,
                program.scheduled_shape()
            ));
        }
        if schedule.blocks.len() != domain.ranks as usize {
            self.finding(format!(
                "the schedule has {} ranks, the world {}",
                schedule.blocks.len(),
                domain.ranks
            ));
        }
        for (rank, blocks) in schedule.blocks.iter().enumerate() {
            if blocks.is_empty() {
                self.finding(format!("r{rank} has no thread block; every rank runs at least one"));
            }
        }
        let moves_afar = |schedule: &Schedule| {
            schedule.places().any(|(place, block)| {
                block.steps.iter().any(|s| match &s.action {
                    Action::Move { sources, dests, .. } => {
                        sources.iter().chain(dests).flat_map(Operand::slices).any(|s| s.rank != place.rank)
                    }
                    _ => false,
                })
            })
        };
        if schedule.instances == 0 || schedule.instances > 1 && schedule.tile.is_none() {
            self.finding(format!(
                "{} instances, which share out tiles, in a schedule without",
                schedule.instances
            ));
        }
        if !(1..=SLOTS).contains(&schedule.slots) {
            self.finding(format!("a FIFO with {} of its 1 to {SLOTS} slots", schedule.slots));
        }
        if !domain.symmetric && moves_afar(schedule) {
            self.finding("a step reaches into a peer's buffer, and this world maps none".to_owned());
        }
        if !domain.whole_lines && has_lines_of_128(schedule) {
            self.finding("a step moves by LL128, and this world's links may tear its lines".to_owned());
        }
    }

    fn counter(&mut self, place: BlockId, step: usize, counter: &Counter) {
        let peer = if counter.writer == place { counter.waiter } else { counter.writer };
        if self.sites.schedule.block(peer).is_none() {
            self.breach(place, step, format_args!("names {peer}, which does not exist"));
        } else if counter.kind == CounterKind::Start && counter.writer.block.0 != 0 {
            self.breach(place, step, format_args!("has `{counter}`, but only block 0 announces a start"));
        } else if counter.kind == CounterKind::Start && counter.writer.rank == counter.waiter.rank {
            self.breach(place, step, format_args!("has `{counter}`, a start within one rank"));
        } else if counter.writer == counter.waiter {
            self.breach(place, step, format_args!("has `{counter}`, a counter to itself"));
        }
    }

    /// Judges a step of a program that scales. Scaling is known by operation, so each step that carries one out has to be
    /// exactly that: its sources and destinations, or messages in their places, and further messages.
    fn scaled(&mut self, place: BlockId, at: usize, step: &Step, (sources, dests): (&[Operand], &[Operand])) {
        if !self.scales || step.transfer && sources.len() == 1 {
            return;
        }
        let stands_for = |operand: &Operand, slice: &Slice| match operand {
            Operand::Memory(own) => own.len == 1 && slice.locations().any(|l| l == own.at(0)) || own == slice,
            Operand::Message(_) => slice.rank != place.rank || self.sites.program.is_in_flight(slice),
            Operand::Multicast(_) => false,
        };
        let switched = |operands: &[Operand]| -> Vec<Operand> {
            operands
                .iter()
                .flat_map(|o| o.message().map(|_| *o).into_iter().chain(o.slices().map(Operand::Memory)))
                .collect()
        };
        let (sources, dests) = (&switched(sources)[..], &switched(dests)[..]);
        let same = step.origin.and_then(|op| self.sites.program.ops.get(op.0 as usize)).is_some_and(|op| {
            let in_turn = |operands: &[Operand], slices: &[Slice]| {
                operands.len() == slices.len() && operands.iter().zip(slices).all(|(o, s)| stands_for(o, s))
            };
            let beyond = |operands: &[Operand]| operands.iter().all(|operand| operand.message().is_some());
            in_turn(sources, &op.sources)
                && dests.len() >= op.dests.len()
                && in_turn(&dests[..op.dests.len()], &op.dests)
                && beyond(&dests[op.dests.len()..])
        });
        if !same {
            self.breach(place, at, "does not move what its operation does, by which it would be scaled");
        }
    }

    fn operands(
        &mut self,
        place: BlockId,
        step: usize,
        (sources, dests, position): (&[Operand], &[Operand], u32),
    ) {
        let shape = self.sites.schedule.shape;
        let program = self.sites.program;
        let (Some(first), false) = (sources.first(), dests.is_empty()) else {
            self.breach(place, step, "moves nothing");
            return;
        };
        let tiled = self.sites.schedule.tile.is_some();
        for operand in sources.iter().chain(dests) {
            if let (Operand::Message(message), false) = (operand, tiled) {
                self.breach(place, step, format_args!("moves {message} in a schedule without tiles"));
                return;
            }
            let exists = |s: &Slice| s.rank.0 < shape.ranks && s.end() <= shape.chunks(s.buffer, s.rank);
            if let Some(slice) = operand.slices().find(|slice| !exists(slice)) {
                self.breach(place, step, format_args!("touches {slice}, which does not exist"));
                if let (Some(finding), true) = (self.findings.last_mut(), slice.rank.0 < shape.ranks) {
                    finding.notes.push(extent(&shape, slice.buffer, slice.rank));
                }
                return;
            }
            if dests.contains(operand)
                && let Some(slice) = operand.slices().find(|slice| slice.buffer == Buffer::Input)
            {
                self.breach(place, step, format_args!("stores {slice}; a call leaves its input as it is"));
                return;
            }
            if tiled && operand.len() > 1 {
                self.breach(place, step, format_args!("moves {operand}, several chunks, tile by tile"));
                return;
            }
        }
        let switched = |side: &[Operand]| side.iter().any(|o| matches!(o, Operand::Multicast(_)));
        for side in [sources, dests].into_iter().filter(|side| switched(side)) {
            if !self.multicast {
                self.breach(place, step, "goes through the switch, and this world has none that multicasts");
            } else if side.len() > 1 {
                self.breach(place, step, "joins chunks that go through the switch with others");
            }
        }
        if (switched(sources) || switched(dests))
            && sources.iter().chain(dests).any(|o| o.message().is_some())
        {
            self.breach(place, step, "moves between the switch and a slot");
        }
        for operand in sources.iter().chain(dests) {
            let own = operand.slices().next().and_then(|slice| shape.position(slice.buffer, slice.start));
            let same_sizes = program.divisible || own.is_none_or(|own| own == position);
            if operand.len() != first.len() || !same_sizes {
                self.breach(place, step, format_args!("joins {first} and {operand}, which differ in size"));
                return;
            }
        }
        let scratch =
            |operand: &Operand| operand.slices().next().is_none_or(|slice| slice.buffer == Buffer::Scratch);
        let passes = sources.iter().chain(dests).any(scratch);
        if passes && !program.divisible && position.saturating_add(first.len()) > shape.chunks {
            self.breach(place, step, format_args!("moves {first} by way of scratch past the end of a unit"));
        }
        for (i, dest) in dests.iter().enumerate() {
            let rival = sources.iter().filter(|s| *s != dest).chain(&dests[..i]).find(|s| s.overlaps(dest));
            if let Some(rival) = rival {
                self.breach(place, step, format_args!("stores {dest}, which overlaps {rival}"));
            }
        }
    }

    /// Judges connections: numbers in order, each message stored once and read, one credit a message, FIFOs that there
    /// are, and one protocol a move.
    fn fifos(&mut self, signals: &FxHashMap<Counter, CounterSignals>) {
        let mut stored: BTreeMap<Connection, (u32, BlockId, usize)> = BTreeMap::new();
        let mut read: FxHashSet<FifoMessage> = FxHashSet::default();
        let mut reads: Vec<(BlockId, usize, FifoMessage)> = Vec::new();
        let schedule = self.sites.schedule;
        for (place, block) in schedule.places() {
            for (i, step) in block.steps.iter().enumerate() {
                let Action::Move { sources, dests, .. } = &step.action else { continue };
                let messages = || sources.iter().chain(dests).filter_map(Operand::message);
                let protocol = messages().next().map(|message| message.connection.protocol);
                if messages().any(|message| Some(message.connection.protocol) != protocol) {
                    self.breach(place, i, "moves messages of different protocols");
                }
                for message in messages() {
                    self.counter(place, i, &message.connection.credit());
                }
                for message in sources.iter().filter_map(Operand::message) {
                    read.insert(*message);
                    reads.push((place, i, *message));
                }
                for FifoMessage { connection, number } in dests.iter().filter_map(Operand::message) {
                    let (next, ..) = stored.entry(*connection).or_insert((0, place, i));
                    let due = *next;
                    *next = due.max(*number) + 1;
                    if due != *number {
                        let what =
                            format_args!("stores message {number} of `{connection}` where {due} is due");
                        self.breach(place, i, what);
                    }
                }
            }
        }
        for (place, i, message) in reads {
            if stored.get(&message.connection).is_none_or(|(count, ..)| *count <= message.number) {
                self.breach(place, i, format_args!("reads {message}, which nobody stores"));
            }
        }
        let given = |counter: Counter| signals.get(&counter).map_or(0, |given| given.count);
        for (&connection, &(count, place, i)) in &stored {
            let unread =
                (0..count).map(|number| FifoMessage { connection, number }).find(|m| !read.contains(m));
            if let Some(message) = unread {
                self.breach(place, i, format_args!("stores to `{connection}`, and {message} is never read"));
            }
            for counter in [Some(connection.credit()), connection.announced()].into_iter().flatten() {
                if given(counter) != count {
                    let (messages, signals) = (
                        words::count(count.into(), "message"),
                        words::count(given(counter).into(), "signal"),
                    );
                    let what = format_args!(
                        "stores to `{connection}`, which carries {messages} a tile and has {signals} of `{counter}`"
                    );
                    self.breach(place, i, what);
                }
            }
        }
        let of_no_message =
            |counter: &&Counter| counter.connection().is_some_and(|c| !stored.contains_key(&c));
        let mut idle: Vec<Counter> = signals.keys().filter(of_no_message).copied().collect();
        idle.sort_unstable();
        for counter in idle {
            let CounterSignals { first: (place, step), .. } = signals[&counter];
            self.breach(
                place,
                step,
                format_args!("signals `{counter}`, whose connection carries no message"),
            );
        }
        let most = Fifos::of(schedule).most().saturating_mul(schedule.instances);
        if most > FIFOS {
            self.finding(format!("the schedule has {most} connections of one protocol from one rank to another, more than the {FIFOS} that there is a FIFO for"));
        }
    }
}

/// Returns true if any message goes through lines of LL128.
fn has_lines_of_128(schedule: &Schedule) -> bool {
    schedule.places().flat_map(|(_, block)| &block.steps).any(|step| match &step.action {
        Action::Move { sources, dests, .. } => {
            let mut messages = sources.iter().chain(dests).filter_map(Operand::message);
            messages.any(|message| message.connection.protocol == Protocol::Ll128)
        }
        _ => false,
    })
}
