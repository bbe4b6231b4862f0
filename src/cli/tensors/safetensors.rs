//! Hugging Face's .safetensors: the length of a JSON header, the header, the data. The crate of its authors reads and
//! writes the header; of the data only the wanted tensor is read, as checkpoints have many.

use super::{EncodeError, FileProblem, TensorInfo};
use quadrille_compiler::program::dtype::DType;
use safetensors::tensor::{Dtype, Metadata, TensorView};
use std::fs::File;
use std::io::Read;

/// Their names of element types.
const TYPES: [(DType, Dtype); 10] = [
    (DType::F32, Dtype::F32),
    (DType::Bf16, Dtype::BF16),
    (DType::F16, Dtype::F16),
    (DType::F64, Dtype::F64),
    (DType::I8, Dtype::I8),
    (DType::U8, Dtype::U8),
    (DType::I32, Dtype::I32),
    (DType::U32, Dtype::U32),
    (DType::I64, Dtype::I64),
    (DType::U64, Dtype::U64),
];

/// Bytes of the header's length.
const FIXED: u64 = 8;

/// The longest header that the format admits.
const LONGEST: u64 = 100_000_000;

/// Names that an error lists.
const LISTED: usize = 16;

/// Why a file is no usable .safetensors file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum SafetensorsProblem {
    /// It ends within its header.
    #[error("it is truncated or not a .safetensors file: it ends within its header")]
    Truncated,
    /// No header has this length.
    #[error("its header claims {0} bytes, more than {LONGEST}: it is not a .safetensors file")]
    Long(u64),
    /// The header is not what the format says.
    #[error("its header is damaged: {0}")]
    Header(serde_json::Error),
    /// The data have another length than the header says.
    #[error("{}: its header claims {claimed} bytes of data, and {present} follow", if present < claimed { "it is truncated" } else { "something follows its data" })]
    Length {
        /// By the header.
        claimed: u64,
        /// In the file.
        present: u64,
    },
    /// Several tensors, and none was named.
    #[error("it has several tensors; say which with --tensor: {}", list(names))]
    Several {
        /// All of them.
        names: Vec<String>,
    },
    /// No tensor at all.
    #[error("it has no tensor")]
    Empty,
    /// No tensor of that name.
    #[error("it has no tensor `{name}`; it has {}", list(names))]
    Missing {
        /// The tensor asked for.
        name: String,
        /// The tensors of the file.
        names: Vec<String>,
    },
    /// A type that no collective takes.
    #[error("the elements of tensor `{name}` are {dtype}; collectives take {}", known())]
    Type {
        /// The tensor.
        name: String,
        /// Its type.
        dtype: Dtype,
    },
}

fn list(names: &[String]) -> String {
    let shown: Vec<_> = names.iter().take(LISTED).map(|name| format!("`{name}`")).collect();
    let more = names.len() - shown.len();
    let end = if more > 0 { format!(" and {more} more") } else { String::new() };
    shown.join(", ") + &end
}

fn known() -> String {
    TYPES.map(|(_, name)| name.to_string()).join(", ")
}

/// Returns true if the format has the type.
pub(super) fn takes(dtype: DType) -> bool {
    TYPES.iter().any(|(known, _)| *known == dtype)
}

/// Reads the header of a file of `size` bytes, and finds the tensor: the one named, or the only one.
pub(super) fn header(file: &mut File, size: u64, tensor: Option<&str>) -> Result<TensorInfo, FileProblem> {
    let mut length = [0; FIXED as usize];
    if size < FIXED {
        return Err(SafetensorsProblem::Truncated.into());
    }
    file.read_exact(&mut length)?;
    let length = u64::from_le_bytes(length);
    if length > LONGEST {
        return Err(SafetensorsProblem::Long(length).into());
    }
    let start = FIXED + length;
    if size < start {
        return Err(SafetensorsProblem::Truncated.into());
    }
    let mut header = vec![0; length as usize];
    file.read_exact(&mut header)?;
    // Reading it also proves that tensors follow each other without gaps and are as long as their shapes say.
    let metadata: Metadata = serde_json::from_slice(&header).map_err(SafetensorsProblem::Header)?;
    let (claimed, present) = (metadata.data_len() as u64, size - start);
    if claimed != present {
        return Err(SafetensorsProblem::Length { claimed, present }.into());
    }
    let mut names = metadata.offset_keys();
    names.sort();
    let name = match (tensor, &names[..]) {
        (Some(name), _) => name.to_owned(),
        (None, [name]) => name.clone(),
        (None, []) => return Err(SafetensorsProblem::Empty.into()),
        (None, _) => return Err(SafetensorsProblem::Several { names }.into()),
    };
    let Some(info) = metadata.info(&name) else {
        let problem = if names.is_empty() {
            SafetensorsProblem::Empty
        } else {
            SafetensorsProblem::Missing { name, names }
        };
        return Err(problem.into());
    };
    let Some(&(dtype, _)) = TYPES.iter().find(|(_, known)| *known == info.dtype) else {
        return Err(SafetensorsProblem::Type { name, dtype: info.dtype }.into());
    };
    let (first, end) = info.data_offsets;
    Ok(TensorInfo {
        dtype,
        shape: info.shape.iter().map(|&n| n as u64).collect(),
        offset: start + first as u64,
        bytes: (end - first) as u64,
        swapped: false,
        name: Some(name),
    })
}

/// The bytes of a file with one tensor.
pub(super) fn encode(name: &str, dtype: DType, shape: &[u64], data: &[u8]) -> Result<Vec<u8>, EncodeError> {
    let (_, known) = TYPES.iter().find(|(known, _)| *known == dtype).ok_or(EncodeError::Type(dtype))?;
    let shape = shape.iter().map(|&n| n as usize).collect();
    let view = TensorView::new(*known, shape, data).map_err(EncodeError::Safetensors)?;
    safetensors::serialize([(name, view)], None).map_err(EncodeError::Safetensors)
}
