//! `quadrille sim`: runs a collective on virtual GPUs, under the memory model and by a virtual clock, and says what
//! crossed which link, what was executed, and how long real GPUs would take.

mod report;
mod trace;

use crate::cli::failure::CommandFailure;
use crate::cli::files::FileSet;
use crate::cli::output::Output;
use crate::cli::progress::Spinner;
use crate::cli::run::{
    Compared, Element, RunFailure, enough_memory, explore as exploration, provide_nvrtc, seed,
};
use crate::cli::setting::SettingOptions;
use crate::cli::{ranks, size, source};
use clap::Args;
use clap::builder::PossibleValuesParser;
use quadrille_compiler::collective::Collective;
use quadrille_runtime::{ClockOptions, Error, Job, ModelCheck, Run, Stale, Topology, World, WorldOptions};
use quadrille_testing::among_kernels::run_among_kernels;
use quadrille_testing::{Comparison, Pattern, TestMessage};
use quadrille_testing::{Explored, explore};
use report::SimReport;
use serde_json::json;
use std::path::PathBuf;

/// The arguments of `sim`.
#[derive(Debug, Args)]
pub(crate) struct SimArgs {
    /// A Rust source, an MSCCL XML file, or builtin:NAME; with ::NAME where it has several collectives
    #[arg(value_name = "FILE[::NAME]")]
    file: String,
    /// World size [default: the largest listed one up to 8, or 8]
    #[arg(long, value_name = "N")]
    ranks: Option<ranks::WorldSize>,
    #[command(flatten)]
    setting: SettingOptions,
    /// TestMessage size, as nccl-tests counts it: the larger of one rank's input and output, rounded down to whole elements
    #[arg(long, value_name = "SIZE", default_value = "64KiB")]
    bytes: size::ByteSize,
    #[command(flatten)]
    element: Element,
    /// The machine that the virtual clock models
    #[arg(long, value_name = "NAME", default_value = "dgx-h100", value_parser = PossibleValuesParser::new(Topology::PRESETS))]
    topology: String,
    /// Decides the test data and the order of warps
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = seed)]
    seed: u64,
    /// Interleavings that are tried under the PTX memory model: of --seed and the numbers after it; 0 for none
    #[arg(long, value_name = "N", default_value_t = 1)]
    seeds: u64,
    /// Writes a Chrome trace, which ui.perfetto.dev shows: every step of every thread block in virtual time
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Replaces the file of --trace if it is there
    #[arg(long, requires = "trace")]
    overwrite: bool,
}

/// Says which clock the times are of.
const CLOCK: &str = "virtual time: a prediction by the model of the topology, not a measurement";

