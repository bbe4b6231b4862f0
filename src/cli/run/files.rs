//! `run --input --output`: each rank's data from a file, and its result into one.

use crate::cli::failure::CommandFailure;
use crate::cli::files::{FileSet, folder};
use crate::cli::tensors::{self, EncodeError, FileProblem, TensorFile, TensorFormat};
use clap::Args;
use quadrille_compiler::program::Program;
use quadrille_compiler::program::dtype::DType;
use quadrille_compiler::program::ids::Rank;
use quadrille_runtime::units;
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Stands for a rank's number in the name of a file.
const RANK: &str = "{rank}";

/// Problems that are listed.
const LISTED: usize = 16;

/// The name under which .safetensors files keep what is no tensor.
const METADATA: &str = "__metadata__";

/// The options on files.
#[derive(Debug, Args)]
pub(crate) struct FileOptions {
    /// Take each rank's input from a .npy or .safetensors file instead of test data, as in 'grad_{rank}.npy'; type and
    /// size are the file's
    #[arg(long, value_name = "FILE", conflicts_with_all = ["bytes", "dtype"])]
    input: Option<RankPath>,
    /// Write each rank's result into a file, once all are right
    #[arg(long, value_name = "FILE", requires = "input")]
    output: Option<RankPath>,
    /// The tensor in .safetensors files [default: the only one]
    #[arg(long, value_name = "NAME", requires = "input")]
    tensor: Option<String>,
    /// Replace output files that exist
    #[arg(long, requires = "output")]
    overwrite: bool,
}

/// The path of each rank's file.
#[derive(Clone, PartialEq, Eq, Debug)]
struct RankPath(String);

impl From<String> for RankPath {
    fn from(text: String) -> RankPath {
        RankPath(text)
    }
}

impl RankPath {
    fn of(&self, rank: Rank) -> PathBuf {
        self.0.replace(RANK, &rank.0.to_string()).into()
    }

    /// The files of some ranks.
    fn files(&self, ranks: &[Rank], option: &'static str) -> Result<Vec<PathBuf>, FilesError> {
        if ranks.len() > 1 && !self.0.contains(RANK) {
            return Err(FilesError::OneForAll { option, path: self.0.clone(), ranks: ranks.len() });
        }
        Ok(ranks.iter().map(|&rank| self.of(rank)).collect())
    }
}

impl From<FilesError> for CommandFailure {
    fn from(error: FilesError) -> CommandFailure {
        CommandFailure::usage(error)
    }
}

/// Why the user's files cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum FilesError {
    /// Results of test data are not written.
    #[error(
        "--output without --input\nhelp: test data are checked, not written; give the ranks' data by --input"
    )]
    OutputAlone,
    /// One name for the files of several ranks.
    #[error(
        "{option} {path} names one file for {ranks} ranks\nhelp: write {RANK} where a rank's number stands, as in \
         'grad_{RANK}.npy'"
    )]
    OneForAll {
        /// The option.
        option: &'static str,
        /// Its value.
        path: String,
        /// Ranks that have such a file.
        ranks: usize,
    },
    /// Input files that cannot be read or do not go together.
    #[error("the input files cannot be used:{}", list(problems))]
    Inputs {
        /// Everything that is wrong; not empty.
        problems: Vec<RankFileProblem>,
    },
    /// Messages that the collective does not admit.
    #[error(
        "`{name}` is for counts that are multiples of {chunks} (`divisible`), and the input files make a count of \
         {count}\nhelp: pad them"
    )]
    Uneven {
        /// The collective.
        name: String,
        /// Chunks of a unit.
        chunks: u32,
        /// Elements of a unit.
        count: u64,
    },
    /// `--tensor` without a .safetensors file.
    #[error(
        "--tensor names a tensor of .safetensors files, and no such file is read or written\nhelp: leave it out"
    )]
    NoTensors,
    /// A .safetensors file to be written, and no name for its tensor.
    #[error("a tensor in a .safetensors file has a name\nhelp: say it, as in --tensor grad")]
    NoName,
    /// A name that no tensor can have.
    #[error("no tensor of a .safetensors file can have the name {METADATA}\nhelp: choose another --tensor")]
    Name,
    /// An output whose name says no format.
    #[error("{} ends neither in .npy nor in .safetensors\nhelp: name the output files so", path.display())]
    Format {
        /// The file.
        path: PathBuf,
    },
    /// A type that the output's format does not have.
    #[error("{} files do not hold {dtype}\nhelp: write .safetensors files", format.name())]
    Type {
        /// The format.
        format: TensorFormat,
        /// The elements' type.
        dtype: DType,
    },
    /// An output that would replace an input.
    #[error("{} is an input, and is not overwritten\nhelp: name other output files", path.display())]
    Same {
        /// The file.
        path: PathBuf,
    },
    /// A file that was good a moment ago.
    #[error("{}: {problem}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The problem with the file now.
        problem: FileProblem,
    },
    /// A result that its file's format does not hold.
    #[error("{}: {problem}", path.display())]
    Encode {
        /// The file.
        path: PathBuf,
        /// Why.
        problem: EncodeError,
    },
}

