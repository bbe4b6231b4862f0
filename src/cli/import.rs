//! `quadrille import`: a plan of another system as what Quadrille makes of it.

use crate::cli::failure::Failure;
use crate::cli::output::Output;
use crate::cli::setting::Setting;
use crate::cli::source;
use clap::{Args, ValueEnum};
use serde_json::json;

/// The arguments of `import`.
#[derive(Debug, Args)]
pub(crate) struct Import {
    /// An MSCCL XML or an MSCCL++ JSON file
    #[arg(value_name = "FILE")]
    file: String,
    #[command(flatten)]
    setting: Setting,
    /// What to print
    #[arg(long, value_enum, default_value_t = Form::Schedule)]
    emit: Form,
}

/// What becomes of a plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Form {
    /// Steps, waits and signals of every thread block, proved.
    Schedule,
    /// A Rust source with a collective that moves the same chunks.
    Rust,
}

/// Why nothing is imported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum ImportError {
    /// Not a plan of another system.
    #[error(
        "{file} is no MSCCL XML and no MSCCL++ JSON file\nhelp: `check`, `compile` and `run` take Rust sources as they are"
    )]
    NotForeign {
        /// The file.
        file: String,
    },
    /// A form that is not made yet.
    #[error(
        "a plan cannot be written as Rust yet\nhelp: take --emit schedule; `check`, `compile` and `run` take the file as it is"
    )]
    Rust,
}

/// Does it.
pub(crate) fn import(import: &Import, out: &mut Output) -> Result<(), Failure> {
    if import.emit == Form::Rust {
        return Err(ImportError::Rust.into());
    }
    let collective = source::load_foreign(&import.file)?
        .ok_or_else(|| ImportError::NotForeign { file: import.file.clone() })?;
    let collective = import.setting.apply(collective)?;
    let ranks = crate::cli::ranks::one(&collective, None)?;
    let text = collective.verified(&collective.domain(ranks))?.to_string();
    out.field("collective", &collective.name);
    out.field("kind", collective.kind.name());
    out.field("file", &*collective.source.path);
    out.field("ranks", ranks);
    out.raw(&text);
    out.field("artifacts", [json!({ "stage": "schedule", "text": text })]);
    Ok(())
}
