//! Tensors in files: .npy and .safetensors. What a header claims is believed only after it agrees with the file's size,
//! so nothing is allocated for data that are not there.

pub(crate) mod bound;
mod npy;
mod safetensors;

use npy::NpyProblem;
use quadrille_compiler::program::dtype::DType;
use safetensors::SafetensorsProblem;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// The formats, by the extension of a file's name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TensorFormat {
    /// NumPy's, one array a file.
    Npy,
    /// Hugging Face's, named tensors.
    Safetensors,
}

impl TensorFormat {
    /// The format of a file of this name.
    pub(crate) fn of(path: &Path) -> Option<TensorFormat> {
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        match &*extension {
            "npy" => Some(TensorFormat::Npy),
            "safetensors" => Some(TensorFormat::Safetensors),
            _ => None,
        }
    }

    /// Returns true if files of this format hold elements of this type.
    pub(crate) fn takes(self, dtype: DType) -> bool {
        match self {
            TensorFormat::Npy => npy::takes(dtype),
            TensorFormat::Safetensors => safetensors::takes(dtype),
        }
    }

    /// Its extension.
    pub(crate) fn name(self) -> &'static str {
        match self {
            TensorFormat::Npy => ".npy",
            TensorFormat::Safetensors => ".safetensors",
        }
    }
}

/// The facts of a header that agrees with its file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct TensorInfo {
    /// Element type.
    pub(crate) dtype: DType,
    /// Elements in each dimension, the last one contiguous; empty for a single number.
    pub(crate) shape: Vec<u64>,
    /// The offset of the data in the file, in bytes.
    offset: u64,
    /// How many bytes they have.
    pub(crate) bytes: u64,
    /// The bytes of every element stand in the other order than in memory.
    swapped: bool,
    /// The tensor's name, where the format has names.
    pub(crate) name: Option<String>,
}

impl TensorInfo {
    /// Elements.
    pub(crate) fn elements(&self) -> u64 {
        self.bytes / self.dtype.bytes() as u64
    }
}

/// Bytes of a shape; `None` where they are more than a file can have.
fn bytes(shape: &[u64], dtype: DType) -> Option<u64> {
    // A dimension of 0 makes it empty, whatever the others are.
    if shape.contains(&0) {
        return Some(0);
    }
    shape.iter().try_fold(dtype.bytes() as u64, |bytes, &n| bytes.checked_mul(n))
}

/// Why a file gives no tensor.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum FileProblem {
    /// Nothing lies at the path.
    #[error("there is no such file")]
    Missing,
    /// A folder, a pipe or a device.
    #[error("it is not a regular file")]
    NotAFile,
    /// The system refuses.
    #[error("it cannot be read: {0}")]
    Read(io::Error),
    /// Neither format, by its name.
    #[error("its name ends neither in .npy nor in .safetensors")]
    Extension,
    /// No usable .npy file.
    #[error(transparent)]
    Npy(#[from] NpyProblem),
    /// No usable .safetensors file.
    #[error(transparent)]
    Safetensors(#[from] SafetensorsProblem),
}

impl From<io::Error> for FileProblem {
    fn from(error: io::Error) -> FileProblem {
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => FileProblem::Missing,
            _ => FileProblem::Read(error),
        }
    }
}

/// A file whose header has been read.
#[derive(Debug)]
pub(crate) struct TensorFile {
    /// The path.
    pub(crate) path: PathBuf,
    /// The type and shape.
    pub(crate) info: TensorInfo,
    file: File,
}

impl TensorFile {
    /// Reads a file's header. `tensor` names one of several tensors.
    pub(crate) fn open(path: &Path, tensor: Option<&str>) -> Result<TensorFile, FileProblem> {
        let format = TensorFormat::of(path).ok_or(FileProblem::Extension)?;
        // A pipe would be waited for.
        if !fs::metadata(path)?.is_file() {
            return Err(FileProblem::NotAFile);
        }
        let mut file = File::open(path)?;
        let size = file.metadata()?.len();
        let info = match format {
            TensorFormat::Npy => npy::header(&mut file, size)?,
            TensorFormat::Safetensors => safetensors::header(&mut file, size, tensor)?,
        };
        Ok(TensorFile { path: path.to_owned(), info, file })
    }

    /// The elements in C order, each little-endian.
    pub(crate) fn read(&mut self) -> Result<Vec<u8>, FileProblem> {
        let TensorInfo { dtype, offset, bytes, swapped, .. } = self.info;
        self.file.seek(SeekFrom::Start(offset))?;
        let mut data = vec![0; bytes as usize];
        self.file.read_exact(&mut data)?;
        if swapped {
            data.chunks_exact_mut(dtype.bytes()).for_each(<[u8]>::reverse);
        }
        Ok(data)
    }
}

/// Why a tensor cannot be put into a file of a format.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum EncodeError {
    /// .npy with a type that NumPy does not have.
    #[error("{0} cannot be stored in .npy files, as NumPy has no such type")]
    Type(DType),
    /// The library refuses.
    #[error("it cannot be stored as .safetensors: {0}")]
    Safetensors(::safetensors::SafeTensorError),
}

/// The bytes of a file with one tensor, whose name only .safetensors files hold.
pub(crate) fn encode(
    format: TensorFormat,
    name: &str,
    dtype: DType,
    shape: &[u64],
    data: &[u8],
) -> Result<Vec<u8>, EncodeError> {
    match format {
        TensorFormat::Npy => npy::encode(dtype, shape, data),
        TensorFormat::Safetensors => safetensors::encode(name, dtype, shape, data),
    }
}
