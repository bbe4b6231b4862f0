//! Refuses what a file cannot say, and what is beyond the limits of its runtime.

use crate::diagnostic::{Check, Diagnostic, Loc};
use crate::interop::msccl::document::Algorithm;
use crate::interop::msccl::fits::coll;
use crate::interop::msccl::runtime::Runtime;
use crate::options::{Protocol, ScheduleOptions, StatementOptions, Transport};
use crate::program::Program;
use crate::schedule::domain::LARGEST_BLOCK_CAP;

/// The protocol that the options and the statements ask for.
pub(super) fn protocol(program: &Program, options: &ScheduleOptions) -> Protocol {
    let first = program.statements.first().and_then(|statement| statement.how.protocol);
    first.or(options.how.protocol).map_or(Protocol::Simple, |given| given.value)
}

/// Everything that a file cannot say.
pub(super) fn unsayable(program: &Program, options: &ScheduleOptions, runtime: Runtime) -> Vec<Diagnostic> {
    let mut findings = Vec::new();
    let mut refuse = |loc: Loc, message: String, note: &str| {
        let finding = Diagnostic::new(Check::Unsupported, loc, message).note(note);
        // Statements of one block share its attribute.
        if !findings.contains(&finding) {
            findings.push(finding);
        }
    };
    if program.in_flight.is_some() {
        let message = format!("`{}` is an imported plan", program.name);
        refuse(program.name_loc, message, "programs are exported, not plans of other systems");
    }
    if coll(program.shape.kind, runtime).is_none() {
        let message = format!("`{}` is of kind {}", program.name, program.shape.kind);
        let note = format!("{} has no name for what it computes", runtime.name());
        refuse(program.name_loc, message, &note);
    }
    let given = [
        ("instances", options.instances.filter(|given| given.value > 1).map(|given| given.loc)),
        ("threads", options.threads.map(|given| given.loc)),
        ("slots", options.slots.map(|given| given.loc)),
        ("tile", options.tile.map(|given| given.loc)),
        ("unroll", options.unroll.map(|given| given.loc)),
    ];
    for (key, loc) in given {
        if let Some(loc) = loc {
            refuse(loc, format!("MSCCL XML cannot say `{key}`"), "its runtime has that of its own");
        }
    }
    let own = protocol(program, options);
    let mut hows: Vec<&StatementOptions> =
        program.statements.iter().map(|statement| &statement.how).collect();
    hows.push(&options.how);
    hows.dedup();
    for how in hows {
        if let Some(given) = how.transport.filter(|given| given.value != Transport::Staged) {
            let message = format!("MSCCL XML cannot say transport {}", given.value);
            refuse(given.loc, message, "everything goes through the slots of a connection there");
        }
    }
    for statement in &program.statements {
        let protocol = statement.how.protocol.or(options.how.protocol);
        let differs = protocol.map_or(Protocol::Simple, |given| given.value) != own;
        if differs {
            let loc = protocol.map_or(statement.loc, |given| given.loc);
            refuse(loc, "statements of different protocols".to_owned(), "a file has one for all its steps");
        }
    }
    let mut seen = Vec::new();
    for op in program.ops.iter().filter(|op| op.site.block.is_some()) {
        if !seen.contains(&op.statement) {
            seen.push(op.statement);
            let message = "MSCCL XML cannot say `#[block(..)]`".to_owned();
            let note =
                "thread blocks follow from the connections there: one to send on and one to receive on";
            refuse(program.statements[op.statement.0 as usize].loc, message, note);
        }
    }
    findings
}

/// The first limit that the steps are beyond.
pub(super) fn limits(program: &Program, algorithm: &Algorithm, runtime: Runtime) -> Option<Diagnostic> {
    let refuse = |message: String, note: String| {
        let finding = Diagnostic::new(Check::Unsupported, program.name_loc, message);
        Some(finding.context(program.context()).note(note))
    };
    let (name, limits) = (runtime.name(), runtime.limits());
    for (gpu, rank) in algorithm.gpus.iter().zip(0..) {
        let blocks = gpu.blocks.len();
        let most = limits.blocks.min(LARGEST_BLOCK_CAP as usize);
        if blocks > most {
            let note = format!("{most} are the most that {name} runs at once and that are proved");
            return refuse(format!("gpu {rank} needs {blocks} thread blocks"), note);
        }
        let most = gpu.blocks.iter().map(|block| block.channel + 1).max().unwrap_or(0);
        if most > limits.channels {
            let note = format!("{name} has {}", limits.channels);
            return refuse(format!("gpu {rank} needs {most} channels"), note);
        }
        for channel in 0..most {
            let count = gpu.blocks.iter().filter(|block| block.channel == channel).count();
            if count > limits.blocks_of_channel {
                let message = format!("gpu {rank} needs {count} thread blocks on channel {channel}");
                let finding = refuse(message, format!("{name} has {} a channel", limits.blocks_of_channel));
                return finding.map(|finding| finding.help("name channels by `#[channel(..)]`"));
            }
        }
        let longest = gpu.blocks.iter().map(|block| block.steps.len()).zip(0..).max();
        if let Some((steps, block)) = longest.filter(|(steps, _)| *steps > limits.steps) {
            let finding = refuse(
                format!("gpu {rank}, tb {block} needs {steps} steps"),
                format!("{name} runs {} of a thread block at most", limits.steps),
            );
            let fits = runtime != Runtime::Msccl && steps <= Runtime::Msccl.limits().steps;
            let help = match fits {
                true => "MSCCL itself runs 256: take --for msccl; or spread the chunks by `#[channel(..)]`",
                false => "take fewer chunks, or spread them by `#[channel(..)]`",
            };
            return finding.map(|finding| finding.help(help));
        }
        let nodes =
            1 + algorithm.gpus.len() + gpu.blocks.iter().map(|block| 1 + block.steps.len()).sum::<usize>();
        if nodes > limits.elements {
            let note = format!("{name} reads {} of a GPU", limits.elements);
            return refuse(format!("gpu {rank} needs {nodes} elements"), note);
        }
    }
    None
}
