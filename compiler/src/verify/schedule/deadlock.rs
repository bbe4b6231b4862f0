//! `deadlock`: waits that no signal can meet. Waits are for known signals, so one run decides for every interleaving.

use super::happens_before::{Ended, StepStamp, flagged};
use super::site::Sites;
use crate::diagnostic::words;
use crate::diagnostic::{Check, Diagnostic};
use crate::program::ids::BlockId;
use crate::schedule::{Action, Arrival, FifoMessage, Operand};
use rustc_hash::FxHashMap;

/// A wait, and the step with the signal that it waits for.
struct BlockedWait {
    wait: StepStamp,
    signal: StepStamp,
}

/// One finding for each cycle of blocks that wait for each other.
pub(super) fn deadlock(sites: &Sites<'_>, ended: &Ended) -> Vec<Diagnostic> {
    let stuck: FxHashMap<usize, usize> = ended.stuck.iter().copied().collect();
    let mut cycles: Vec<(Vec<BlockedWait>, u64)> = Vec::new();
    // For each block seen the cycle that it waits for. Every stuck block waits for a signal that a stuck block has yet
    // to give, so that following them ends in a cycle.
    let mut leads: FxHashMap<usize, usize> = FxHashMap::default();
    for &(start, _) in &ended.stuck {
        let mut path: Vec<BlockedWait> = Vec::new();
        let mut begun: FxHashMap<usize, usize> = FxHashMap::default();
        let mut block = start;
        while !leads.contains_key(&block) && !begun.contains_key(&block) {
            let Some(link) = blocked_by(sites, &stuck, block) else { break };
            begun.insert(block, path.len());
            block = link.signal.block as usize;
            path.push(link);
        }
        let cycle = match begun.get(&block) {
            Some(&first) => {
                cycles.push((path.split_off(first), 0));
                cycles.len() - 1
            }
            None => leads.get(&block).copied().unwrap_or_default(),
        };
        if let Some((_, behind)) = cycles.get_mut(cycle) {
            *behind += path.len() as u64;
        }
        leads.extend(begun.into_keys().map(|block| (block, cycle)));
    }
    cycles.iter().map(|(cycle, behind)| finding(sites, cycle, *behind)).collect()
}

fn finding(sites: &Sites<'_>, cycle: &[BlockedWait], behind: u64) -> Diagnostic {
    let names: Vec<String> = cycle.iter().map(|link| sites.place(link.wait).to_string()).collect();
    let loc = cycle.first().map(|link| sites.served(link.wait));
    let message = format!("{} wait for each other", words::list(&names));
    let mut finding = Diagnostic::new(Check::Deadlock, loc, message);
    for BlockedWait { wait, signal } in cycle {
        let signal = format!("step {} of {}: {}", signal.step, sites.place(*signal), sites.what(*signal));
        finding = finding.note(format!("{} waits for {signal}", sites.name(*wait)));
    }
    if behind > 0 {
        let verb = if behind == 1 { "waits" } else { "wait" };
        finding = finding.note(format!("{} {verb} behind them", words::count(behind, "more thread block")));
    }
    finding
}

/// The first unmet arrival of a stuck block; its writer is then stuck before that signal.
fn blocked_by(sites: &Sites<'_>, stuck: &FxHashMap<usize, usize>, block: usize) -> Option<BlockedWait> {
    let &step = stuck.get(&block)?;
    let unmet = |place: BlockId, signal: Option<usize>| {
        let writer = sites.blocks.number(place);
        let (signal, &reached) = (signal?, stuck.get(&writer)?);
        (signal >= reached).then_some(StepStamp { block: writer as u32, step: signal as u32, phase: 0 })
    };
    let signal = match &sites.schedule.block(sites.blocks.place(block))?.steps[step].action {
        Action::Wait(arrivals) => {
            arrivals.iter().find_map(|arrival| unmet(arrival.counter.writer, signal(sites, arrival)))
        }
        Action::Move { sources, .. } => {
            flagged(sources).find_map(|message| unmet(message.connection.writer, stored(sites, message)))
        }
        _ => None,
    }?;
    Some(BlockedWait { wait: StepStamp { block: block as u32, step: step as u32, phase: 0 }, signal })
}

/// The step of the writing block that gives the signal waited for.
fn signal(sites: &Sites<'_>, arrival: &Arrival) -> Option<usize> {
    let steps = &sites.schedule.block(arrival.counter.writer)?.steps;
    let signals = steps.iter().enumerate().flat_map(|(i, step)| match &step.action {
        Action::Signal(counters) => vec![i; counters.iter().filter(|c| **c == arrival.counter).count()],
        _ => Vec::new(),
    });
    signals.into_iter().nth(usize::try_from(arrival.value).ok()?.checked_sub(1)?)
}

/// The step of the writing block that stores a message.
fn stored(sites: &Sites<'_>, message: &FifoMessage) -> Option<usize> {
    let steps = &sites.schedule.block(message.connection.writer)?.steps;
    steps.iter().position(|step| match &step.action {
        Action::Move { dests, .. } => dests.contains(&Operand::Message(*message)),
        _ => false,
    })
}
