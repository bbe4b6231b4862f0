//! `quadrille run`: proves, compiles, executes, checks against the exact reference, and prints the table.

use crate::cli::failure::Failure;
use crate::cli::output::Output;
use crate::cli::progress::Progress;
use crate::cli::{ranks, size, source};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use quadrille_compiler::collective::Collective;
use quadrille_compiler::dtype::{DType, RedOp};
use quadrille_runtime::data::{Comparison, Message, Pattern};
use quadrille_runtime::{
    Bandwidth, CudaAbsence, Error, LoadTimes, Options as WorldOptions, World, gpus, nvrtc,
};
use serde::Serialize;
use serde_json::json;
use std::num::NonZeroU32;
use std::time::Duration;

/// The arguments of `run`.
#[derive(Debug, Args)]
pub(crate) struct Run {
    /// A Rust source, or builtin:NAME; with ::NAME where it has several collectives
    #[arg(value_name = "FILE[::NAME]")]
    file: String,
    #[command(flatten)]
    options: Options,
}

/// The options of `run`, which the examples take, too.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// World size [default: the largest listed one up to 8, or 8]
    #[arg(long, value_name = "N")]
    ranks: Option<ranks::Ranks>,
    /// Message size, as nccl-tests counts it: the larger of one rank's input and output
    #[arg(long, value_name = "SIZE", default_value = "1MiB")]
    bytes: size::Bytes,
    #[command(flatten)]
    element: Element,
    /// Where to run
    #[arg(long, value_enum, default_value_t = WorldOption::Auto)]
    world: WorldOption,
    /// Seed of the test data and of the virtual GPUs' warp scheduling
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Calls in a row, each with other data; every one is checked, the time is their mean
    #[arg(long, value_name = "N", default_value = "1")]
    iterations: NonZeroU32,
}

/// Element type and operator.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Element {
    /// Element type
    #[arg(long, default_value = "bf16", value_parser = names(DType::ALL.map(DType::name)).try_map(|s| s.parse::<DType>()))]
    pub(crate) dtype: DType,
    /// Reduction operator
    #[arg(long, default_value = "sum", value_parser = names(RedOp::ALL.map(RedOp::name)).try_map(|s| s.parse::<RedOp>()))]
    pub(crate) op: RedOp,
}

fn names<const N: usize>(names: [&'static str; N]) -> PossibleValuesParser {
    PossibleValuesParser::new(names)
}

/// `--world`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum WorldOption {
    /// The GPUs of this machine if they can be used, else virtual GPUs
    Auto,
    /// Virtual GPUs on this CPU
    Virtual,
    /// The GPUs of this machine
    Cuda,
}

/// Why a run failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum RunFailure {
    /// The runtime refuses or fails.
    #[error(transparent)]
    Runtime(Error),
    /// Results differ from the reference.
    #[error("wrong results in {wrong} of {calls} calls; in call {call}, {comparison}")]
    Wrong {
        /// Calls with wrong results.
        wrong: u32,
        /// Calls that ran.
        calls: u32,
        /// The first one with wrong results, from 1.
        call: u32,
        /// What is wrong in it.
        comparison: Comparison,
    },
    /// The machine has not the memory.
    #[error(
        "{ranks} virtual GPUs with messages of {bytes} bytes need about {} MiB of memory, and this machine has {} MiB \
         left\nhelp: choose a smaller --bytes or --ranks",
        need >> 20,
        available >> 20
    )]
    Memory {
        /// World size.
        ranks: u32,
        /// Message size.
        bytes: u64,
        /// Bytes needed, about.
        need: u128,
        /// Bytes that the system can give.
        available: u64,
    },
}

