//! `quadrille compile`: the text or file of any stage. Everything is produced before anything is written.

use crate::cli::failure::CommandFailure;
use crate::cli::files::{self, FileSet, WriteError};
use crate::cli::output::{Output, OutputFormat};
use crate::cli::runtime::RuntimeOption;
use crate::cli::setting::SettingOptions;
use crate::cli::{ranks, run, setting, source};
use clap::{Args, ValueEnum};
use quadrille_compiler::collective::Collective;
use quadrille_compiler::interop::{msccl, mscclpp};
use quadrille_compiler::program::dtype::DType;
use quadrille_compiler::schedule::domain::Domain;
use quadrille_runtime::nvrtc;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// The arguments of `compile`.
#[derive(Debug, Args)]
pub(crate) struct CompileArgs {
    /// A Rust source, an MSCCL XML file, or builtin:NAME; with ::NAME where it has several collectives
    #[arg(value_name = "FILE[::NAME]")]
    file: String,
    /// World size [default: the largest listed one up to 8, or 8]
    #[arg(long, value_name = "N")]
    ranks: Option<ranks::WorldSize>,
    /// The schedule to carry out, by its place among the `#[schedule(..)]` attributes
    #[arg(long, value_name = "N", default_value_t = 1)]
    schedule: usize,
    #[command(flatten)]
    setting: SettingOptions,
    /// GPU architecture of PTX and cubin
    #[arg(long, default_value = "sm_90")]
    arch: nvrtc::Arch,
    #[command(flatten)]
    element: run::Element,
    /// Stages to print or write [default: all but msccl, with -o]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "STAGE,..")]
    emit: Vec<Stage>,
    #[command(flatten)]
    runtime: RuntimeOption,
    /// Write NAME.EXTENSION for each stage into this folder, which is created if need be
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
}

/// A stage on the way from program to machine code.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
enum Stage {
    /// The chunk operations of all ranks.
    Program,
    /// Steps, waits and signals of every thread block, proved.
    Schedule,
    /// The kernel, rolled and compared with the schedule.
    Kernel,
    /// CUDA C++.
    Cuda,
    /// PTX, by NVRTC.
    Ptx,
    /// Machine code, by NVRTC.
    Cubin,
    /// An MSCCL XML file of the same movement, proved.
    Msccl,
    /// MSCCL++ execution plan; only where it is named.
    Mscclpp,
}

impl Stage {
    fn name(self) -> &'static str {
        match self {
            Stage::Program => "program",
            Stage::Schedule => "schedule",
            Stage::Kernel => "kernel",
            Stage::Cuda => "cuda",
            Stage::Ptx => "ptx",
            Stage::Cubin => "cubin",
            Stage::Msccl => "msccl",
            Stage::Mscclpp => "mscclpp",
        }
    }

    /// Returns true if the stage is one of Quadrille's own, which `-o` writes without `--emit`.
    fn own(self) -> bool {
        !matches!(self, Stage::Msccl | Stage::Mscclpp)
    }

    /// Of the file that `-o` writes.
    fn extension(self) -> &'static str {
        match self {
            Stage::Cuda => "cu",
            Stage::Msccl => "xml",
            Stage::Mscclpp => "json",
            other => other.name(),
        }
    }
}

/// Stages that cannot be printed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum StageError {
    /// Nothing says what to print.
    #[error(
        "nothing says what to print\nhelp: name a stage, as in --emit cuda, or a folder for all, as in -o out"
    )]
    None,
    /// Several texts for one stream.
    #[error(
        "{count} stages cannot be printed one after the other\nhelp: name one, or a folder, as in -o out"
    )]
    Several { count: usize },
    /// No text.
    #[error("a cubin is not text\nhelp: name a folder for it, as in -o out")]
    Binary,
    /// An architecture without the type's instructions.
    #[error(
        "{dtype} kernels need sm_{least} or newer, and --arch is {arch}\nhelp: use --arch sm_90, or another --dtype"
    )]
    Arch { dtype: DType, least: u32, arch: nvrtc::Arch },
}

impl From<StageError> for CommandFailure {
    fn from(error: StageError) -> CommandFailure {
        CommandFailure::usage(error)
    }
}

/// A stage's result.
#[derive(Debug)]
struct Artifact {
    stage: Stage,
    bytes: Vec<u8>,
}

