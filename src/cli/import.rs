//! `quadrille import`: a plan of another system as what Quadrille makes of it.

use crate::cli::failure::CommandFailure;
use crate::cli::output::Output;
use crate::cli::setting::SettingOptions;
use crate::cli::source;
use clap::{Args, ValueEnum};
use quadrille_compiler::collective::Collective;
use quadrille_compiler::diagnostic::{Diagnostic, Diagnostics};
use quadrille_compiler::interop;
use quadrille_compiler::options::{Given, ScheduleOptions};
use serde_json::json;

/// The arguments of `import`.
#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// An MSCCL XML or an MSCCL++ JSON file
    #[arg(value_name = "FILE")]
    file: String,
    #[command(flatten)]
    setting: SettingOptions,
    /// The form to print
    #[arg(long, value_enum, default_value_t = ImportForm::Schedule)]
    emit: ImportForm,
}

/// The form in which a plan is printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum ImportForm {
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
    /// The source that was made is refused.
    #[error(
        "`{name}` as Rust is refused: {why}\nhelp: take --emit schedule; `check`, `compile` and `run` take the file as it is"
    )]
    Rust {
        /// The plan.
        name: String,
        /// The finding.
        why: String,
    },
}

impl From<ImportError> for CommandFailure {
    fn from(error: ImportError) -> CommandFailure {
        CommandFailure::usage(error)
    }
}

/// Does it.
pub(crate) fn import(import: &ImportArgs, out: &mut Output) -> Result<(), CommandFailure> {
    let collective = source::load_foreign(&import.file)?
        .ok_or_else(|| ImportError::NotForeign { file: import.file.clone() })?;
    let collective = import.setting.apply(collective)?;
    let ranks = crate::cli::ranks::one(&collective, None)?;
    let schedule = collective.verified(&collective.domain(ranks))?;
    let (stage, text) = match import.emit {
        ImportForm::Schedule => ("schedule", schedule.to_string()),
        ImportForm::Rust => ("rust", rust(&collective, ranks)?),
    };
    out.field("collective", &collective.name);
    out.field("kind", collective.kind.name());
    out.field("file", &*collective.source.path);
    out.field("ranks", ranks);
    out.raw(&text);
    out.field("artifacts", [json!({ "stage": stage, "text": text })]);
    Ok(())
}

/// Blocks of a rank with which two ranks need no more than 25 FIFOs, whatever goes where: one for each pair of blocks.
const FEW_BLOCKS: u32 = 5;

/// The Rust source, which is proved like any. Its operations name the blocks of the plan; where those and the blocks that are
/// found for what they send and receive do not go together, lowering finds all blocks.
fn rust(collective: &Collective, ranks: u32) -> Result<String, CommandFailure> {
    let (program, options) = (collective.program(ranks)?, collective.options());
    let few = options.blocks.map(|given| Given { value: FEW_BLOCKS.min(given.value), ..given });
    let few = ScheduleOptions { blocks: few, ..options.clone() };
    let mut refused = None;
    for (options, named) in [(&options, true), (&options, false), (&few, false)] {
        let text = interop::rust(&program, options, named)?;
        match prove(&format!("{}.rs", collective.name), &text, ranks) {
            Ok(()) => return Ok(text),
            Err(wrong) => refused = Some(wrong),
        }
    }
    let why = refused.iter().flat_map(|wrong| &wrong.list).map(Diagnostic::plain).next().unwrap_or_default();
    Err(ImportError::Rust { name: collective.name.clone(), why }.into())
}

fn prove(path: &str, text: &str, ranks: u32) -> Result<(), Diagnostics> {
    for made in quadrille_dsl::parse_file(path, text)? {
        made.verified(&made.domain(ranks))?;
    }
    Ok(())
}
