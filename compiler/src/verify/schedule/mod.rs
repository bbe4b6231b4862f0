//! Stage 2: the checks of a lowered schedule, for every interleaving and every sequence of calls.

mod data_race;
mod deadlock;
mod entry_exit;
mod form;
mod happens_before;
mod invariant;
mod residency;
mod site;
mod slot_reuse;
mod translation;

use crate::diagnostic::{Check, Diagnostic};
use crate::program::Program;
use crate::schedule::Schedule;
use crate::schedule::domain::Domain;
use crate::verified::Verified;
use crate::verify::findings::in_source_order;
use data_race::DataRaces;
use deadlock::deadlock;
use entry_exit::EntryExit;
use form::form;
use happens_before::{BlockNumbers, WalkOrder, walk};
use invariant::Invariant;
use residency::residency;
use site::Sites;
use slot_reuse::SlotReuseCheck;
use translation::Translation;

/// Proves that the schedule carries out the program on the domain: no race, no deadlock, no touch of a buffer outside
/// its rank's call, and counters in step for the next call. Otherwise returns all findings. O(steps x blocks).
pub fn schedule(
    schedule: Schedule,
    program: &Program,
    domain: &Domain,
) -> Result<Verified<Schedule>, Vec<Diagnostic>> {
    let blocks = BlockNumbers::of(&schedule);
    let sites = Sites { schedule: &schedule, program, blocks: &blocks };
    let mut findings = form(&sites, domain);
    if !findings.is_empty() {
        return Err(finished(findings, program));
    }
    findings.extend(residency(&sites, domain));
    if !interleavings(&sites, WalkOrder::Eager).is_empty() {
        findings.extend(interleavings(&sites, WalkOrder::InTurn));
    }
    if findings.is_empty() { Ok(Verified::by_check(schedule)) } else { Err(finished(findings, program)) }
}

/// Finds what keeps a schedule from being one computation, whatever its program is: races and deadlocks, or a form in which
/// neither is known.
pub(crate) fn unordered(schedule: &Schedule, program: &Program, domain: &Domain) -> Vec<Diagnostic> {
    let blocks = BlockNumbers::of(schedule);
    let sites = Sites { schedule, program, blocks: &blocks };
    let mut findings = form(&sites, domain);
    if findings.is_empty() {
        findings = interleavings(&sites, WalkOrder::InTurn);
        findings.retain(|finding| matches!(finding.check, Check::DataRace | Check::Deadlock));
    }
    finished(findings, program)
}

/// The checks that need the happens-before order.
fn interleavings(sites: &Sites<'_>, order: WalkOrder) -> Vec<Diagnostic> {
    let Sites { schedule, program, blocks } = *sites;
    let mut races = DataRaces::new(&schedule.shape);
    let mut entry_exit = EntryExit::new(sites);
    let mut invariant = Invariant::default();
    let mut translation = Translation::new(program);
    let mut slots = SlotReuseCheck::new(schedule.slots);
    let ended = walk(
        schedule,
        blocks,
        order,
        &mut [&mut races, &mut slots, &mut entry_exit, &mut invariant, &mut translation],
    );
    let mut findings = races.findings(sites);
    findings.extend(slots.findings(sites));
    if !ended.stuck.is_empty() {
        findings.extend(deadlock(sites, &ended));
        return findings;
    }
    findings.extend(entry_exit.findings(&ended));
    findings.extend(invariant.findings(sites, &ended));
    // With a race the values depend on the interleaving; the race is the cause to show.
    if findings.is_empty() {
        findings.extend(translation.findings(sites));
    }
    findings
}

/// The findings in source order, each with the world size.
fn finished(mut findings: Vec<Diagnostic>, program: &Program) -> Vec<Diagnostic> {
    in_source_order(&mut findings);
    let context = program.context();
    findings.into_iter().map(|finding| finding.context(context.clone())).collect()
}
