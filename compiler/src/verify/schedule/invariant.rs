//! `invariant`: what every call may rely on at its beginning holds again at its end. Both sides of each counter have
//! advanced by the same number, and no start signal is outstanding: its waiter compared the hash before the starting
//! rank's kernel could end, so that the next call may overwrite the word.

use super::happens_before::{BlockKnowledge, Ended, StepStamp, WalkObserver};
use super::site::Sites;
use crate::diagnostic::words;
use crate::diagnostic::{Check, Diagnostic};
use crate::schedule::{Action, Arrival, Counter, CounterKind, Step};
use std::collections::BTreeMap;

/// Watches the waits for starts.
#[derive(Default)]
pub(super) struct Invariant {
    starts: Vec<(Counter, StepStamp)>,
}

impl WalkObserver for Invariant {
    fn moved(&mut self, _: StepStamp, _: &Step, _: &BlockKnowledge) {}

    fn waited(&mut self, at: StepStamp, arrivals: &[Arrival]) {
        let starts = arrivals.iter().map(|a| a.counter).filter(|c| c.kind == CounterKind::Start);
        self.starts.extend(starts.map(|counter| (counter, at)));
    }
}

impl Invariant {
    /// All breaches, given how the walk ended.
    pub(super) fn findings(self, sites: &Sites<'_>, ended: &Ended) -> Vec<Diagnostic> {
        let mut findings = counters(sites);
        for (counter, at) in self.starts {
            let starter = sites.blocks.of_rank(counter.writer.rank);
            if !starter.into_iter().any(|block| ended.clocks[block].covers(at)) {
                findings.push(
                    Diagnostic::new(
                        Check::Invariant,
                        sites.served(at),
                        format!("`{counter}` may be signalled by the next call before this one has read it"),
                    )
                    .note(format!("{} reads it", sites.name(at)))
                    .note(format!(
                        "missing: a wait of a block of {} for {} after that, before the kernel ends",
                        counter.writer.rank, counter.waiter
                    )),
                );
            }
        }
        findings
    }
}

fn counters(sites: &Sites<'_>) -> Vec<Diagnostic> {
    let mut sides: BTreeMap<Counter, (u32, u32)> = BTreeMap::new();
    for (place, block) in sites.schedule.places() {
        for step in &block.steps {
            if let Action::Signal(counters) = &step.action {
                for &counter in counters {
                    sides.entry(counter).or_default().0 += 1;
                }
            }
        }
        for &(counter, by) in &block.expects {
            debug_assert_eq!(counter.waiter, place);
            let expected = &mut sides.entry(counter).or_default().1;
            *expected = expected.saturating_add(by);
        }
    }
    sides
        .into_iter()
        .filter(|(_, (sent, expected))| sent != expected)
        .map(|(counter, (sent, expected))| {
            let Counter { kind, writer, waiter } = counter;
            let message = format!(
                "`{counter}` gets {} a call, but {waiter} expects {expected}",
                words::count(sent.into(), "signal")
            );
            let then = if sent > expected {
                "would not wait long enough for it"
            } else {
                "would wait for it for ever"
            };
            let help = match sent {
                0 => format!("{waiter} should not expect it"),
                _ => format!("{waiter} should have `expect {} {writer} += {sent}`", kind.name()),
            };
            Diagnostic::new(Check::Invariant, sites.program.name_loc, message)
                .note(format!("from the next call on {waiter} {then}"))
                .help(help)
        })
        .collect()
}
