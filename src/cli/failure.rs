//! Why a command did not succeed, and the exit status that follows.

use crate::cli::compile::StageError;
use crate::cli::files::WriteError;
use crate::cli::import::ImportError;
use crate::cli::new::NewError;
use crate::cli::output::{JsonDiagnostic, json_diagnostics};
use crate::cli::ranks::NotAdmitted;
use crate::cli::run::{FilesError, RunFailure};
use crate::cli::setting::SettingError;
use crate::cli::source::SourceError;
use quadrille_compiler::diagnostic::Diagnostics;
use quadrille_runtime::nvrtc::{CompileError, NvrtcError};

/// A failure of any command; `Display` is what stands after `error:`, with `help:` on a line of its own.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum Failure {
    /// The arguments cannot be read.
    #[error("{}", plain(.0))]
    Arguments(clap::Error),
    /// FILE gives no collective.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// A world size that `only` excludes.
    #[error(transparent)]
    Ranks(#[from] NotAdmitted),
    /// A root, parameter or schedule that the collective does not have.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// The program is wrong.
    #[error(transparent)]
    Program(#[from] Diagnostics),
    /// Stages that cannot be printed together or at all.
    #[error(transparent)]
    Stage(#[from] StageError),
    /// A file that cannot be imported, or not in this form.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// Files cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The user's data files cannot be used.
    #[error(transparent)]
    Files(#[from] FilesError),
    /// There is no new crate.
    #[error(transparent)]
    New(#[from] NewError),
    /// There is no NVRTC.
    #[error(transparent)]
    Nvrtc(#[from] NvrtcError),
    /// NVRTC does not compile the text.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// The run failed or its results are wrong.
    #[error(transparent)]
    Run(#[from] RunFailure),
    /// `doctor` found something missing.
    #[error("{0} is missing: collectives cannot be executed here")]
    Doctor(String),
    /// `device-check` found something wrong.
    #[error(
        "these parts of the device check failed: {0}\nhelp: report it with the table, or what --json wrote"
    )]
    DeviceCheck(String),
}

impl Failure {
    /// The program or its run is wrong.
    pub(crate) const WRONG: u8 = 1;
    /// Bad usage.
    pub(crate) const USAGE: u8 = 2;
    /// The machine lacks something.
    pub(crate) const MACHINE: u8 = 3;

    /// The exit status.
    pub(crate) fn status(&self) -> u8 {
        match self {
            Failure::Program(_) | Failure::DeviceCheck(_) => Failure::WRONG,
            Failure::Arguments(_)
            | Failure::Source(_)
            | Failure::Ranks(_)
            | Failure::Setting(_)
            | Failure::Stage(_)
            | Failure::Import(_)
            | Failure::Files(_) => Failure::USAGE,
            Failure::Write(error) => error.status(),
            Failure::New(error) => error.status(),
            Failure::Nvrtc(_) | Failure::Doctor(_) => Failure::MACHINE,
            Failure::Compile(error) => match error {
                CompileError::Nvrtc(_) => Failure::MACHINE,
                CompileError::Arch { .. } => Failure::USAGE,
                _ => Failure::WRONG,
            },
            Failure::Run(error) => error.status(),
        }
    }

    /// The findings, where the program is wrong.
    pub(crate) fn diagnostics(&self) -> Vec<JsonDiagnostic> {
        match self {
            Failure::Program(diagnostics) => json_diagnostics(diagnostics),
            _ => Vec::new(),
        }
    }
}

/// clap's message without its leading `error: `.
fn plain(error: &clap::Error) -> String {
    let text = error.to_string();
    text.strip_prefix("error: ").unwrap_or(&text).trim_end().to_owned()
}
