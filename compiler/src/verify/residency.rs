//! `residency`: more thread blocks than can be resident at once; a block that spins could starve the one it waits for.

use super::site::Sites;
use crate::diagnostic::{Check, Diagnostic};
use crate::domain::Domain;

/// One finding for each rank with too many blocks, and one for a block cap that the world does not have.
pub(super) fn residency(sites: &Sites<'_>, domain: &Domain) -> Vec<Diagnostic> {
    let schedule = sites.schedule;
    let cap = domain.block_cap.min(schedule.block_cap);
    let over = schedule.blocks.iter().enumerate().filter(|(_, blocks)| blocks.len() > cap as usize);
    over.map(|(rank, blocks)| {
        Diagnostic::new(
            Check::Residency,
            sites.program.name_loc,
            format!("r{rank} has {} blocks, and {cap} can be resident", blocks.len()),
        )
        .note("a block that waits holds its place; one that has none could never signal")
    })
    .collect()
}
