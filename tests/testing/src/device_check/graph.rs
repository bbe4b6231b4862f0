//! Two calls, captured once and launched again and again with other data.

use super::CheckContext;
use super::PartError;
use super::buffers::{CheckBuffers, ExactData};
use super::examples;
use super::report::Report;
use quadrille_compiler::program::dtype::{DType, RedOp};

/// Bytes of each message.
const BYTES: u64 = 24 << 10;

pub(super) fn check(context: &CheckContext<'_>, report: &mut Report) {
    if let Err(error) = run(context, report) {
        report.fail(error);
    }
}

fn run(context: &CheckContext<'_>, report: &mut Report) -> Result<(), PartError> {
    let ranks = context.largest();
    let Some(world) = examples::world(context, ranks, report) else { return Ok(()) };
    let session = world.session()?;
    let mut calls = Vec::new();
    for (name, dtype) in [("one_shot_all_reduce", DType::Bf16), ("two_shot_all_reduce", DType::F32)] {
        let collective = context.example(name)?.for_message(BYTES);
        let load = |communicator: &quadrille_runtime::Communicator| {
            communicator.load(&collective, dtype, RedOp::Sum)
        };
        let kernels = session.communicators().iter().map(load).collect::<Result<Vec<_>, _>>()?;
        calls.push((name, dtype, kernels, CheckBuffers::new(&session, BYTES, dtype)?));
    }
    let graph =
        world.capture(|| calls.iter().try_for_each(|(_, _, kernels, buffers)| buffers.enqueue(kernels)))?;
    for launch in 0..context.scale.launches {
        if context.budget.is_spent() {
            report.leave(2 * u64::from(context.scale.launches - launch));
            break;
        }
        let mut data = Vec::new();
        for (_, dtype, _, buffers) in &calls {
            let exact = ExactData::new(ranks, *dtype, BYTES, launch);
            buffers.fill(&exact)?;
            buffers.clear()?;
            data.push(exact);
        }
        graph.launch()?;
        world.synchronize()?;
        for ((name, _, _, buffers), exact) in calls.iter().zip(&data) {
            match buffers.wrong(exact)? {
                0 => report.good(1),
                wrong => report.fail(format!("{name}: {wrong} wrong elements in launch {}", launch + 1)),
            }
        }
    }
    Ok(())
}
