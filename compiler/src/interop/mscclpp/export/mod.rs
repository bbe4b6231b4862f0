//! A proved schedule as an execution plan.
//!
//! | schedule | plan |
//! |---|---|
//! | block | thread block; one with more operations than an executor takes becomes several, each of which goes on when the one before is done (`parts`) |
//! | start, data counter between ranks | channel in memory, one for each pair of thread blocks, both ways; starts are relaxed, as they order nothing |
//! | data counter within a rank | semaphore |
//! | wait for a value | as many waits as signals have not been waited for, each followed by `nop` |
//! | sync | `nop` |
//! | copy | `copy`, `put`, `get`, `gstore` by where its ends lie |
//! | reduce | `re`, `rre`, with other destinations `res`, `rres`; through the switch `glres` |
//!
//! A move that no operation says goes through chunks of scratch of its own (`moves`). Sources are combined in the
//! schedule's order, but that the first two may change places.
//!
//! Channels and semaphores count, so that every signal belongs to one wait: the n-th of a counter to the n-th. What a block
//! has not waited for when it ends, it waits for then.
//!
//! Refused, with the reason: kinds that the format does not have, staged moves, tiles and instances, operators that no
//! executor combines by, and what exceeds an executor's limits (`limits`).

mod blocks;
mod limits;
mod moves;
mod parts;
mod text;
mod wires;

use crate::collective::Collective;
use crate::diagnostic::{Check, Diagnostic, Diagnostics};
use crate::interop::finding;
use crate::options;
use crate::program::Program;
use crate::program::dtype::RedOp;
use crate::program::kind::{Kind, Shape};
use crate::program::transport;
use crate::schedule::domain::Domain;
use crate::schedule::{Fifos, Schedule};

/// The execution plan that does what the collective's proved schedule for `domain` does, with calls that combine by `op`.
///
/// # Errors
/// What is wrong with the collective, and what the format or its executor has no means for (`unsupported`), all at once.
pub fn export(collective: &Collective, domain: &Domain, op: RedOp) -> Result<String, Diagnostics> {
    let schedule = collective.verified(domain)?;
    let options = collective.options();
    let program = transport::place(collective.program(domain.ranks)?, &options);
    let wrong = |list| Diagnostics { list, source: Some(program.source.clone()) };
    let mut refused = unsupported(&schedule, &program, op);
    let (blocks, odd) = blocks::blocks(&schedule, &program);
    refused.extend(odd);
    if !refused.is_empty() {
        return Err(wrong(refused));
    }
    let scratch = blocks.scratch;
    let parts = parts::parts(blocks);
    let wires = wires::wires(&parts, domain.ranks);
    let sizes = options::sizes(&collective.schedules).unwrap_or_default();
    let sizes = sizes.get(collective.chosen);
    let low = sizes.and_then(|sizes| sizes.above).map_or(0, |above| above.saturating_add(1));
    let high = sizes.map_or(u64::MAX, |sizes| sizes.up_to).min(limits::largest(&schedule.shape, scratch));
    let found = limits::exceeded(&program, &parts, &wires, (low, high));
    if !found.is_empty() {
        return Err(wrong(found));
    }
    let frame = text::Frame {
        schedule: &schedule,
        collective: kind_name(schedule.shape.kind).unwrap_or_default(),
        reduce_op: reduce_op(op).unwrap_or_default(),
        threads: options.threads.map_or(crate::kernel::THREADS, |given| given.value),
        sizes: (low, high),
        scratch,
    };
    Ok(text::text(&frame, &parts, &wires))
}

/// The format's name of a kind, if it has it.
fn kind_name(kind: Kind) -> Option<&'static str> {
    super::document::KINDS.iter().find(|(_, known)| *known == Some(kind)).map(|(name, _)| *name)
}

/// The format's name of an operator, if executors combine by it.
fn reduce_op(op: RedOp) -> Option<&'static str> {
    super::ops::OPERATORS.iter().find(|(_, known)| *known == op).map(|(name, _)| *name)
}

/// Refusals that no single operation of a plan can be blamed for.
fn unsupported(schedule: &Schedule, program: &Program, op: RedOp) -> Vec<Diagnostic> {
    let refuse =
        |message: String| finding(Check::Unsupported, program.name_loc, message).context(program.context());
    let mut list = Vec::new();
    let Shape { kind, .. } = schedule.shape;
    let name = &program.name;
    if kind_name(kind).is_none() {
        let known: Vec<_> = super::document::KINDS
            .iter()
            .filter(|(_, kind)| kind.is_some())
            .map(|(name, _)| (*name).to_owned())
            .collect();
        list.push(
            refuse(format!("`{name}` cannot be exported: {kind} is no collective of MSCCL++'s plans"))
                .note(format!("they have {}", crate::diagnostic::words::list(&known))),
        );
    }
    if schedule.instances > 1 {
        list.push(
            refuse(format!("`{name}` cannot be exported with {} instances", schedule.instances))
                .note("parts of a chunk are rounded to 16 bytes here, and to whole alignments of the plan there")
                .help("leave out `instances`, and give every unit more chunks"),
        );
    } else if let Some(tile) = schedule.tile.filter(|_| Fifos::of(schedule).is_empty()) {
        list.push(
            refuse(format!("`{name}` cannot be exported in tiles of {tile} bytes"))
                .note(
                    "a pipeline moves as many chunks in all of its operations, and signals every unit alike",
                )
                .help("leave out `tile`, and move by put and get"),
        );
    }
    if reduce_op(op).is_none() && matches!(kind, Kind::AllReduce | Kind::ReduceScatter) {
        list.push(
            refuse(format!("`{name}` cannot be exported for {op}"))
                .note("MSCCL++ combines by sum, min or max"),
        );
    }
    list
}
