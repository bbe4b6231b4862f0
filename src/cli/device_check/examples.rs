//! Every example that the world's transports carry, called with nothing, one element, a tail and a large message.

use super::Context;
use super::report::Report;
use crate::cli::failure::CommandFailure;
use crate::cli::run::RunFailure;
use crate::cli::run::calls::{Calls, Data};
use crate::cli::source;
use quadrille_compiler::collective::Collective;
use quadrille_compiler::diagnostic::{Check, Diagnostics};
use quadrille_compiler::program::dtype::{DType, RedOp};
use quadrille_runtime::data::Message;
use quadrille_runtime::{World, nvrtc};

/// A collective that is built in.
pub(super) fn built_in(name: &str) -> Result<Collective, CommandFailure> {
    source::load(&format!("builtin:{name}"))
}

/// A world for a part, with what was compiled before; what keeps this machine from having it is told.
pub(super) fn world(context: &Context<'_>, ranks: u32, report: &mut Report) -> Option<World> {
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

pub(super) fn check(context: &Context<'_>, report: &mut Report) {
    let names = match context.only {
        [] => source::builtin_names().collect::<Vec<_>>(),
        only => only.iter().map(String::as_str).collect(),
    };
    // Large worlds first, as they ask for more.
    for &ranks in context.ranks.iter().rev() {
        let Some(world) = world(context, ranks, report) else { continue };
        for dtype in [DType::Bf16, DType::F32] {
            for name in &names {
                if context.budget.is_spent() {
                    report.leave(1);
                    continue;
                }
                let what = format!("{name} on {ranks} ranks");
                match example(&world, name, dtype, context.scale.example_bytes) {
                    Ok(calls) => report.good(calls),
                    Err(CommandFailure::Program(findings)) if is_refusal(&findings) => {
                        let why = findings.list.first().map(|finding| finding.message.clone());
                        report.refuse(what, &why.unwrap_or_default());
                    }
                    Err(error) => report.fail(format!("{what}, {dtype}: {error}")),
                }
            }
        }
    }
}

/// Whether nothing is wrong but that it is for other worlds.
fn is_refusal(findings: &Diagnostics) -> bool {
    findings.list.iter().all(|finding| matches!(finding.check, Check::Unsupported | Check::Requirement))
}

/// The calls of one example, on communicators of its own.
pub(super) fn example(world: &World, name: &str, dtype: DType, largest: u64) -> Result<u64, CommandFailure> {
    let (collective, ranks) = (built_in(name)?, world.ranks());
    let program = collective.program(ranks)?;
    let chunks = if program.divisible { u64::from(program.shape.chunks) } else { 1 };
    let session = world.session()?;
    let mut calls = 0;
    for count in [0, 1, 1003, collective.kind.count(largest, dtype, ranks)] {
        let count = count.next_multiple_of(chunks);
        let collective = collective.for_message(collective.kind.bytes(count, dtype, ranks));
        let message = Message::new(&program, count, dtype);
        let data = Data::Generated { seed: calls };
        let ran = Calls { collective: &collective, message, op: RedOp::Sum, total: 1, data }.run(&session)?;
        if let Some((_, compared)) = ran.first_wrong {
            let compared = Box::new(compared);
            return Err(RunFailure::Wrong { wrong: 1, calls: 1, call: 1, compared }.into());
        }
        calls += 1;
    }
    Ok(calls)
}
