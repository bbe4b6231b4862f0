//! A libnvrtc on a machine: its version, its files, and the place where it was found.

use std::fmt;
use std::path::PathBuf;

/// A CUDA version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// The major version: 13 in 13.0.
    pub major: u32,
    /// The minor version: 0 in 13.0.
    pub minor: u32,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// A place that libnvrtc is looked for in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Source {
    /// The file or folder in `QUADRILLE_NVRTC`.
    Setting,
    /// The CUDA toolkit in `CUDA_HOME`.
    CudaHome,
    /// The CUDA toolkit in `CUDA_PATH`.
    CudaPath,
    /// The dynamic loader's path.
    Loader,
    /// A wheel that the active Python imports from.
    Python,
    /// Quadrille's own cache.
    Cache,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Source::Setting => "QUADRILLE_NVRTC",
            Source::CudaHome => "CUDA_HOME",
            Source::CudaPath => "CUDA_PATH",
            Source::Loader => "the loader's path",
            Source::Python => "Python's wheels",
            Source::Cache => "Quadrille's cache",
        })
    }
}

/// A libnvrtc on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// libnvrtc, an absolute path.
    pub path: PathBuf,
    /// The builtins library beside it, an absolute path.
    pub builtins: PathBuf,
    /// Its CUDA version.
    pub version: Version,
    /// The place where it was found.
    pub source: Source,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NVRTC {} at {} (from {})", self.version, self.path.display(), self.source)
    }
}
