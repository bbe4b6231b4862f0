//! `slot-reuse`: a FIFO slot stored to before its last message is known to have been read, or given back before all
//! threads have read it. Credits of earlier tiles and calls count, and nothing else does, so that every tile may come
//! after every other and after any call that leaves counters in step.

use super::happens_before::{BlockKnowledge, StepStamp, WalkObserver};
use super::site::Sites;
use crate::diagnostic::words;
use crate::diagnostic::{Check, Diagnostic, Loc};
use crate::schedule::{Action, Arrival, Connection, Counter, CounterKind, FifoMessage, Operand, Step};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// A fault of a message.
enum SlotFault {
    /// Stored without the credit for the last content of its slot.
    Unpaid,
    /// Its credit is given at a step of the reading block where threads may still read.
    GivenEarly(StepStamp),
    /// Read at a step after its credit was given.
    ReadLate(StepStamp),
}

/// Watches messages and credits.
pub(super) struct SlotReuseCheck {
    slots: u32,
    /// The credits that the writing block has waited for in this tile.
    paid: FxHashMap<Connection, i32>,
    /// The last read of each message.
    read: FxHashMap<FifoMessage, StepStamp>,
    /// Credits given.
    given: FxHashMap<Connection, u32>,
    wrong: Vec<(StepStamp, FifoMessage, SlotFault)>,
}

impl SlotReuseCheck {
    pub(super) fn new(slots: u32) -> SlotReuseCheck {
        SlotReuseCheck {
            slots,
            paid: FxHashMap::default(),
            read: FxHashMap::default(),
            given: FxHashMap::default(),
            wrong: Vec::new(),
        }
    }

    /// Returns one finding for each statement and kind of fault.
    pub(super) fn findings(self, sites: &Sites<'_>) -> Vec<Diagnostic> {
        let slots = self.slots;
        let mut groups: BTreeMap<(Loc, u8), (Diagnostic, u64)> = BTreeMap::new();
        for (at, message, wrong) in &self.wrong {
            let sort = match wrong {
                SlotFault::Unpaid => 0,
                SlotFault::GivenEarly(_) => 1,
                SlotFault::ReadLate(_) => 2,
            };
            let describe = || (finding(sites, slots, *at, message, wrong), 0);
            groups
                .entry((sites.served(*at), sort))
                .and_modify(|(_, more)| *more += 1)
                .or_insert_with(describe);
        }
        let finish = |(finding, more): (Diagnostic, u64)| match more {
            0 => finding,
            more => finding.note(format!("{} likewise", words::count(more, "more message"))),
        };
        groups.into_values().map(finish).collect()
    }
}

fn finding(
    sites: &Sites<'_>,
    slots: u32,
    at: StepStamp,
    message: &FifoMessage,
    wrong: &SlotFault,
) -> Diagnostic {
    let Connection { writer, reader, .. } = message.connection;
    let credit = message.connection.credit().kind.name();
    let finding = |text: String| Diagnostic::new(Check::SlotReuse, sites.served(at), text);
    match wrong {
        SlotFault::Unpaid => {
            let needed = i64::from(message.number) + 1 - i64::from(slots);
            finding(format!("{writer} stores {message} where the slot's last message may not have been read"))
                .note(format!("{} stores it", sites.name(at)))
                .note(format!(
                    "missing: `wait {credit} {reader} >= {needed}` before it, as the FIFO has {}",
                    words::count(slots.into(), "slot")
                ))
        }
        SlotFault::GivenEarly(read) => finding(format!("{reader} gives {message} back while it may be read"))
            .note(format!("{} reads it", sites.name(*read)))
            .note(format!("{} gives it back", sites.name(at)))
            .note(format!("missing: a `sync` of {reader} between the two")),
        SlotFault::ReadLate(read) => finding(format!("{reader} reads {message} after giving it back"))
            .note(format!("{} reads it", sites.name(*read)))
            .note(format!("missing: the `{credit}` signals of {reader} after that step")),
    }
}

impl WalkObserver for SlotReuseCheck {
    fn moved(&mut self, at: StepStamp, step: &Step, _: &BlockKnowledge) {
        let Action::Move { sources, dests, .. } = &step.action else { return };
        for message in sources.iter().filter_map(Operand::message) {
            if self.given.get(&message.connection).is_some_and(|&given| given > message.number) {
                self.wrong.push((at, *message, SlotFault::ReadLate(at)));
            }
            self.read.insert(*message, at);
        }
        for message in dests.iter().filter_map(Operand::message) {
            let needed = i64::from(message.number) + 1 - i64::from(self.slots);
            let paid = self.paid.get(&message.connection);
            if paid.is_none_or(|&paid| i64::from(paid) < needed) {
                self.wrong.push((at, *message, SlotFault::Unpaid));
            }
        }
    }

    fn waited(&mut self, _: StepStamp, arrivals: &[Arrival]) {
        let credits = arrivals.iter().filter(|a| matches!(a.counter.kind, CounterKind::Credit(_)));
        for Arrival { counter, value } in credits {
            let Some(connection) = counter.connection() else { continue };
            let paid = self.paid.entry(connection).or_insert(*value);
            *paid = (*paid).max(*value);
        }
    }

    fn signalled(&mut self, at: StepStamp, counters: &[Counter], clock: &BlockKnowledge) {
        let credits = counters.iter().filter(|counter| matches!(counter.kind, CounterKind::Credit(_)));
        for connection in credits.filter_map(Counter::connection) {
            let given = self.given.entry(connection).or_default();
            let message = FifoMessage { connection, number: *given };
            *given += 1;
            match self.read.get(&message) {
                Some(read) if !clock.covers(*read) => {
                    self.wrong.push((at, message, SlotFault::GivenEarly(*read)));
                }
                // One that is read later is found there.
                _ => {}
            }
        }
    }
}