fn list(problems: &[RankFileProblem]) -> String {
    let mut text = String::new();
    for RankFileProblem { rank, path, why } in problems.iter().take(LISTED) {
        // Writing to a String does not fail.
        let _ = write!(text, "\n  {} (rank {}): {why}", path.display(), rank.0);
    }
    let more = problems.len().saturating_sub(LISTED);
    if more > 0 { text + &format!("\n  and {more} more") } else { text }
}

/// A problem with one rank's input.
#[derive(Debug)]
pub(crate) struct RankFileProblem {
    rank: Rank,
    path: PathBuf,
    why: Why,
}

#[derive(Debug, thiserror::Error)]
enum Why {
    #[error(transparent)]
    File(FileProblem),
    #[error("its elements are {dtype}, those of {} are {other}; all ranks' must be of one type", first.display())]
    Type { dtype: DType, first: PathBuf, other: DType },
    #[error("it has {elements} elements, {} has {other}; all ranks' must be equally long", first.display())]
    Length { elements: u64, first: PathBuf, other: u64 },
    #[error("it has {elements} elements, which {units} ranks cannot share equally")]
    Units { elements: u64, units: u32 },
}

/// Input files whose headers go together, and places for the results.
#[derive(Debug)]
pub(super) struct Files {
    pub(super) dtype: DType,
    /// Elements of a unit.
    pub(super) count: u64,
    /// World size.
    ranks: u32,
    inputs: Vec<(Rank, TensorFile)>,
    outputs: Option<Outputs>,
}

/// Places for the results.
#[derive(Debug)]
pub(super) struct Outputs {
    set: FileSet,
    dtype: DType,
    /// The tensor's name.
    name: String,
    files: Vec<OutputFile>,
}

/// A rank's result.
#[derive(Debug)]
struct OutputFile {
    rank: Rank,
    path: PathBuf,
    format: TensorFormat,
    shape: Vec<u64>,
}

impl Files {
    /// Reads the headers of the input files, and finds out all that can be wrong before the data are read; `None` where
    /// there are no input files.
    pub(super) fn open(program: &Program, options: &FileOptions) -> Result<Option<Files>, CommandFailure> {
        let Some(input) = &options.input else {
            // The defaults of what `--input` excludes keep the parser of arguments from saying so.
            return if options.output.is_some() { Err(FilesError::OutputAlone.into()) } else { Ok(None) };
        };
        let shape = &program.shape;
        let all = || (0..shape.ranks).map(Rank);
        let senders: Vec<_> = all().filter(|&rank| units::input_units(shape, rank) > 0).collect();
        let inputs = open(&senders, &input.files(&senders, "--input")?, options.tensor.as_deref())?;
        let mut problems = Vec::new();
        let mut message = None;
        for (rank, file) in &inputs {
            let units = units::input_units(shape, *rank);
            let (dtype, elements) = (file.info.dtype, file.info.elements());
            let mut add = |why| problems.push(RankFileProblem { rank: *rank, path: file.path.clone(), why });
            let &mut (first, other, count) =
                message.get_or_insert((&file.path, dtype, elements / u64::from(units)));
            if dtype != other {
                add(Why::Type { dtype, first: first.clone(), other });
            }
            if elements % u64::from(units) != 0 {
                add(Why::Units { elements, units });
            } else if elements != count * u64::from(units) {
                add(Why::Length { elements, first: first.clone(), other: count * u64::from(units) });
            }
        }
        if !problems.is_empty() {
            return Err(FilesError::Inputs { problems }.into());
        }
        let (dtype, count) = message.map_or((DType::F32, 0), |(_, dtype, count)| (dtype, count));
        if program.divisible && count % u64::from(shape.chunks) != 0 {
            let (name, chunks) = (program.name.clone(), shape.chunks);
            return Err(FilesError::Uneven { name, chunks, count }.into());
        }
        let receivers: Vec<_> = all()
            .map(|rank| (rank, u64::from(units::output_units(shape, rank)) * count))
            .filter(|&(rank, _)| units::output_units(shape, rank) > 0)
            .collect();
        let mut outputs = None;
        if let Some(output) = &options.output {
            outputs = Some(reserve(output, &receivers, &inputs, dtype, options)?);
        }
        let tensors = inputs.iter().map(|(_, file)| TensorFormat::of(&file.path));
        let mut tensors = tensors.chain(outputs.iter().flat_map(|o| o.files.iter().map(|f| Some(f.format))));
        if options.tensor.is_some() && !tensors.any(|format| format == Some(TensorFormat::Safetensors)) {
            return Err(FilesError::NoTensors.into());
        }
        Ok(Some(Files { dtype, count, ranks: shape.ranks, inputs, outputs }))
    }