impl RunFailure {
    /// The exit status.
    pub(crate) fn status(&self) -> u8 {
        match self {
            RunFailure::Memory { .. } => Failure::MACHINE,
            RunFailure::Runtime(error) if error.is_missing() => Failure::MACHINE,
            RunFailure::Runtime(Error::NoRanks | Error::TooManyRanks { .. }) => Failure::USAGE,
            RunFailure::Runtime(_) | RunFailure::Wrong { .. } => Failure::WRONG,
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        match error {
            Error::Program(diagnostics) => diagnostics.into(),
            Error::Compile(error) => error.into(),
            error => RunFailure::Runtime(error).into(),
        }
    }
}

/// What the times are.
const CLOCK: &str = "wall time of the virtual GPUs on this CPU, not a GPU figure";

/// A row of the table.
#[derive(Debug, Serialize)]
struct Row {
    bytes: u64,
    count: u64,
    dtype: &'static str,
    op: &'static str,
    ranks: u32,
    /// Mean of the calls.
    time_us: f64,
    algbw: f64,
    busbw: f64,
    /// Wrong elements over all ranks and calls.
    wrong: u64,
}

/// `quadrille run FILE`.
pub(crate) fn file(run: &Run, out: &mut Output) -> Result<(), Failure> {
    let collective = source::load(&run.file)?;
    self::collective(&collective, &run.options, out)
}

/// Runs a collective.
pub(crate) fn collective(
    collective: &Collective,
    options: &Options,
    out: &mut Output,
) -> Result<(), Failure> {
    let ranks = ranks::one(collective, options.ranks)?;
    let (world, why) = choose(ranks, options)?;
    out.field("world", json!({ "kind": "virtual", "ranks": ranks, "why": why }));
    out.field("collective", &collective.name);
    out.field("kind", collective.kind.name());
    out.field("file", &*collective.source.path);
    out.field("in_place", collective.in_place);
    out.field("seed", options.seed);
    out.field("iterations", options.iterations);
    out.field("clock", CLOCK);
    // Judged before anything is fetched or allocated.
    let dtype = options.element.dtype;
    let program = collective.program(ranks)?;
    let count = collective.kind.count(options.bytes.0, dtype, ranks);
    enough_memory(ranks, collective.kind.bytes(count, dtype, ranks))?;
    collective.verified(&world.domain())?;
    out.line(format!("{}: {why}", world.describe()));
    let nvrtc = nvrtc::provide(nvrtc::announce)?;
    out.field(
        "nvrtc",
        json!({ "version": nvrtc.version.to_string(), "path": nvrtc.path.display().to_string() }),
    );
    let calls = Calls { collective, options, message: Message::new(&program, count, dtype), count };
    let ran = calls.run(&world)?;
    let row = calls.row(&world, &ran);
    table(&row, collective, out);
    let LoadTimes { lower, compile } = ran.load;
    out.line(format!(
        "# proved, lowered and emitted in {:.2} ms; compiled by NVRTC {} in {:.0} ms",
        lower.as_secs_f64() * 1e3,
        nvrtc.version,
        compile.as_secs_f64() * 1e3,
    ));
    out.line(format!("# time is the {CLOCK}"));
    out.field("rows", [&row]);
    let total = options.iterations.get();
    match ran.first_wrong {
        None => {
            let (s, elements) = (if total == 1 { "" } else { "s" }, ran.compared);
            out.line(format!(
                "# correct: all {elements} elements of {total} call{s} equal the exact reference"
            ));
            Ok(())
        }
        Some((call, comparison)) => {
            Err(RunFailure::Wrong { wrong: ran.wrong_calls, calls: total, call, comparison }.into())
        }
    }
}

/// The world, and why it was taken.
fn choose(ranks: u32, options: &Options) -> Result<(World, String), Error> {
    let why = match options.world {
        WorldOption::Virtual => "as asked by --world virtual".to_owned(),
        WorldOption::Cuda => return Ok((World::cuda(&(0..ranks).collect::<Vec<_>>())?, String::new())),
        WorldOption::Auto => match gpus() {
            Err(absence) => absence.to_string(),
            Ok(present) => CudaAbsence::Unsupported { present }.to_string(),
        },
    };
    let behaviour = WorldOptions { seed: options.seed, ..WorldOptions::default() };
    Ok((World::virtual_gpus_with(ranks, behaviour)?, why))
}

/// Refuses messages for which the system would have to end this process.
fn enough_memory(ranks: u32, bytes: u64) -> Result<(), RunFailure> {
    let Some(available) = available_memory() else { return Ok(()) };
    // Of each rank the two buffers on the virtual GPU with a mark a byte, and input, reference and result.
    let need = u128::from(bytes) * u128::from(ranks) * 7;
    if need > u128::from(available) {
        return Err(RunFailure::Memory { ranks, bytes, need, available });
    }
    Ok(())
}

/// Bytes that the system can give without swapping; `None` where it does not say.
fn available_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    kib.checked_mul(1024)
}

