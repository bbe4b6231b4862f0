//! `quadrille device-check`, which scripts/device-check runs: the device check of `quadrille-testing`.

use crate::cli::failure::CommandFailure;
use crate::cli::files::FileSet;
use crate::cli::output::Output;
use crate::cli::source;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use quadrille_runtime::nvrtc;
use quadrille_testing::device_check::{DeviceCheck, Part, Place, parse_time};
use serde_json::json;
use std::path::PathBuf;
use std::time::Duration;

/// The arguments.
#[derive(Clone, Debug, Args)]
#[command(args_override_self = true)]
pub(crate) struct DeviceCheckArgs {
    /// On what
    #[arg(long, value_enum, default_value_t = CheckedWorld::Cuda)]
    world: CheckedWorld,
    /// Time for all parts; what no longer fits is skipped
    #[arg(long, value_name = "TIME", default_value = "200s", value_parser = parse_time)]
    budget: Duration,
    /// Parts to run [default: all]
    #[arg(long, value_delimiter = ',', value_parser = part())]
    parts: Option<Vec<Part>>,
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
enum CheckedWorld {
    /// One GPU that all ranks share, and as many as there are
    Cuda,
    /// Virtual GPUs, with smaller sizes: whether the check itself works
    Virtual,
}

fn part() -> impl TypedValueParser<Value = Part> {
    let names = Part::ALL.map(|part| PossibleValue::new(part.name()).help(part.help()));
    PossibleValuesParser::new(names)
        .try_map(|name| Part::ALL.into_iter().find(|part| part.name() == name).ok_or("there is no such part"))
}

/// Runs the check.
pub(crate) fn device_check(check: &DeviceCheckArgs, out: &mut Output) -> Result<(), CommandFailure> {
    let mut ranks = check.ranks.clone();
    ranks.sort_unstable();
    ranks.dedup();
    let built_in = |name: &str| source::load(&format!("builtin:{name}"));
    check.only.iter().try_for_each(|name| built_in(name).map(drop))?;
    let examples = source::builtin_names().map(built_in).collect::<Result<Vec<_>, _>>()?;
    let file = check.json.iter().map(|path| FileSet::reserve([path.clone()], true)).next().transpose()?;
    let places = match check.world {
        CheckedWorld::Cuda => Place::of_machine()?,
        CheckedWorld::Virtual => Place::VIRTUAL.to_vec(),
    };
    let report = DeviceCheck {
        places: &places,
        budget: check.budget,
        parts: check.parts.as_deref().unwrap_or(&Part::ALL),
        ranks: &ranks,
        examples: &examples,
        only: &check.only,
        nvrtc: &nvrtc::provide(nvrtc::announce)?,
    }
    .run(&mut |line| out.line(line));
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
