//! `quadrille completions`: a script with which a shell completes the command line.

use crate::cli::Cli;
use crate::cli::failure::CommandFailure;
use crate::cli::output::Output;
use clap::{Args, CommandFactory};
use clap_complete::Shell;

/// The arguments of `completions`.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// Prints the script.
pub(crate) fn completions(completions: &CompletionsArgs, out: &mut Output) -> Result<(), CommandFailure> {
    let mut script = Vec::new();
    clap_complete::generate(completions.shell, &mut Cli::command(), "quadrille", &mut script);
    let script = String::from_utf8_lossy(&script);
    out.raw(&script);
    out.field("shell", completions.shell.to_string());
    out.field("script", script);
    Ok(())
}
