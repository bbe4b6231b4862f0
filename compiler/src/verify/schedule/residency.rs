//! `residency`: more thread blocks than can be resident at once; a block that spins could starve the one it waits for.

use super::site::Sites;
use crate::diagnostic::{Check, Diagnostic};
use crate::schedule::domain::Domain;

/// One finding for each rank with too many blocks, and one for a block cap that is not the world's.
pub(super) fn residency(sites: &Sites<'_>, domain: &Domain) -> Vec<Diagnostic> {
    let (schedule, cap) = (sites.schedule, domain.block_cap);
    let mut findings = Vec::new();
    let mut finding = |message: String, note: &str| {
        findings.push(Diagnostic::new(Check::Residency, sites.program.name_loc, message).note(note));
    };
    if schedule.block_cap != cap {
        finding(
            format!("the schedule's block cap is {}, the world's is {cap}", schedule.block_cap),
            "where a rank's counters lie follows from the cap, for every schedule of a world alike",
        );
    }
    for (rank, blocks) in schedule.blocks.iter().enumerate() {
        let all = blocks.len().saturating_mul(schedule.instances as usize);
        if all > cap as usize {
            finding(
                format!("r{rank} has {all} thread blocks, and {cap} can be resident at once"),
                "a block that waits holds its place; one that has none could never signal",
            );
        }
    }
    findings
}
