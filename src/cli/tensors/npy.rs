//! NumPy's .npy: a magic number, a version, the length of a header, the header (a Python dict of three entries as NumPy
//! writes it), the data. As numpy.lib.format documents it.
//!
//! The header is read here rather than by a crate: those that exist take any Python literal, with some thirty crates to
//! do so, and three entries of a fixed form is all that a file can have.

use super::{EncodeError, FileProblem, TensorInfo, bytes};
use quadrille_compiler::program::dtype::DType;
use std::fs::File;
use std::io::{ErrorKind, Read};

/// NumPy's names of element types, without the byte order.
const TYPES: [(DType, &str); 9] = [
    (DType::F32, "f4"),
    (DType::F16, "f2"),
    (DType::F64, "f8"),
    (DType::I8, "i1"),
    (DType::U8, "u1"),
    (DType::I32, "i4"),
    (DType::U32, "u4"),
    (DType::I64, "i8"),
    (DType::U64, "u8"),
];

const MAGIC: &[u8] = b"\x93NUMPY";

/// The longest header that is read. NumPy itself reads 10,000 bytes.
const LONGEST: u32 = 1 << 16;

/// The most dimensions that NumPy has.
const DIMENSIONS: usize = 64;

/// The alignment of the data, in bytes.
const ALIGNMENT: usize = 64;

/// Why a file is no usable .npy file.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum NpyProblem {
    /// Another kind of file.
    #[error("it is not a .npy file: it does not begin as one")]
    Magic,
    /// Of a future NumPy.
    #[error("it is of version {0}.{1} of the format; versions 1.0, 2.0 and 3.0 are known")]
    Version(u8, u8),
    /// It ends within its header.
    #[error("it is truncated: it ends within its header")]
    Truncated,
    /// No header has this length.
    #[error("its header claims {0} bytes, more than {LONGEST}")]
    Long(u32),
    /// The header is not what NumPy writes.
    #[error("its header is damaged: at byte {at} of it, {expected} must stand")]
    Header {
        /// Bytes before the place.
        at: usize,
        /// The expected form.
        expected: &'static str,
    },
    /// Records with fields.
    #[error("its elements are records; save one field of it, as in np.save(file, array['field'])")]
    Records,
    /// A type that no collective takes.
    #[error(
        "its elements are of NumPy's type '{descr}'; collectives take {} from .npy files, and bf16 from \
         .safetensors files",
        known()
    )]
    Type {
        /// NumPy's name for it.
        descr: String,
    },
    /// Columns first.
    #[error("it is in Fortran order; save it in C order, as in np.save(file, np.ascontiguousarray(array))")]
    Fortran,
    /// More elements than fit into any file.
    #[error("its header claims a shape of more than 2^64 bytes")]
    Overflow,
    /// The data have another length than the header says.
    #[error("{}: its header claims {claimed} bytes of data, and {present} follow", if present < claimed { "it is truncated" } else { "something follows its data" })]
    Length {
        /// By the header.
        claimed: u64,
        /// In the file.
        present: u64,
    },
}

fn known() -> String {
    TYPES.map(|(_, name)| format!("'{name}'")).join(", ")
}

/// Returns true if NumPy has the type.
pub(super) fn takes(dtype: DType) -> bool {
    TYPES.iter().any(|(known, _)| *known == dtype)
}

/// Reads the header of a file of `size` bytes.
pub(super) fn header(file: &mut File, size: u64) -> Result<TensorInfo, FileProblem> {
    let mut start = [0; 8];
    read(file, &mut start)?;
    if !start.starts_with(MAGIC) {
        return Err(NpyProblem::Magic.into());
    }
    let mut length = [0; 4];
    let field = match (start[6], start[7]) {
        (1, 0) => 2,
        (2 | 3, 0) => 4,
        (major, minor) => return Err(NpyProblem::Version(major, minor).into()),
    };
    read(file, &mut length[..field])?;
    let length = u32::from_le_bytes(length);
    if length > LONGEST {
        return Err(NpyProblem::Long(length).into());
    }
    let mut header = vec![0; length as usize];
    read(file, &mut header)?;
    let NpyHeader { descr, fortran, shape } = parse(&header)?;
    let (order, name) = descr.split_at_checked(1).unwrap_or_default();
    let dtype = TYPES.iter().find(|(_, known)| *known == name).map(|(dtype, _)| *dtype);
    let (dtype, swapped) = match (dtype, order) {
        (Some(dtype), "<") => (dtype, false),
        (Some(dtype), ">") => (dtype, true),
        // Of one byte, in which there is no order.
        (Some(dtype), "|") if dtype.bytes() == 1 => (dtype, false),
        _ => return Err(NpyProblem::Type { descr }.into()),
    };
    // With one dimension there is no order.
    if fortran && shape.iter().filter(|&&n| n != 1).count() > 1 && !shape.contains(&0) {
        return Err(NpyProblem::Fortran.into());
    }
    let offset = (MAGIC.len() + 2 + field) as u64 + u64::from(length);
    let claimed = bytes(&shape, dtype).ok_or(NpyProblem::Overflow)?;
    let present = size.saturating_sub(offset);
    if claimed != present {
        return Err(NpyProblem::Length { claimed, present }.into());
    }
    Ok(TensorInfo { dtype, shape, offset, bytes: claimed, swapped, name: None })
}

fn read(file: &mut File, bytes: &mut [u8]) -> Result<(), FileProblem> {
    file.read_exact(bytes).map_err(|error| match error.kind() {
        ErrorKind::UnexpectedEof => NpyProblem::Truncated.into(),
        _ => FileProblem::Read(error),
    })
}

