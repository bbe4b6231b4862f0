//! Errors of libnvrtc on a machine, each with what to do about it.

use std::fmt;
use std::io;
use std::path::PathBuf;

use super::found::{Source, Version};
use super::tool::ToolError;

/// Advice if libnvrtc is missing and nothing may or can be fetched.
const BY_HAND: &str = "install it with `python3 -m pip install 'nvidia-cuda-nvrtc==13.0.*'` (NVIDIA driver older \
     than 580: `'nvidia-cuda-nvrtc-cu12==12.9.*'`), or set QUADRILLE_NVRTC to a libnvrtc.so.13 or .12 or to its \
     folder";

/// libnvrtc cannot be found, fetched or loaded: the machine lacks something.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NvrtcError {
    /// `QUADRILLE_NVRTC` is set, and what it names cannot be used.
    #[error(
        "QUADRILLE_NVRTC is {}, but {absence}\nhelp: set it to a libnvrtc.so.13 or .12 that has its \
         libnvrtc-builtins beside it, or to their folder, or unset it",
        path.display()
    )]
    Setting {
        /// The variable's value.
        path: PathBuf,
        /// The problem with it.
        absence: Absence,
    },
    /// No place has a libnvrtc.
    #[error("libnvrtc, CUDA's run-time compiler, is not on this machine{}\nhelp: {BY_HAND}", list(looked))]
    Missing {
        /// Every place that was looked at, in order, and why it has none.
        looked: Vec<Looked>,
    },
    /// No place has a libnvrtc, and `QUADRILLE_OFFLINE` forbids to fetch one.
    #[error(
        "libnvrtc, CUDA's run-time compiler, is not on this machine, and QUADRILLE_OFFLINE forbids to fetch \
         it{}\nhelp: unset QUADRILLE_OFFLINE, or {BY_HAND}",
        list(looked)
    )]
    Offline {
        /// Every place that was looked at, in order, and why it has none.
        looked: Vec<Looked>,
    },
    /// No place has a libnvrtc, and there is no folder to fetch one into.
    #[error(
        "libnvrtc cannot be fetched: there is no cache folder, as neither XDG_CACHE_HOME nor HOME is an absolute \
         path\nhelp: set one of them, or {BY_HAND}"
    )]
    NoCacheFolder,
    /// `python3`, which downloads and unpacks the wheel, failed.
    #[error("libnvrtc could not be fetched: {error}\nhelp: {}{BY_HAND}", first_aid(error))]
    Fetch {
        /// The command that was run and its output.
        error: ToolError,
    },
    /// The wheel that was fetched does not hold what it should.
    #[error(
        "libnvrtc could not be fetched: the wheel for `{requirement}` is not usable: {problem}\nhelp: {BY_HAND}"
    )]
    Wheel {
        /// The requirement that pip was asked for.
        requirement: String,
        /// The problem with the wheel that it gave.
        problem: WheelProblem,
    },
    /// The cache cannot be read or written.
    #[error(
        "libnvrtc could not be fetched: cannot {doing} {}: {error}\nhelp: the cache needs about 350 MB while it \
         unpacks and 120 MB after; make room there, set XDG_CACHE_HOME to another folder, or {BY_HAND}",
        path.display()
    )]
    Cache {
        /// The operation, as a verb.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The dynamic loader refuses the library.
    #[error(
        "{} (from {origin}) cannot be loaded: {error}\nhelp: it may be damaged or for another processor: replace \
         it, or set QUADRILLE_NVRTC to another",
        path.display()
    )]
    Load {
        /// The library.
        path: PathBuf,
        /// The place where it was found.
        origin: Source,
        /// The loader's error.
        error: libloading::Error,
    },
    /// The library lacks a function that Quadrille calls.
    #[error(
        "{} (from {origin}) has no function `{symbol}`, so it is no libnvrtc of CUDA 12 or later\nhelp: replace it, \
         or set QUADRILLE_NVRTC to another",
        path.display()
    )]
    Symbol {
        /// The library.
        path: PathBuf,
        /// The place where it was found.
        origin: Source,
        /// The function.
        symbol: &'static str,
    },
    /// The library was loaded, but is not the one that calls would reach.
    #[error(
        "{} (from {origin}) cannot be used: the dynamic loader gives {} for the name libnvrtc.so\nhelp: set \
         QUADRILLE_NVRTC to the one that the loader gives, or make a symbolic link libnvrtc.so to the wanted one in \
         a folder that is first on LD_LIBRARY_PATH",
        path.display(),
        bound.as_deref().map_or("no usable library".into(), |path| path.display().to_string())
    )]
    Shadowed {
        /// The library that was found.
        path: PathBuf,
        /// The place where it was found.
        origin: Source,
        /// The library that calls would reach, if any.
        bound: Option<PathBuf>,
    },
    /// The library says another version than its files' names.
    #[error(
        "{} (from {origin}) is of CUDA {actual}, but the libnvrtc-builtins beside it is of {expected}\nhelp: replace \
         the two by a pair from one CUDA version, or set QUADRILLE_NVRTC to another",
        path.display()
    )]
    Mixed {
        /// The library.
        path: PathBuf,
        /// The place where it was found.
        origin: Source,
        /// The version of the builtins.
        expected: Version,
        /// The version that the library reports.
        actual: Version,
    },
    /// The library cannot say its version or its architectures.
    #[error("{} (from {origin}): {call} failed: {code}\nhelp: set QUADRILLE_NVRTC to another", path.display())]
    Query {
        /// The library.
        path: PathBuf,
        /// The place where it was found.
        origin: Source,
        /// NVRTC's function.
        call: &'static str,
        /// Its result.
        code: cudarc::nvrtc::result::NvrtcError,
    },
}

