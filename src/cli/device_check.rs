//! `quadrille device-check`, which scripts/device-check runs: proves this build on the GPUs of a machine, part by part within
//! a budget of time, and measures it. A part that fails does not keep the others from being carried out.

mod budget;
mod buffers;
mod by_hand;
mod copies;
mod examples;
mod graph;
mod machine;
mod mixed;
mod place;
mod report;
mod signals;
#[cfg(test)]
mod tests;
mod timings;

use crate::cli::failure::CommandFailure;
use crate::cli::files::FileSet;
use crate::cli::output::Output;
use budget::Budget;
use clap::{Args, ValueEnum};
use place::Place;
use quadrille_runtime::nvrtc;
use report::Report;
use serde_json::json;
use std::path::PathBuf;
use std::time::Duration;

/// The arguments.
#[derive(Clone, Debug, Args)]
#[command(args_override_self = true)]
pub(crate) struct DeviceCheckArgs {
    /// On what
    #[arg(long, value_enum, default_value_t = WorldOption::Cuda)]
    world: WorldOption,
    /// Time for all parts; what no longer fits is skipped
    #[arg(long, value_name = "TIME", default_value = "200s", value_parser = budget::parse)]
    budget: Duration,
    /// Which parts
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Part::ALL)]
    parts: Vec<Part>,
    /// World sizes of the examples; everything else takes the largest
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [2, 4, 8], value_parser = clap::value_parser!(u32).range(2..=64))]
    ranks: Vec<u32>,
    /// Only these examples
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,
    /// A file for the report in JSON; replaced where it is there
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// `--world`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum WorldOption {
    /// One GPU that all ranks share, and as many as there are
    Cuda,
    /// Virtual GPUs, with smaller sizes: whether the check itself works
    Virtual,
}

/// `--parts`. What they are called in the report.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Part {
    /// Every example, in two types, with counts from 0 to some MiB
    Examples,
    /// Captured calls, launched again and again
    Graph,
    /// Calls of different programs, back to back
    Mixed,
    /// One-shot and two-shot all-reduce against kernels written by hand
    Timings,
    /// The way of a signal from one rank to another
    Signals,
    /// Copies by the driver
    Copies,
}

impl Part {
    const ALL: [Part; 6] =
        [Part::Graph, Part::Mixed, Part::Signals, Part::Copies, Part::Timings, Part::Examples];

    fn name(self) -> &'static str {
        match self {
            Part::Examples => "examples",
            Part::Graph => "graph",
            Part::Mixed => "mixed",
            Part::Timings => "timings",
            Part::Signals => "signals",
            Part::Copies => "copies",
        }
    }

    /// The part of the remaining time that it may take, so that those behind it have some.
    fn share(self) -> f64 {
        match self {
            Part::Examples => 1.0,
            Part::Timings => 0.6,
            Part::Mixed => 0.4,
            Part::Graph | Part::Signals | Part::Copies => 0.25,
        }
    }

    fn check(self, context: &Context<'_>, report: &mut Report) {
        match self {
            Part::Examples => examples::check(context, report),
            Part::Graph => graph::check(context, report),
            Part::Mixed => mixed::check(context, report),
            Part::Timings => timings::check(context, report),
            Part::Signals => signals::check(context, report),
            Part::Copies => copies::check(context, report),
        }
    }
}

/// How much of everything.
#[derive(Clone, Copy, Debug)]
struct Scale {
    /// Bytes of the largest message of an example.
    example_bytes: u64,
    /// Calls of `mixed`, and how many of them are queued at once.
    mixed: (u32, u32),
    /// Launches of a graph.
    launches: u32,
    /// Bytes of the messages that are timed: the smallest and the largest, each four times the one before.
    timed_bytes: (u64, u64),
    /// Batches of each kernel at each size.
    batches: u32,
    /// How long a batch should take, and the most calls of one.
    batch: (Duration, u32),
    /// Round trips of a signal.
    round_trips: u64,
    /// Bytes of a copy.
    copied_bytes: u64,
}

impl Scale {
    const GPUS: Scale = Scale {
        example_bytes: 2 << 20,
        mixed: (1000, 50),
        launches: 10,
        timed_bytes: (1 << 10, 64 << 20),
        batches: 9,
        batch: (Duration::from_millis(3), 200),
        round_trips: 2000,
        copied_bytes: 64 << 20,
    };

    const VIRTUAL: Scale = Scale {
        example_bytes: 4 << 10,
        mixed: (50, 10),
        launches: 10,
        timed_bytes: (1 << 10, 4 << 10),
        batches: 3,
        batch: (Duration::ZERO, 2),
        round_trips: 20,
        copied_bytes: 16 << 10,
    };
}

/// What a part is carried out with.
#[derive(Debug)]
struct Context<'a> {
    place: Place,
    /// World sizes, ascending.
    ranks: &'a [u32],
    only: &'a [String],
    scale: Scale,
    budget: Budget,
}

impl Context<'_> {
    fn largest(&self) -> u32 {
        self.ranks.last().copied().unwrap_or(2)
    }
}

/// What times are on virtual GPUs.
const VIRTUAL_CLOCK: &str = "wall time of virtual GPUs on this CPU, no GPU's";
/// And on real ones.
const GPU_CLOCK: &str = "the GPU's own clock";

/// Does it.
pub(crate) fn device_check(check: &DeviceCheckArgs, out: &mut Output) -> Result<(), CommandFailure> {
    let budget = Budget::new(check.budget);
    let mut ranks = check.ranks.clone();
    ranks.sort_unstable();
    ranks.dedup();
    check.only.iter().try_for_each(|name| examples::built_in(name).map(drop))?;
    let file = check.json.iter().map(|path| FileSet::reserve([path.clone()], true)).next().transpose()?;
    let (places, scale, clock) = match check.world {
        WorldOption::Cuda => (place::cuda()?, Scale::GPUS, GPU_CLOCK),
        WorldOption::Virtual => (Place::virtual_ones(), Scale::VIRTUAL, VIRTUAL_CLOCK),
    };
    let nvrtc = nvrtc::provide(nvrtc::announce)?;
    let mut report = Report::new(clock, check.budget);
    machine::describe(check.world == WorldOption::Virtual, &nvrtc, &mut report, out);
    for (&place, left) in places.iter().zip((1..=places.len()).rev()) {
        // Every place has its part of the time.
        let budget = budget.part(1.0 / left as f64);
        for part in Part::ALL.into_iter().filter(|part| check.parts.contains(part)) {
            let context =
                Context { place, ranks: &ranks, only: &check.only, scale, budget: budget.part(part.share()) };
            report.begin(part.name(), place);
            if budget.is_spent() {
                report.skip("the budget is spent");
            } else {
                part.check(&context, &mut report);
            }
            report.end(out);
        }
    }
    report.print(out);
    for (name, value) in report.fields() {
        out.field(name, value);
    }
    if let Some(file) = file {
        let mut object = json!({ "command": "device-check" });
        for (name, value) in report.fields() {
            object[name] = value;
        }
        file.publish([format!("{object:#}\n")])?;
    }
    match report.failed() {
        parts if parts.is_empty() => Ok(()),
        parts => Err(CommandFailure::new(
            CommandFailure::WRONG,
            format!(
                "these parts of the device check failed: {}\nhelp: report it with the table, or what --json wrote",
                parts.join(", ")
            ),
        )),
    }
}
