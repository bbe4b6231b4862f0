//! FILE[::NAME]: reads a collective from a Rust source, an MSCCL XML or an MSCCL++ JSON file, or takes a built-in.

use crate::cli::failure::CommandFailure;
use quadrille_compiler::collective::Collective;
use quadrille_compiler::interop::{msccl, mscclpp};
use quadrille_dsl::ParsedFile;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The largest source that is read, in bytes: a thousand times what people write.
const LARGEST: u64 = 16 << 20;

macro_rules! builtins {
    ($($name:literal)*) => {
        &[$(($name, include_str!(concat!("../../examples/", $name, ".rs")))),*]
    };
}

/// The built-in collectives: all sources in examples/.
pub(crate) const BUILTINS: &[(&str, &str)] = builtins! {
    "all_pairs_all_gather"
    "all_pairs_all_reduce"
    "all_pairs_reduce_scatter"
    "all_to_next"
    "bidirectional_ring_all_reduce"
    "binomial_broadcast"
    "binomial_reduce"
    "binomial_tree_all_reduce"
    "bruck_all_gather"
    "bruck_all_to_all"
    "chain_reduce"
    "chain_send_recv"
    "direct_gather"
    "direct_scatter"
    "double_binary_tree_all_reduce"
    "hierarchical_all_reduce"
    "multi_channel_ring_all_reduce"
    "multimem_all_gather"
    "multimem_broadcast"
    "multimem_one_shot_all_reduce"
    "multimem_reduce_scatter"
    "multimem_two_shot_all_reduce"
    "one_shot_all_reduce"
    "pairwise_all_to_all"
    "pipelined_chain_broadcast"
    "recursive_doubling_all_gather"
    "recursive_doubling_all_reduce"
    "recursive_halving_doubling_all_reduce"
    "recursive_halving_reduce_scatter"
    "ring_all_gather"
    "ring_all_reduce"
    "ring_reduce_scatter"
    "scatter_all_gather_broadcast"
    "torus_all_reduce"
    "two_shot_all_reduce"
    "two_step_all_to_all"
};

/// Why FILE[::NAME] gives no collective.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum SourceError {
    /// Nothing lies at the path.
    #[error(
        "there is no file {}\nhelp: name a Rust source with a #[collective] fn, an MSCCL XML or an MSCCL++ JSON file, or a built-in: {}",
        path.display(),
        builtins()
    )]
    Missing { path: PathBuf },
    /// A folder, not a file.
    #[error("{} is a folder\nhelp: name one Rust source in it", path.display())]
    Folder { path: PathBuf },
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    /// The file is no source that a person wrote.
    #[error(
        "{} has more than {} MiB\nhelp: name a Rust source with a #[collective] fn",
        path.display(),
        LARGEST >> 20
    )]
    Huge { path: PathBuf },
    /// The file is one of a stage that follows, or of another language.
    #[error(
        "{} is {what}, and no collective\nhelp: FILE is a Rust source with a #[collective] fn, an MSCCL XML or an MSCCL++ JSON file, or a built-in such as builtin:ring_all_reduce",
        path.display()
    )]
    OtherLanguage {
        path: PathBuf,
        /// The language, with an article.
        what: &'static str,
    },
    /// The file is not text.
    #[error(
        "{} is not UTF-8 text: byte {at} is wrong\nhelp: name a Rust source with a #[collective] fn",
        path.display()
    )]
    NotText {
        path: PathBuf,
        /// Bytes before the first wrong one.
        at: usize,
    },
    /// `builtin:NAME` with an unknown name.
    #[error("there is no built-in `{name}`\nhelp: the built-ins are {}", builtins())]
    NoBuiltin { name: String },
    /// The file has no text.
    #[error(
        "{file} is empty\nhelp: name a Rust source with a #[collective] fn, an MSCCL XML or an MSCCL++ JSON file"
    )]
    Empty { file: String },
    /// The file holds no collective.
    #[error(
        "{file} has no #[collective] fn\nhelp: write #[collective(all_reduce, ranks = [8], ..)] above a fn"
    )]
    NoCollective { file: String },
    /// Several collectives, and none was named.
    #[error("{file} has several collectives\nhelp: name one: {}", names.iter().map(|n| format!("{file}::{n}")).collect::<Vec<_>>().join(", "))]
    Several { file: String, names: Vec<String> },
    /// No collective of that name.
    #[error("{file} has no collective `{name}`\nhelp: it has {}", names.join(", "))]
    Unknown { file: String, name: String, names: Vec<String> },
}

impl From<SourceError> for CommandFailure {
    fn from(error: SourceError) -> CommandFailure {
        CommandFailure::usage(error)
    }
}

fn builtins() -> String {
    let names: Vec<_> = builtin_names().map(|name| format!("builtin:{name}")).collect();
    names.join(", ")
}

/// The names of the built-ins, without `builtin:`.
pub(crate) fn builtin_names() -> impl Iterator<Item = &'static str> {
    BUILTINS.iter().map(|(name, _)| *name)
}

