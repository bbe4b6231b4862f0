//! Calls of different programs, types and sizes, back to back on one communicator.

use super::CheckContext;
use super::PartError;
use super::examples;
use super::report::Report;
use crate::{Pattern, TestMessage};
use quadrille_compiler::collective::Collective;
use quadrille_compiler::program::dtype::{DType, RedOp};
use quadrille_runtime::Job;

/// Programs of different kinds, blocks, hops and buffers.
const PROGRAMS: [&str; 8] = [
    "ring_all_reduce",
    "one_shot_all_reduce",
    "binomial_broadcast",
    "pairwise_all_to_all",
    "two_shot_all_reduce",
    "ring_reduce_scatter",
    "all_pairs_all_gather",
    "binomial_tree_all_reduce",
];

/// Elements of a unit, by turns: not as many as there are programs, so that each meets each.
const COUNTS: [u64; 7] = [0, 1, 777, 4096, 3, 128, 2049];

/// A call that is to be made.
struct Planned<'a> {
    collective: &'a Collective,
    dtype: DType,
    message: TestMessage,
    inputs: Vec<Vec<u8>>,
}

pub(super) fn check(context: &CheckContext<'_>, report: &mut Report) {
    if let Err(error) = run(context, report) {
        report.fail(error);
    }
}

fn run(context: &CheckContext<'_>, report: &mut Report) -> Result<(), PartError> {
    let ranks = context.largest();
    let Some(world) = examples::world(context, ranks, report) else { return Ok(()) };
    let session = world.session()?;
    let mut collectives = Vec::new();
    for name in PROGRAMS {
        let collective = context.example(name)?;
        let program = collective.program(ranks)?;
        collectives.push((collective, program));
    }
    let (total, chunk) = (context.scale.mixed_calls, context.scale.queued_calls);
    for first in (0..total).step_by(chunk as usize) {
        let calls = first..total.min(first + chunk);
        if context.budget.is_spent() {
            report.leave((total - first).into());
            break;
        }
        let planned: Vec<Planned<'_>> = calls
            .map(|call| {
                let (collective, program) = &collectives[call as usize % collectives.len()];
                let dtype = if (call / 8).is_multiple_of(2) { DType::Bf16 } else { DType::F32 };
                let chunks = if program.divisible { u64::from(program.shape.chunks) } else { 1 };
                let count = COUNTS[call as usize % COUNTS.len()].next_multiple_of(chunks);
                let message = TestMessage::new(program, count, dtype);
                let inputs = message.inputs(Pattern::OneHot { shift: call });
                Planned { collective, dtype, message, inputs }
            })
            .collect();
        let jobs: Vec<Job<'_>> = planned
            .iter()
            .map(|call| {
                let Planned { collective, dtype, inputs, .. } = call;
                Job { collective, dtype: *dtype, op: RedOp::Sum, inputs }
            })
            .collect();
        let batch = session.run_all(&jobs)?;
        for ((call, outputs), number) in planned.iter().zip(&batch.outputs).zip(first + 1..) {
            let Planned { collective, dtype, message, inputs } = call;
            let found = message.compare(&message.reference(RedOp::Sum, inputs), outputs);
            if found.wrong == 0 {
                report.good(1);
            } else {
                let (name, count) = (&collective.name, message.count);
                report.fail(format!("call {number}, {name} of {count} {dtype}: {found}"));
            }
        }
    }
    Ok(())
}