/// `quadrille sim FILE`.
pub(crate) fn sim(sim: &SimArgs, out: &mut Output) -> Result<(), CommandFailure> {
    let collective = sim.setting.apply(source::load(&sim.file)?)?;
    let ranks = ranks::one(&collective, sim.ranks)?;
    let check = Some(ModelCheck { races: true, stale: Stale::All });
    let block_cap = collective.domain(ranks).block_cap;
    let options = WorldOptions { seed: Some(sim.seed), check, block_cap, ..WorldOptions::default() };
    let world = World::virtual_gpus_with(ranks, options)?;
    out.field("collective", &collective.name);
    out.field("kind", collective.kind.name());
    out.field("file", &*collective.source.path);
    out.field("in_place", collective.in_place);
    out.field("seed", sim.seed);
    out.field("clock", CLOCK);
    let program = collective.program(ranks)?;
    let Element { dtype, op } = sim.element;
    let count = collective.kind.count(sim.bytes.0, dtype, ranks);
    let bytes = collective.kind.bytes(count, dtype, ranks);
    enough_memory(ranks, bytes, true)?;
    let collective = &collective.for_message(bytes);
    let schedule = collective.verified(&world.domain())?;
    let message = TestMessage::new(&program, count, dtype);
    let files = sim.trace.as_ref().map(|path| FileSet::reserve([path.clone()], sim.overwrite)).transpose()?;
    out.line(format!("{}, timed as {}", world.describe(), sim.topology));
    provide_nvrtc(&world, out)?;
    let inputs = message.inputs_for(op, Pattern::OneHot { shift: sim.seed as u32 });
    let call = SimCall { job: Job { collective, dtype, op, inputs: &inputs }, message: &message };
    call.check(sim, &world, out)?;
    let topology = Topology::preset(&sim.topology).unwrap_or_else(Topology::dgx_h100);
    let clocked = world.with_clock(ClockOptions { topology, timeline: true })?;
    let progress = Spinner::start("a call on virtual GPUs with a clock".into());
    let Run { outputs, statistics, .. } = clocked.run(collective, dtype, op, &inputs)?;
    drop(progress);
    let comparison = message.compare(&message.reference(op, &inputs), &outputs);
    if comparison.wrong > 0 {
        let compared = Box::new(Compared::Exact(comparison));
        return Err(RunFailure::Wrong { wrong: 1, calls: 1, call: 1, compared }.into());
    }
    let report = SimReport::new(collective, (&program, &schedule), &message, op, &sim.topology, &statistics);
    report.print(out);
    report.fields(out);
    let written = match (files, &statistics.timeline) {
        (Some(files), Some(timeline)) => files.publish([trace::trace(timeline, &schedule, &report)])?,
        _ => Vec::new(),
    };
    for path in &written {
        out.line(format!("# wrote {}; ui.perfetto.dev shows it", path.display()));
    }
    out.field("trace", written.first().map(|path| path.display().to_string()));
    report.agrees()
}

/// The call to simulate.
struct SimCall<'a> {
    job: Job<'a>,
    message: &'a TestMessage,
}

/// Why an interleaving failed.
enum SimProblem {
    Runtime(Error),
    Wrong(Comparison),
}

impl From<Error> for SimProblem {
    fn from(error: Error) -> SimProblem {
        SimProblem::Runtime(error)
    }
}

impl SimCall<'_> {
    /// Tries interleavings under the memory model.
    fn check(&self, sim: &SimArgs, world: &World, out: &mut Output) -> Result<(), CommandFailure> {
        let SimArgs { seed, seeds, .. } = *sim;
        let end = seed.saturating_add(seeds);
        let progress = Spinner::start(format!("{seeds} interleavings on virtual GPUs"));
        let expected = self.message.reference(self.job.op, self.job.inputs);
        let Explored { right, failed, .. } = explore(world, seed..end, |world: &World| {
            let batch = run_among_kernels(&world.session()?, &[self.job], [0, 0])?;
            let comparison = self.message.compare(&expected, &batch.outputs[0]);
            if comparison.wrong > 0 { Err(SimProblem::Wrong(comparison)) } else { Ok(()) }
        });
        drop(progress);
        let failed_seed = failed.as_ref().map(|(seed, _)| *seed);
        out.field("race_check", json!({ "right": right, "failed_seed": failed_seed }));
        let Some((seed, problem)) = failed else {
            if seeds > 0 {
                let s = if seeds == 1 { "" } else { "s" };
                out.line(format!(
                    "# {right} interleaving{s} tried under the memory model (seeds {seed} to {}): no race, no hang, all \
                     results equal the exact reference",
                    end - 1
                ));
            }
            return Ok(());
        };
        let problem = match problem {
            SimProblem::Runtime(error @ Error::Failed(_)) => error.to_string(),
            SimProblem::Runtime(error) => return Err(error.into()),
            SimProblem::Wrong(comparison) => format!("wrong results: {}", Compared::Exact(comparison)),
        };
        let replay = exploration::replay(std::env::args(), seed);
        Err(RunFailure::Interleaving { seed, tried: right, problem, replay }.into())
    }
}

/// Names a collective, for traces.
fn title(collective: &Collective) -> String {
    format!("{} ({})", collective.name, collective.kind)
}
