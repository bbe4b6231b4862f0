//! `deadlock`: waits that no signal can meet. Waits are for known signals, so one run decides for every interleaving.

use super::happens_before::{Ended, Stamp};
use super::site::Sites;
use crate::diagnostic::{Check, Diagnostic};
use crate::schedule::{Action, Arrival};

/// One finding, on the cycle of blocks that wait for each other.
pub(super) fn deadlock(sites: &Sites<'_>, ended: &Ended) -> Vec<Diagnostic> {
    let Some(&(first, _)) = ended.stuck.first() else { return Vec::new() };
    // Every stuck block waits for a signal of another stuck block, so that following them ends in a cycle.
    let mut path: Vec<(Stamp, Arrival)> = Vec::new();
    let mut block = first;
    while !path.iter().any(|(at, _)| at.block as usize == block) {
        let Some(link) = blocked_by(sites, ended, block) else { break };
        path.push(link);
        block = sites.blocks.number(link.1.counter.writer);
    }
    let begin = path.iter().position(|(at, _)| at.block as usize == block).unwrap_or(0);
    let cycle = &path[begin..];
    let Some((at, _)) = cycle.first() else { return Vec::new() };
    let names: Vec<String> =
        cycle.iter().map(|(at, _)| sites.blocks.place(at.block as usize).to_string()).collect();
    let message = match &names[..] {
        [one] => format!("{one} waits for ever: its signal comes after its own wait"),
        many => format!("{} wait for each other", many.join(", ")),
    };
    let mut finding = Diagnostic::new(Check::Deadlock, sites.next_loc(*at), message);
    for (at, arrival) in cycle {
        finding = finding.note(format!(
            "{} waits for `{}`, signal {} of {}",
            sites.name(*at),
            arrival.counter,
            arrival.value,
            arrival.counter.writer
        ));
    }
    if ended.stuck.len() > cycle.len() {
        let more = ended.stuck.len() - cycle.len();
        finding =
            finding.note(format!("{more} more block{} wait behind them", if more == 1 { "" } else { "s" }));
    }
    vec![finding]
}

/// The first unmet arrival of a stuck block, whose writer is then stuck before that signal.
fn blocked_by(sites: &Sites<'_>, ended: &Ended, block: usize) -> Option<(Stamp, Arrival)> {
    let &(_, step) = ended.stuck.iter().find(|(b, _)| *b == block)?;
    let schedule = sites.schedule;
    let Action::Wait(arrivals) = &schedule.block(sites.blocks.place(block))?.steps[step].action else {
        return None;
    };
    let unmet = arrivals.iter().find(|arrival| {
        let writer = sites.blocks.number(arrival.counter.writer);
        let Some(&(_, reached)) = ended.stuck.iter().find(|(b, _)| *b == writer) else { return false };
        let done = &schedule.block(arrival.counter.writer).map(|b| &b.steps[..reached]).unwrap_or_default();
        let signals = done.iter().filter(|s| match &s.action {
            Action::Signal(counters) => counters.contains(&arrival.counter),
            _ => false,
        });
        signals.count() < arrival.value as usize
    })?;
    Some((Stamp { block: block as u32, step: step as u32, phase: 0 }, *unmet))
}
