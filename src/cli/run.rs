//! `quadrille run`: proves, compiles, executes, checks against the exact reference, and prints the table.

pub(super) mod calls;
pub(super) mod explore;
mod files;
mod table;
mod world;

use crate::cli::failure::CommandFailure;
use crate::cli::output::Output;
use crate::cli::setting::SettingOptions;
use crate::cli::{ranks, size, source};
pub(crate) use calls::Compared;
use calls::{Calls, Data};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use explore::Exploration;
use files::{FileOptions, Files};
use quadrille_compiler::collective::Collective;
use quadrille_compiler::program::dtype::{DType, RedOp};
use quadrille_runtime::{Error, World, nvrtc};
use quadrille_testing::TestMessage;
use serde_json::json;
use table::{Row, Times};
pub(crate) use world::NoWorld;
use world::{Chosen, choose};

/// The arguments of `run`.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// A Rust source, an MSCCL XML file, or builtin:NAME; with ::NAME where it has several collectives
    #[arg(value_name = "FILE[::NAME]")]
    file: String,
    #[command(flatten)]
    options: RunOptions,
}

/// The options of `run`, which the examples take, too.
#[derive(Debug, Args)]
pub(crate) struct RunOptions {
    /// World size [default: the largest listed one up to 8, or 8]
    #[arg(long, value_name = "N")]
    ranks: Option<ranks::WorldSize>,
    #[command(flatten)]
    setting: SettingOptions,
    /// How it is called: with one buffer or two [default: as it is written]
    #[arg(long, value_enum)]
    call: Option<CallOption>,
    /// TestMessage size, as nccl-tests counts it: the larger of one rank's input and output, rounded down to whole elements
    /// [default: 1MiB, with --race-check 16KiB]
    #[arg(long, value_name = "SIZE")]
    bytes: Option<size::ByteSize>,
    #[command(flatten)]
    element: Element,
    /// The world to run on
    #[arg(long, value_enum, default_value_t = WorldOption::Auto)]
    world: WorldOption,
    /// As many ranks share one GPU, in one launch
    #[arg(long, value_name = "N")]
    ranks_per_device: Option<ranks::WorldSize>,
    /// Decides the test data, and the order in which the warps of virtual GPUs run, on one core [default: the data of 0,
    /// and all cores]
    #[arg(long, value_name = "N", value_parser = seed)]
    seed: Option<u64>,
    /// Calls in a row, each with other test data; every one is checked, the time is their mean [default: 1, with
    /// --race-check 3]
    #[arg(long, value_name = "N", value_parser = iterations)]
    iterations: Option<u32>,
    #[command(flatten)]
    exploration: Exploration,
    #[command(flatten)]
    files: FileOptions,
}

/// Element type and operator.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Element {
    /// Element type
    #[arg(long, default_value = "bf16", value_parser = names(DType::ALL.map(DType::name)).try_map(|s| s.parse::<DType>()))]
    pub(crate) dtype: DType,
    /// Reduction operator: sum, prod, min, max, avg, or premul_sum with a factor, as in premul_sum:0.5
    #[arg(long, default_value = "sum")]
    pub(crate) op: RedOp,
}

fn names<const N: usize>(names: [&'static str; N]) -> PossibleValuesParser {
    PossibleValuesParser::new(names)
}

pub(super) fn seed(text: &str) -> Result<u64, &'static str> {
    text.parse().map_err(|_| "a seed is a whole number from 0 to 2^64 - 1")
}

fn iterations(text: &str) -> Result<u32, &'static str> {
    let number = text.parse().ok().filter(|&number| number > 0);
    number.ok_or("the number of calls is a whole number from 1 to 2^32 - 1")
}

