//! The command line, in the library so that the examples' mains share it. One file a subcommand; docs/cli.md says
//! what each does.

mod builtins;
mod check;
mod compile;
mod completions;
mod device_check;
mod doctor;
mod failure;
mod files;
mod import;
mod new;
mod output;
mod progress;
mod ranks;
pub(crate) mod run;
mod runtime;
mod setting;
mod sim;
mod source;
mod tensors;

use clap::error::ErrorKind;
use clap::{Args, Parser, Subcommand};
use failure::CommandFailure;
use output::{Output, OutputFormat};
use quadrille_compiler::options::size;
use std::ffi::OsString;
use std::process::ExitCode;

#[derive(Debug, Parser)]
#[command(
    name = "quadrille",
    version,
    about = "Custom GPU collectives, written in Rust, proved before they run",
    after_help = "Exit status: 0 good, 1 the program or its run is wrong, 2 bad usage, 3 the machine lacks something."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    format: FormatOption,
}

#[derive(Debug, Args)]
struct FormatOption {
    /// Text for people, or one JSON object on the standard output
    #[arg(long, global = true, value_enum, default_value_t = OutputFormat::Text)]
    format: OutputFormat,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Prove a collective for its world sizes
    Check(check::CheckArgs),
    /// Print or write any stage: program, schedule, kernel, CUDA, PTX, cubin
    Compile(compile::CompileArgs),
    /// Prove, compile and execute a collective, and check its results against an exact reference
    Run(run::RunArgs),
    /// Run a collective on virtual GPUs with a clock: races, bytes of links, instructions, predicted time, a trace
    Sim(sim::SimArgs),
    /// Print what Quadrille makes of an MSCCL XML file, proved
    Import(import::ImportArgs),
    /// Make a small crate with one collective, its test and snapshot
    New(new::NewArgs),
    /// Say what is on this machine, what is missing, and how to get it
    Doctor,
    /// List the built-in collectives
    Builtins,
    /// Print completions for a shell
    Completions(completions::CompletionsArgs),
    /// Prove this build on the GPUs of this machine, and measure it (scripts/device-check)
    #[command(hide = true)]
    DeviceCheck(device_check::DeviceCheckArgs),
}

/// The main function of `quadrille`: reads the process's arguments, does what they say and gives the exit status.
pub fn main() -> ExitCode {
    let Cli { command, format } = match parse(std::env::args_os().collect()) {
        Ok(cli) => cli,
        Err(status) => return status,
    };
    let format = format.format;
    match command {
        Command::Check(check) => finish(format, "check", |out| check::check(&check, out)),
        Command::Compile(compile) => finish(format, "compile", |out| compile::compile(&compile, out)),
        Command::Run(run) => finish(format, "run", |out| run::file(&run, out)),
        Command::Sim(sim) => finish(format, "sim", |out| sim::sim(&sim, out)),
        Command::Import(import) => finish(format, "import", |out| import::import(&import, out)),
        Command::New(new) => finish(format, "new", |out| new::new(&new, out)),
        Command::Doctor => finish(format, "doctor", doctor::doctor),
        Command::Builtins => finish(format, "builtins", builtins::builtins),
        Command::Completions(shell) => {
            finish(format, "completions", |out| completions::completions(&shell, out))
        }
        Command::DeviceCheck(check) => {
            finish(format, "device-check", |out| device_check::device_check(&check, out))
        }
    }
}

/// The options of `run` without FILE, of an example.
#[derive(Debug, Parser)]
#[command(
    about = "Prove, compile and execute this collective, and check its results against an exact reference"
)]
struct ExampleCli {
    #[command(flatten)]
    options: run::RunOptions,
    #[command(flatten)]
    format: FormatOption,
}

/// The main function of an example.
pub(crate) fn example(collective: &quadrille_compiler::collective::Collective) -> ExitCode {
    match parse(std::env::args_os().collect()) {
        Ok(ExampleCli { options, format }) => {
            finish(format.format, "run", |out| run::collective(collective, &options, out))
        }
        Err(status) => status,
    }
}

fn finish(
    format: OutputFormat,
    command: &str,
    body: impl FnOnce(&mut Output) -> Result<(), CommandFailure>,
) -> ExitCode {
    let mut output = Output::new(format, command);
    let result = body(&mut output);
    output.finish(result)
}

/// Reads arguments; on failure, and for `--help` and `--version`, prints and gives the exit status.
fn parse<T: Parser>(arguments: Vec<OsString>) -> Result<T, ExitCode> {
    T::try_parse_from(&arguments).map_err(|error| {
        let asked = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
        if !asked && wants_json(&arguments) {
            return Output::new(OutputFormat::Json, "usage").finish(Err(error.into()));
        }
        // Fails where nobody reads any more.
        drop(error.print());
        if asked { ExitCode::SUCCESS } else { ExitCode::from(CommandFailure::USAGE) }
    })
}

/// Returns true if arguments that cannot be read ask for JSON.
fn wants_json(arguments: &[OsString]) -> bool {
    let pairs = arguments.windows(2).any(|pair| pair[0] == "--format" && pair[1] == "json");
    pairs || arguments.iter().any(|argument| argument == "--format=json")
}