/// Calls with equal arguments and different data.
struct Calls<'a> {
    collective: &'a Collective,
    options: &'a Options,
    message: Message,
    count: u64,
}

/// What the calls gave.
#[derive(Default)]
struct Ran {
    load: LoadTimes,
    execute: Duration,
    compared: u64,
    wrong: u64,
    wrong_calls: u32,
    /// Number from 1.
    first_wrong: Option<(u32, Comparison)>,
}

impl Calls<'_> {
    fn run(&self, world: &World) -> Result<Ran, Failure> {
        let Calls { collective, options, message, .. } = self;
        let Element { dtype, op } = options.element;
        let session = world.session()?;
        let mut ran = Ran::default();
        let total = options.iterations.get();
        for call in 1..=total {
            // Any 32 bits of the seed will do.
            let shift = (options.seed as u32).wrapping_add(call - 1);
            let inputs = message.inputs(Pattern::OneHot { shift });
            let progress = Progress::start(format!("call {call} of {total} on virtual GPUs"));
            let run = session.run(collective, dtype, op, &inputs)?;
            drop(progress);
            ran.load.lower += run.load.lower;
            ran.load.compile += run.load.compile;
            ran.execute += run.execute;
            let comparison = message.compare(&message.reference(op, &inputs), &run.outputs);
            ran.compared += comparison.elements;
            ran.wrong += comparison.wrong;
            if comparison.wrong > 0 {
                ran.wrong_calls += 1;
                ran.first_wrong.get_or_insert((call, comparison));
            }
        }
        Ok(ran)
    }

    fn row(&self, world: &World, ran: &Ran) -> Row {
        let Element { dtype, op } = self.options.element;
        let (kind, ranks) = (self.collective.kind, world.ranks());
        let bytes = kind.bytes(self.count, dtype, ranks);
        let time = ran.execute / self.options.iterations.get();
        let Bandwidth { algbw, busbw } = Bandwidth::new(kind, ranks, bytes, time);
        let time_us = time.as_secs_f64() * 1e6;
        let (dtype, op) = (dtype.name(), op.name());
        Row { bytes, count: self.count, dtype, op, ranks, time_us, algbw, busbw, wrong: ran.wrong }
    }
}

/// nccl-tests' table.
fn table(row: &Row, collective: &Collective, out: &mut Output) {
    let Row { bytes, count, dtype, op, ranks, time_us, algbw, busbw, wrong } = row;
    let place = if collective.in_place { "in place" } else { "out of place" };
    out.line(format!("# {} ({}, {place})", collective.name, collective.kind));
    out.line(format!(
        "#{:>11} {:>12} {:>6} {:>6} {:>6} {:>12} {:>8} {:>8} {:>7}",
        "size", "count", "type", "redop", "ranks", "time", "algbw", "busbw", "#wrong"
    ));
    out.line(format!(
        "#{:>11} {:>12} {:>6} {:>6} {:>6} {:>12} {:>8} {:>8}",
        "(B)", "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)"
    ));
    out.line(format!(
        "{bytes:>12} {count:>12} {dtype:>6} {op:>6} {ranks:>6} {time_us:>12.1} {algbw:>8.4} {busbw:>8.4} {wrong:>7}"
    ));
}