/// `--call`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum CallOption {
    /// One buffer; a collective written for two is proved for that first
    InPlace,
    /// Input and output apart
    OutOfPlace,
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
    /// There is no world to run in.
    #[error(transparent)]
    World(NoWorld),
    /// Results differ from the reference.
    #[error("wrong results in {wrong} of {calls} calls; in call {call}, {compared}")]
    Wrong {
        /// Calls with wrong results.
        wrong: u32,
        /// Calls that ran.
        calls: u32,
        /// The first one with wrong results, from 1.
        call: u32,
        /// The comparison that failed.
        compared: Box<Compared>,
    },
    /// Not every interleaving is right.
    #[error("seed {seed} fails; {tried} before it did not\nreplay it with: {replay}\n{problem}")]
    Interleaving {
        /// The first seed that fails.
        seed: u64,
        /// Seeds before it.
        tried: u64,
        /// The problem.
        problem: String,
        /// The command that does it again.
        replay: String,
    },
    /// A link carried other bytes than the program says.
    #[error(
        "rank {from} sent rank {to} {data} bytes of data, but the program says {scheduled}\nhelp: a proved collective does \
         not do this: report it, with the program and `compile --emit schedule,cuda`"
    )]
    Traffic {
        /// The sending rank.
        from: u32,
        /// The receiving rank.
        to: u32,
        /// Bytes that crossed.
        data: u64,
        /// Bytes that the schedule has.
        scheduled: u64,
    },
    /// The machine has not the memory.
    #[error(
        "{ranks} virtual GPUs with messages of {bytes} bytes need about {} MiB of memory, and this machine has {} MiB \
         left\nhelp: choose smaller messages (--bytes, or the files of --input) or fewer --ranks",
        need >> 20,
        available >> 20
    )]
    Memory {
        /// World size.
        ranks: u32,
        /// TestMessage size.
        bytes: u64,
        /// Bytes needed, about.
        need: u128,
        /// Bytes that the system can give.
        available: u64,
    },
}

impl From<RunFailure> for CommandFailure {
    fn from(error: RunFailure) -> CommandFailure {
        let status = match &error {
            RunFailure::Memory { .. } => CommandFailure::MACHINE,
            RunFailure::World(_) => CommandFailure::USAGE,
            RunFailure::Runtime(error) if error.is_missing() => CommandFailure::MACHINE,
            RunFailure::Runtime(Error::NoRanks | Error::TooManyRanks { .. }) => CommandFailure::USAGE,
            RunFailure::Runtime(_)
            | RunFailure::Wrong { .. }
            | RunFailure::Traffic { .. }
            | RunFailure::Interleaving { .. } => CommandFailure::WRONG,
        };
        CommandFailure::new(status, error)
    }
}

impl From<NoWorld> for CommandFailure {
    fn from(error: NoWorld) -> CommandFailure {
        match error {
            NoWorld::Ranks(error) => error.into(),
            NoWorld::Runtime(error) => error.into(),
            error => RunFailure::World(error).into(),
        }
    }
}

impl From<Error> for CommandFailure {
    fn from(error: Error) -> CommandFailure {
        match error {
            Error::Program(diagnostics) => diagnostics.into(),
            Error::Compile(error) => error.into(),
            error => RunFailure::Runtime(error).into(),
        }
    }
}

/// Says which clock the times are of.
fn clock(world: &World) -> &'static str {
    match world.is_virtual() {
        true => "wall time of the virtual GPUs on this CPU, not a GPU figure",
        false => "GPUs' own time by events, of the slowest rank",
    }
}

/// `quadrille run FILE`.
pub(crate) fn file(run: &RunArgs, out: &mut Output) -> Result<(), CommandFailure> {
    let collective = source::load(&run.file)?;
    self::collective(&collective, &run.options, out)
}