/// A problem with a wheel that pip gave.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WheelProblem {
    /// pip ended well, but left no wheel whose name has a version.
    #[error("pip left no wheel")]
    None,
    /// The wheel has no usable libnvrtc.
    #[error("{0}")]
    Content(Absence),
}

/// A place that was looked at, and why it has no libnvrtc to use.
#[derive(Debug)]
pub struct Looked {
    /// The place.
    pub source: Source,
    /// Why it has none.
    pub absence: Absence,
}

/// Why a place has no libnvrtc to use.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Absence {
    /// The environment variable is not set, or empty.
    #[error("not set")]
    NotSet,
    /// There is no such file or folder.
    #[error("there is no {}", path.display())]
    NoSuchPath {
        /// The file or folder.
        path: PathBuf,
    },
    /// The folder has no library of a supported version.
    #[error("{} has no libnvrtc.so.13 or .12", folder.display())]
    NoLibrary {
        /// The folder.
        folder: PathBuf,
    },
    /// The file's name is not that of a libnvrtc.
    #[error("{} is not named libnvrtc.so, with or without a version", path.display())]
    NotNvrtc {
        /// The file.
        path: PathBuf,
    },
    /// The library lies there without its builtins.
    #[error("{} has no libnvrtc-builtins of its version beside it", library.display())]
    NoBuiltins {
        /// The library.
        library: PathBuf,
    },
    /// The library is of a CUDA version that Quadrille does not use.
    #[error("{} is of CUDA {major}, and only 13 and 12 are supported", library.display())]
    Unsupported {
        /// The library.
        library: PathBuf,
        /// Its CUDA major version.
        major: u32,
    },
    /// The cached library makes images that the installed driver may refuse.
    #[error("{} is newer than the NVIDIA driver, which is of CUDA {driver}", library.display())]
    NewerThanDriver {
        /// The library.
        library: PathBuf,
        /// The CUDA version of the driver.
        driver: Version,
    },
    /// The library is not of the version that is asked for.
    #[error("{} is of CUDA {version}, not {wanted}", library.display())]
    OtherVersion {
        /// The library.
        library: PathBuf,
        /// Its CUDA version.
        version: Version,
        /// The version that is asked for.
        wanted: Version,
    },
    /// The dynamic loader finds no such library.
    #[error("no libnvrtc.so, .so.13 or .so.12")]
    NotOnLoaderPath,
    /// Python has the wheel in none of the folders that it imports from.
    #[error("none of the {folders} folders that python3 imports from has the wheel")]
    NoWheel {
        /// Returns the number of folders.
        folders: usize,
    },
    /// Python cannot be asked.
    #[error(transparent)]
    Python(ToolError),
    /// There is no cache folder.
    #[error("none, as neither XDG_CACHE_HOME nor HOME is an absolute path")]
    NoCacheFolder,
}

fn list(looked: &[Looked]) -> String {
    looked.iter().map(|looked| format!("\n  {looked}")).collect()
}

/// Advice that fits what went wrong with python3, to stand before the general advice.
fn first_aid(error: &ToolError) -> &'static str {
    match error {
        ToolError::NotInstalled { .. } => "install Python 3 with pip and try again, or ",
        ToolError::Failed { stderr, .. } if stderr.contains("No module named pip") => {
            "install pip (`python3 -m ensurepip`, or the system's python3-pip package), or "
        }
        _ => "check the network and pip's settings and try again, or ",
    }
}

impl fmt::Display for Looked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.source, self.absence)
    }
}
