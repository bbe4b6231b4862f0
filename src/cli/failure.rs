//! Why a command did not succeed, and the exit status that follows. Each error becomes a failure where it is defined.

use quadrille_compiler::diagnostic::Diagnostics;
use quadrille_runtime::nvrtc::{CompileError, NvrtcError};
use std::fmt;

/// A failure of any command. `Display` is the text after `error:`, with `help:` on a line of its own.
#[derive(Debug)]
pub(crate) enum CommandFailure {
    /// Findings on the program.
    Program(Diagnostics),
    /// Any other failure.
    Other {
        /// The exit status.
        status: u8,
        /// The message.
        text: String,
    },
}

impl CommandFailure {
    /// The program or its run is wrong.
    pub(crate) const WRONG: u8 = 1;
    /// Bad usage.
    pub(crate) const USAGE: u8 = 2;
    /// The machine lacks something.
    pub(crate) const MACHINE: u8 = 3;

    /// A failure with this exit status.
    pub(crate) fn new(status: u8, error: impl ToString) -> CommandFailure {
        CommandFailure::Other { status, text: error.to_string() }
    }

    /// A failure by bad usage.
    pub(crate) fn usage(error: impl ToString) -> CommandFailure {
        CommandFailure::new(CommandFailure::USAGE, error)
    }

    /// The exit status.
    pub(crate) fn status(&self) -> u8 {
        match self {
            CommandFailure::Program(_) => CommandFailure::WRONG,
            CommandFailure::Other { status, .. } => *status,
        }
    }
}

impl fmt::Display for CommandFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CommandFailure::Program(diagnostics) => diagnostics.fmt(f),
            CommandFailure::Other { text, .. } => f.write_str(text),
        }
    }
}

impl From<Diagnostics> for CommandFailure {
    fn from(diagnostics: Diagnostics) -> CommandFailure {
        CommandFailure::Program(diagnostics)
    }
}

impl From<clap::Error> for CommandFailure {
    fn from(error: clap::Error) -> CommandFailure {
        let text = error.to_string();
        CommandFailure::usage(text.strip_prefix("error: ").unwrap_or(&text).trim_end())
    }
}

impl From<NvrtcError> for CommandFailure {
    fn from(error: NvrtcError) -> CommandFailure {
        CommandFailure::new(CommandFailure::MACHINE, error)
    }
}

impl From<CompileError> for CommandFailure {
    fn from(error: CompileError) -> CommandFailure {
        let status = match error {
            CompileError::Nvrtc(_) => CommandFailure::MACHINE,
            CompileError::Arch { .. } => CommandFailure::USAGE,
            _ => CommandFailure::WRONG,
        };
        CommandFailure::new(status, error)
    }
}
