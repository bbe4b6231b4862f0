//! Every example that the world's transports carry, called with nothing, one element, a tail and a large message.

use super::CheckContext;
use super::report::Report;
use crate::{Pattern, TestMessage};
use quadrille_compiler::collective::Collective;
use quadrille_compiler::diagnostic::{Check, Diagnostics};
use quadrille_compiler::program::dtype::{DType, RedOp};
use quadrille_runtime::{Error, World, nvrtc};

/// A world for a part, with what was compiled before; what keeps this machine from having it is told.
pub(super) fn world(context: &CheckContext<'_>, ranks: u32, report: &mut Report) -> Option<World> {
    match context.place.world(ranks) {
        Ok(world) => {
            if let Some(cache) = nvrtc::Cache::from_env() {
                world.keep_kernels(cache);
            }
            Some(world)
        }
        Err(error) if error.is_missing() => {
            report.refuse(format!("{ranks} ranks"), &error);
            None
        }
        Err(error) => {
            report.fail(error);
            None
        }
    }
}

pub(super) fn check(context: &CheckContext<'_>, report: &mut Report) {
    let chosen = |example: &&Collective| context.only.is_empty() || context.only.contains(&example.name);
    let examples: Vec<&Collective> = context.examples.iter().filter(chosen).collect();
    // Large worlds first, as they ask for more.
    for &ranks in context.ranks.iter().rev() {
        let Some(world) = world(context, ranks, report) else { continue };
        for dtype in [DType::Bf16, DType::F32] {
            for example in &examples {
                if context.budget.is_spent() {
                    report.leave(1);
                    continue;
                }
                let what = format!("{} on {ranks} ranks", example.name);
                match run(&world, example, dtype, context.scale.example_bytes) {
                    Ok(ExampleEnd::Exact(calls)) => report.good(calls),
                    Ok(ExampleEnd::Wrong(problem)) => report.fail(format!("{what}, {dtype}: {problem}")),
                    Err(Error::Program(findings)) if is_refusal(&findings) => {
                        let why = findings.list.first().map(|finding| finding.message.clone());
                        report.refuse(what, &why.unwrap_or_default());
                    }
                    Err(error) => report.fail(format!("{what}, {dtype}: {error}")),
                }
            }
        }
    }
}

/// Returns true if nothing is wrong but that the example is for other worlds.
fn is_refusal(findings: &Diagnostics) -> bool {
    findings.list.iter().all(|finding| matches!(finding.check, Check::Unsupported | Check::Requirement))
}

/// What came of the calls of an example.
enum ExampleEnd {
    /// So many calls have exact results.
    Exact(u64),
    /// A call has not.
    Wrong(String),
}

/// Makes the calls of one example, on communicators of its own.
fn run(world: &World, example: &Collective, dtype: DType, largest: u64) -> Result<ExampleEnd, Error> {
    let ranks = world.ranks();
    let program = example.program(ranks)?;
    let chunks = if program.divisible { u64::from(program.shape.chunks) } else { 1 };
    let session = world.session()?;
    let counts = [0, 1, 1003, example.kind.count(largest, dtype, ranks)];
    for (count, shift) in counts.into_iter().zip(0..) {
        let count = count.next_multiple_of(chunks);
        let collective = example.for_message(example.kind.bytes(count, dtype, ranks));
        let message = TestMessage::new(&program, count, dtype);
        let inputs = message.inputs(Pattern::OneHot { shift });
        let run = session.run(&collective, dtype, RedOp::Sum, &inputs)?;
        let found = message.compare(&message.reference(RedOp::Sum, &inputs), &run.outputs);
        if found.wrong > 0 {
            return Ok(ExampleEnd::Wrong(format!("wrong results with count {count}: {found}")));
        }
    }
    Ok(ExampleEnd::Exact(counts.len() as u64))
}