    /// In JSON.
    pub(super) fn described(&self) -> Vec<Value> {
        let describe = |(rank, file): &(Rank, TensorFile)| {
            let path = file.path.display().to_string();
            json!({ "rank": rank.0, "file": path, "dtype": file.info.dtype.name(), "shape": file.info.shape })
        };
        self.inputs.iter().map(describe).collect()
    }

    /// Reads each rank's contribution, and returns it with the files of the results.
    pub(super) fn read(self) -> Result<(Vec<Vec<u8>>, Option<Outputs>), FilesError> {
        let mut inputs = vec![Vec::new(); self.ranks as usize];
        for (rank, mut file) in self.inputs {
            let read = file.read();
            inputs[rank.0 as usize] =
                read.map_err(|problem| FilesError::Read { path: file.path, problem })?;
        }
        Ok((inputs, self.outputs))
    }
}

impl Outputs {
    /// Writes what each rank received; all files or none.
    pub(super) fn publish(self, results: &[Vec<u8>]) -> Result<Vec<PathBuf>, CommandFailure> {
        let mut contents = Vec::new();
        for OutputFile { rank, path, format, shape } in self.files {
            let data = results.get(rank.0 as usize).map_or(&[][..], Vec::as_slice);
            let encoded = tensors::encode(format, &self.name, self.dtype, &shape, data);
            contents.push(encoded.map_err(|problem| FilesError::Encode { path, problem })?);
        }
        Ok(self.set.publish(contents)?)
    }
}

fn open(
    ranks: &[Rank],
    paths: &[PathBuf],
    tensor: Option<&str>,
) -> Result<Vec<(Rank, TensorFile)>, FilesError> {
    let (mut files, mut problems) = (Vec::new(), Vec::new());
    for (&rank, path) in ranks.iter().zip(paths) {
        match TensorFile::open(path, tensor) {
            Ok(file) => files.push((rank, file)),
            Err(problem) => {
                problems.push(RankFileProblem { rank, path: path.clone(), why: Why::File(problem) });
            }
        }
    }
    if problems.is_empty() { Ok(files) } else { Err(FilesError::Inputs { problems }) }
}

/// Places for what ranks receive: so many elements each.
fn reserve(
    output: &RankPath,
    receivers: &[(Rank, u64)],
    inputs: &[(Rank, TensorFile)],
    dtype: DType,
    options: &FileOptions,
) -> Result<Outputs, CommandFailure> {
    let ranks: Vec<_> = receivers.iter().map(|(rank, _)| *rank).collect();
    let paths = output.files(&ranks, "--output")?;
    // The tensor's name is the input's, where that was the only one and so was not said.
    let only = inputs.iter().find_map(|(_, file)| file.info.name.clone());
    let name = options.tensor.clone().or(only);
    let mut files = Vec::new();
    for (&(rank, elements), path) in receivers.iter().zip(&paths) {
        let format = TensorFormat::of(path).ok_or_else(|| FilesError::Format { path: path.clone() })?;
        if !format.takes(dtype) {
            return Err(FilesError::Type { format, dtype }.into());
        }
        match &name {
            None if format == TensorFormat::Safetensors => return Err(FilesError::NoName.into()),
            Some(name) if format == TensorFormat::Safetensors && name == METADATA => {
                return Err(FilesError::Name.into());
            }
            _ => {}
        }
        if inputs.iter().any(|(_, input)| same(&input.path, path)) {
            return Err(FilesError::Same { path: path.clone() }.into());
        }
        let own = inputs.iter().find(|(sender, _)| *sender == rank).or(inputs.first());
        let shape = own.map(|(_, file)| &file.info).filter(|info| info.elements() == elements);
        let shape = shape.map_or_else(|| vec![elements], |info| info.shape.clone());
        files.push(OutputFile { rank, path: path.clone(), format, shape });
    }
    let set = FileSet::reserve(paths, options.overwrite)?;
    Ok(Outputs { set, dtype, name: name.unwrap_or_default(), files })
}

/// Returns true if two paths lead to one file.
fn same(input: &Path, output: &Path) -> bool {
    let place = |path: &Path| {
        let folder = folder(path).canonicalize();
        folder.map_or_else(|_| path.to_owned(), |folder| folder.join(path.file_name().unwrap_or_default()))
    };
    let target = |path: &Path| path.canonicalize().unwrap_or_else(|_| place(path));
    place(input) == place(output) || target(input) == target(output)
}