/// Runs a collective.
pub(crate) fn collective(
    collective: &Collective,
    options: &RunOptions,
    out: &mut Output,
) -> Result<(), CommandFailure> {
    let mut collective = options.setting.apply(collective.clone())?;
    if let Some(call) = options.call {
        collective = collective.called(call == CallOption::InPlace);
    }
    let exploration = &options.exploration;
    let iterations = options.iterations.unwrap_or(if exploration.race_check { 3 } else { 1 });
    let Chosen { world, why } = choose(&collective, options)?;
    let ranks = world.ranks();
    let kind = if world.is_virtual() { "virtual" } else { "cuda" };
    out.field("world", json!({ "kind": kind, "ranks": ranks, "gpus": world.describe(), "why": why }));
    out.field("collective", &collective.name);
    out.field("kind", collective.kind.name());
    out.field("file", &*collective.source.path);
    out.field("in_place", collective.in_place);
    out.field("seed", options.seed);
    out.field("iterations", iterations);
    let clock = clock(&world);
    out.field("clock", clock);
    // Judged before anything is fetched or allocated.
    let program = collective.program(ranks)?;
    let files = Files::open(&program, &options.files)?;
    let (dtype, count) = match &files {
        Some(files) => (files.dtype, files.count),
        None => {
            let dtype = options.element.dtype;
            let default = if exploration.race_check { 16 << 10 } else { 1 << 20 };
            let bytes = options.bytes.map_or(default, |bytes| bytes.0);
            let count = collective.kind.count(bytes, dtype, ranks);
            let served = collective.kind.bytes(count, dtype, ranks);
            if options.bytes.is_some() && served != bytes {
                out.line(format!(
                    "# --bytes {bytes} is no whole number of elements a rank: this runs {served} bytes, {count} elements of {dtype} a unit"
                ));
            }
            (dtype, count)
        }
    };
    let bytes = collective.kind.bytes(count, dtype, ranks);
    if world.is_virtual() {
        enough_memory(ranks, bytes, exploration.race_check)?;
    }
    let collective = &collective.for_message(bytes);
    collective.verified(&world.domain())?;
    let message = TestMessage::new(&program, count, dtype);
    let (data, outputs) = match files {
        Some(files) => {
            out.field("inputs", files.described());
            let (inputs, outputs) = files.read()?;
            (Data::Files(inputs), outputs)
        }
        None => (Data::Generated { seed: options.seed.unwrap_or(0) }, None),
    };
    out.line(format!("{}: {why}", world.describe()));
    let nvrtc = provide_nvrtc(&world, out)?;
    let calls = Calls { collective, message, op: options.element.op, total: iterations, data };
    if exploration.race_check {
        let load = explore::run(&calls, &world, exploration, options.seed.unwrap_or(0), out)?;
        let times = Times::new(load, nvrtc.version);
        times.print(out);
        out.field("times", &times);
        out.field("rows", json!([]));
        return Ok(());
    }
    out.field("race_check", json!(null));
    let ran = calls.run(&world.session()?)?;
    let row = Row::new(&calls, ranks, &ran);
    let times = Times::new(ran.load, nvrtc.version);
    row.print(collective, out);
    times.print(out);
    out.line(format!("# time is the {clock}"));
    out.field("rows", [&row]);
    out.field("times", &times);
    out.field("compared", ran.compared.described(ran.elements, row.wrong));
    if let Some((call, compared)) = ran.first_wrong {
        let (wrong, calls) = (ran.wrong_calls, iterations);
        return Err(RunFailure::Wrong { wrong, calls, call, compared: Box::new(compared) }.into());
    }
    out.line(ran.compared.success(ran.elements, iterations));
    if let Some(outputs) = outputs {
        let paths = outputs.publish(&ran.outputs)?;
        for path in &paths {
            out.line(format!("# wrote {}", path.display()));
        }
        out.field("outputs", paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>());
    }
    Ok(())
}

/// An argument as a shell reads it.
fn quote(argument: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
    if !argument.is_empty() && argument.chars().all(plain) {
        return argument.to_owned();
    }
    format!("'{}'", argument.replace('\'', "'\\''"))
}

/// Finds or fetches NVRTC, says which, and lets the world keep what it compiles.
pub(super) fn provide_nvrtc(world: &World, out: &mut Output) -> Result<nvrtc::Found, nvrtc::NvrtcError> {
    let nvrtc = nvrtc::provide(nvrtc::announce)?;
    out.field(
        "nvrtc",
        json!({ "version": nvrtc.version.to_string(), "path": nvrtc.path.display().to_string() }),
    );
    if let Some(cache) = nvrtc::Cache::from_env() {
        world.keep_kernels(cache);
    }
    Ok(nvrtc)
}

/// Refuses messages for which the system would have to end this process.
pub(super) fn enough_memory(ranks: u32, bytes: u64, race_check: bool) -> Result<(), RunFailure> {
    let Some(available) = available_memory() else { return Ok(()) };
    // Of each rank the two buffers on the virtual GPU with a mark a byte, and input, reference and result. A race check
    // keeps who accessed every word, on every core.
    let parts = if race_check { 120 } else { 7 };
    let need = u128::from(bytes) * u128::from(ranks) * parts;
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