/// Does it.
pub(crate) fn compile(compile: &CompileArgs, out: &mut Output) -> Result<(), CommandFailure> {
    let stages = stages(compile, out.format())?;
    let collective = compile.setting.apply(source::load(&compile.file)?)?;
    let collective = collective.with_schedule(setting::schedule(&collective, compile.schedule)?);
    let ranks = ranks::one(&collective, compile.ranks)?;
    let artifacts = produce(compile, &collective, ranks, &stages)?;
    let element = compile.element;
    out.field("collective", &collective.name);
    out.field("ranks", ranks);
    out.field("dtype", element.dtype.name());
    out.field("op", element.op.name());
    out.field("arch", compile.arch.to_string());
    match &compile.output {
        Some(folder) => {
            let paths = write(folder, &collective.name, &artifacts)?;
            let mut said = Vec::new();
            for (artifact, path) in artifacts.iter().zip(&paths) {
                let (stage, bytes) = (artifact.stage, artifact.bytes.len());
                out.line(format!("{} ({bytes} bytes)", path.display()));
                said.push(
                    serde_json::json!({ "stage": stage, "file": path.display().to_string(), "bytes": bytes }),
                );
            }
            out.field("artifacts", said);
        }
        None => {
            let mut said = Vec::new();
            for Artifact { stage, bytes } in &artifacts {
                // Every stage but the cubin, which `stages` refuses here, is text.
                let text = String::from_utf8_lossy(bytes);
                out.raw(&text);
                said.push(serde_json::json!({ "stage": stage, "text": text }));
            }
            out.field("artifacts", said);
        }
    }
    Ok(())
}

/// Returns the stages to make, in order, each once.
fn stages(compile: &CompileArgs, format: OutputFormat) -> Result<Vec<Stage>, StageError> {
    let mut stages = compile.emit.clone();
    stages.sort();
    stages.dedup();
    if compile.output.is_some() {
        let own = Stage::value_variants().iter().copied().filter(|stage| stage.own());
        return Ok(if stages.is_empty() { own.collect() } else { stages });
    }
    match &stages[..] {
        [] => Err(StageError::None),
        stages if stages.contains(&Stage::Cubin) => Err(StageError::Binary),
        [_, _, ..] if format == OutputFormat::Text => Err(StageError::Several { count: stages.len() }),
        _ => Ok(stages),
    }
}

fn produce(
    compile: &CompileArgs,
    collective: &Collective,
    ranks: u32,
    stages: &[Stage],
) -> Result<Vec<Artifact>, CommandFailure> {
    // GPUs before sm_90 have no multimem (PTX ISA).
    let domain = Domain { multicast: compile.arch.number >= 90, ..collective.domain(ranks) };
    let run::Element { dtype, op } = compile.element;
    let mut artifacts = Vec::new();
    for &stage in stages {
        let bytes = match stage {
            Stage::Program => collective.program(ranks)?.to_string().into_bytes(),
            Stage::Schedule => collective.verified(&domain)?.to_string().into_bytes(),
            Stage::Kernel => collective.kernel(&domain, dtype, op)?.to_string().into_bytes(),
            Stage::Cuda => collective.cuda(&domain, dtype, op)?.text.into_bytes(),
            Stage::Ptx => image(compile, collective, &domain, nvrtc::CodeKind::Ptx)?,
            Stage::Cubin => image(compile, collective, &domain, nvrtc::CodeKind::Cubin)?,
            Stage::Msccl => msccl::export(collective, ranks, compile.runtime.get())?.text.into_bytes(),
            Stage::Mscclpp => mscclpp::export(collective, &domain, op)?.into_bytes(),
        };
        artifacts.push(Artifact { stage, bytes });
    }
    Ok(artifacts)
}

fn image(
    compile: &CompileArgs,
    collective: &Collective,
    domain: &Domain,
    kind: nvrtc::CodeKind,
) -> Result<Vec<u8>, CommandFailure> {
    let run::Element { dtype, op } = compile.element;
    let cuda = collective.cuda(domain, dtype, op)?;
    let (least, arch) = (cuda.least_arch(), compile.arch);
    if arch.number < least {
        return Err(StageError::Arch { dtype, least, arch }.into());
    }
    nvrtc::provide(nvrtc::announce)?;
    let name = format!("{}.cu", collective.name);
    let options = nvrtc::CompileOptions { arch: compile.arch, kind, name: &name };
    let compiled = nvrtc::compile_with(nvrtc::Cache::from_env().as_ref(), &cuda.text, &options)?;
    Ok(compiled.image.code.bytes().to_vec())
}

/// Writes every file, or none.
fn write(folder: &Path, name: &str, artifacts: &[Artifact]) -> Result<Vec<PathBuf>, WriteError> {
    files::create_folder(folder)?;
    let path = |artifact: &Artifact| folder.join(format!("{name}.{}", artifact.stage.extension()));
    FileSet::reserve(artifacts.iter().map(path), true)?
        .publish(artifacts.iter().map(|artifact| &artifact.bytes))
}