#[derive(Debug, PartialEq, Eq)]
struct NpyHeader {
    descr: String,
    fortran: bool,
    shape: Vec<u64>,
}

/// `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }`, in any order of the entries.
fn parse(header: &[u8]) -> Result<NpyHeader, NpyProblem> {
    let mut text = HeaderText { bytes: header, at: 0 };
    let (mut descr, mut fortran, mut shape) = (None, None, None);
    text.must(b'{', "{")?;
    while !text.found(b'}') {
        let at = text.at;
        match &*text.string()? {
            "descr" if descr.is_none() => {
                text.must(b':', ":")?;
                if text.peek() == Some(b'[') {
                    return Err(NpyProblem::Records);
                }
                descr = Some(text.string()?);
            }
            "fortran_order" if fortran.is_none() => {
                text.must(b':', ":")?;
                fortran = Some(text.boolean()?);
            }
            "shape" if shape.is_none() => {
                text.must(b':', ":")?;
                shape = Some(text.tuple()?);
            }
            _ => {
                let expected = "one of the entries descr, fortran_order and shape, each once,";
                return Err(NpyProblem::Header { at, expected });
            }
        }
        if !text.found(b',') {
            text.must(b'}', ", or }")?;
            break;
        }
    }
    let all =
        NpyProblem::Header { at: text.at, expected: "all of the entries descr, fortran_order and shape" };
    if text.peek().is_some() {
        return Err(text.wrong("nothing more"));
    }
    match (descr, fortran, shape) {
        (Some(descr), Some(fortran), Some(shape)) => Ok(NpyHeader { descr, fortran, shape }),
        _ => Err(all),
    }
}

/// Reads one token after the other; blanks before a token do not count.
struct HeaderText<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl HeaderText<'_> {
    fn wrong(&self, expected: &'static str) -> NpyProblem {
        NpyProblem::Header { at: self.at, expected }
    }

    fn peek(&mut self) -> Option<u8> {
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        self.bytes.get(self.at).copied()
    }

    fn found(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn must(&mut self, byte: u8, expected: &'static str) -> Result<(), NpyProblem> {
        if self.found(byte) { Ok(()) } else { Err(self.wrong(expected)) }
    }

    fn string(&mut self) -> Result<String, NpyProblem> {
        let quote = self.peek().filter(|quote| b"'\"".contains(quote)).ok_or(self.wrong("a string"))?;
        let rest = &self.bytes[self.at + 1..];
        let end =
            rest.iter().position(|&byte| byte == quote || !(b' '..=b'~').contains(&byte) || byte == b'\\');
        match end.filter(|&end| rest[end] == quote) {
            Some(end) => {
                self.at += end + 2;
                Ok(String::from_utf8_lossy(&rest[..end]).into_owned())
            }
            None => Err(self.wrong("a string that ends")),
        }
    }

    fn boolean(&mut self) -> Result<bool, NpyProblem> {
        self.peek();
        for (name, value) in [("True", true), ("False", false)] {
            if self.bytes[self.at..].starts_with(name.as_bytes()) {
                self.at += name.len();
                return Ok(value);
            }
        }
        Err(self.wrong("True or False"))
    }

    fn tuple(&mut self) -> Result<Vec<u64>, NpyProblem> {
        let mut list = Vec::new();
        self.must(b'(', "(")?;
        while !self.found(b')') {
            if list.len() == DIMENSIONS {
                return Err(self.wrong("the end of at most 64 dimensions"));
            }
            self.peek();
            let rest = &self.bytes[self.at..];
            let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            if digits == 0 {
                return Err(self.wrong("a number or )"));
            }
            let number = str::from_utf8(&rest[..digits]).ok().and_then(|digits| digits.parse().ok());
            list.push(number.ok_or(NpyProblem::Overflow)?);
            self.at += digits;
            // As Python 2 wrote long integers.
            self.at += usize::from(self.bytes.get(self.at) == Some(&b'L'));
            if !self.found(b',') {
                self.must(b')', ", or )")?;
                break;
            }
        }
        Ok(list)
    }
}

/// The bytes of a file. What has more dimensions than NumPy is stored with one.
pub(super) fn encode(dtype: DType, shape: &[u64], data: &[u8]) -> Result<Vec<u8>, EncodeError> {
    let (_, name) = TYPES.iter().find(|(known, _)| *known == dtype).ok_or(EncodeError::Type(dtype))?;
    let order = if dtype.bytes() == 1 { '|' } else { '<' };
    let flat = [(data.len() / dtype.bytes()) as u64];
    let shape = match if shape.len() > DIMENSIONS { &flat } else { shape } {
        [n] => format!("({n},)"),
        shape => format!("({})", shape.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")),
    };
    let mut header = format!("{{'descr': '{order}{name}', 'fortran_order': False, 'shape': {shape}, }}");
    // Version 1.0 has a length of two bytes; 64 dimensions take less.
    let before = MAGIC.len() + 2 + 2;
    let padded = (before + header.len() + 1).next_multiple_of(ALIGNMENT) - before;
    header.extend(std::iter::repeat_n(' ', padded - header.len() - 1));
    header.push('\n');
    let mut file = MAGIC.to_vec();
    file.extend([1, 0]);
    file.extend((header.len() as u16).to_le_bytes());
    file.extend(header.as_bytes());
    file.extend(data);
    Ok(file)
}
