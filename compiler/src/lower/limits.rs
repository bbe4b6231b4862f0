//! Limits of device code and of the FIFOs that a lowered program may exceed.

use super::assign::Placement;
use super::divide::{Task, Tasks};
use super::order::loads;
use crate::diagnostic::{Check, Diagnostic};
use crate::options::Protocol;
use crate::program::Program;
use crate::schedule::FIFOS;
use std::collections::BTreeMap;

/// Most sources, or destinations, of a move of lines. Device code has a bit for each that tells slots from buffers.
const MOST_ENDS: usize = 64;

/// The finding on an operation that moves lines from or to more places than a move can.
pub(super) fn too_many_ends(program: &Program, tasks: &Tasks) -> Option<Diagnostic> {
    let lines =
        |task: &Task| task.messages().any(|m| tasks.messages[m as usize].protocol != Protocol::Simple);
    let wide = |task: &&Task| task.sources.len().max(task.dests.len()) > MOST_ENDS && lines(task);
    let task = tasks.list.iter().find(wide)?;
    let loc = program.statement(task.op).loc;
    let ends = task.sources.len().max(task.dests.len());
    let message = format!("an operation with {ends} sources or destinations through lines with flags");
    let finding = Diagnostic::new(Check::Unsupported, loc, message);
    Some(
        finding
            .note(format!("a move has at most {MOST_ENDS}"))
            .help("take protocol Simple for this statement"),
    )
}

/// The finding on two ranks with more connections than there are FIFOs.
pub(super) fn too_many_fifos(
    program: &Program,
    tasks: &Tasks,
    placement: &Placement,
    instances: u32,
) -> Option<Diagnostic> {
    let mut fifos: BTreeMap<_, u32> = BTreeMap::new();
    for (protocol, writer, reader) in loads(tasks, placement).into_keys() {
        *fifos.entry((protocol, writer.rank, reader.rank)).or_default() += instances;
    }
    let ((_, from, to), &most) = fifos.iter().max_by_key(|(_, most)| **most)?;
    if most <= FIFOS {
        return None;
    }
    let message = format!("`{}` needs {most} FIFOs from {from} to {to}", program.name);
    let finding = Diagnostic::new(Check::Unsupported, program.name_loc, message);
    Some(
        finding
            .note(format!("there are {FIFOS} from one rank to another, one for each pair of thread blocks"))
            .help("lower `blocks` or `instances`"),
    )
}