/// The collective that `FILE[::NAME]` names.
pub(crate) fn load(argument: &str) -> Result<Collective, CommandFailure> {
    let (file, mut collectives) = load_all(argument)?;
    match collectives.len() {
        1 => Ok(collectives.swap_remove(0)),
        _ => {
            let names = collectives.into_iter().map(|collective| collective.name).collect();
            Err(SourceError::Several { file, names }.into())
        }
    }
}

/// Every collective of FILE, at least one, with the file's name; with NAME this one alone. Findings on others do not
/// count then.
pub(crate) fn load_all(argument: &str) -> Result<(String, Vec<Collective>), CommandFailure> {
    let (file, text, name) = read(argument)?;
    let (names, chosen) = match (foreign(&file, &text)?, name) {
        (Some(plan), None) => return Ok((file, vec![plan])),
        (Some(plan), Some(name)) => (vec![plan.name.clone()], (plan.name == name).then_some(plan)),
        (None, None) => {
            let collectives = ParsedFile::new(&file, &text)?.all()?;
            if collectives.is_empty() {
                return Err(SourceError::NoCollective { file }.into());
            }
            return Ok((file, collectives));
        }
        (None, Some(name)) => {
            let parsed = ParsedFile::new(&file, &text)?;
            (parsed.names(), parsed.one(name).transpose()?)
        }
    };
    match (chosen, name) {
        (Some(collective), _) => Ok((file, vec![collective])),
        (None, _) if names.is_empty() => Err(SourceError::NoCollective { file }.into()),
        (None, name) => {
            Err(SourceError::Unknown { file, name: name.unwrap_or_default().into(), names }.into())
        }
    }
}

/// The collective of a file of another system; `None` where it is none.
pub(crate) fn load_foreign(argument: &str) -> Result<Option<Collective>, CommandFailure> {
    let (file, text, _) = read(argument)?;
    foreign(&file, &text)
}

fn foreign(file: &str, text: &str) -> Result<Option<Collective>, CommandFailure> {
    // A file of that name that is cut off or begins with something else is still no Rust.
    let named = |extension: &str| Path::new(file).extension().is_some_and(|found| found == extension);
    Ok(match (msccl::is_xml(text), mscclpp::is_json(text)) {
        (true, _) => Some(msccl::import(file, text)?),
        (_, true) => Some(mscclpp::import(file, text)?),
        _ if named("xml") => Some(msccl::import(file, text)?),
        _ if named("json") => Some(mscclpp::import(file, text)?),
        _ => None,
    })
}

/// The name to show for the source, its text, and NAME.
fn read(argument: &str) -> Result<(String, String, Option<&str>), SourceError> {
    // A file whose own name has `::` in it is still a file.
    let (file, name) = match argument.rsplit_once("::") {
        Some((file, name)) if !Path::new(argument).exists() => (file, Some(name)),
        _ => (argument, None),
    };
    let text = match file.strip_prefix("builtin:") {
        Some(builtin) => BUILTINS
            .iter()
            .find(|(known, _)| *known == builtin)
            .map(|(_, text)| (*text).to_owned())
            .ok_or_else(|| SourceError::NoBuiltin { name: builtin.into() })?,
        None => read_file(Path::new(file))?,
    };
    if text.trim_start_matches('\u{feff}').trim().is_empty() {
        return Err(SourceError::Empty { file: file.to_owned() });
    }
    Ok((file.to_owned(), text, name))
}

/// Files that people pass by mistake, by their extension.
const OTHER_LANGUAGES: [(&[&str], &str); 6] = [
    (&["cu", "cuh"], "CUDA C++"),
    (&["ptx"], "PTX"),
    (&["cubin", "fatbin"], "machine code"),
    (&["program", "schedule", "kernel"], "a stage that `quadrille compile` writes"),
    (&["py"], "Python"),
    (&["c", "cc", "cpp", "h", "hpp"], "C or C++"),
];

fn read_file(path: &Path) -> Result<String, SourceError> {
    let own = || path.to_owned();
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    if path.exists()
        && let Some((_, what)) =
            OTHER_LANGUAGES.iter().find(|(extensions, _)| extensions.contains(&extension))
    {
        return Err(SourceError::OtherLanguage { path: own(), what });
    }
    let failed = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => SourceError::Missing { path: own() },
        io::ErrorKind::IsADirectory => SourceError::Folder { path: own() },
        _ => SourceError::Read { path: own(), source },
    };
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(failed)?;
    file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > LARGEST {
        return Err(SourceError::Huge { path: own() });
    }
    String::from_utf8(bytes)
        .map_err(|error| SourceError::NotText { path: own(), at: error.utf8_error().valid_up_to() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_builtins_are_the_examples() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
        let mut files: Vec<_> = std::fs::read_dir(folder)
            .and_then(Iterator::collect::<io::Result<Vec<_>>>)
            .map(|entries| entries.iter().map(|e| e.file_name().to_string_lossy().into_owned()).collect())
            .unwrap_or_default();
        files.retain(|file: &String| file.ends_with(".rs"));
        files.sort();
        let builtin: Vec<_> = BUILTINS.iter().map(|(name, _)| format!("{name}.rs")).collect();
        assert_eq!(files, builtin);
    }
}
