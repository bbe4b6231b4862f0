//! Element types and reduction operators of a call.

use std::fmt;
use std::str::FromStr;

/// The type of one element.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum DType {
    /// IEEE binary32.
    F32,
    /// bfloat16; computed in f32, rounded once when stored.
    Bf16,
}

impl DType {
    /// Every type, in the order help texts list them.
    pub const ALL: [DType; 2] = [DType::F32, DType::Bf16];

    /// Size of one element in bytes.
    pub fn bytes(self) -> usize {
        match self {
            DType::F32 => 4,
            DType::Bf16 => 2,
        }
    }

    /// The name users write, as in `--dtype`.
    pub fn name(self) -> &'static str {
        match self {
            DType::F32 => "f32",
            DType::Bf16 => "bf16",
        }
    }
}

/// The reduction operator of a call.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum RedOp {
    /// Addition.
    Sum,
}

impl RedOp {
    /// Every operator, in the order help texts list them.
    pub const ALL: [RedOp; 1] = [RedOp::Sum];

    /// The name users write, as in `--op`.
    pub fn name(self) -> &'static str {
        match self {
            RedOp::Sum => "sum",
        }
    }
}

/// A name that is none of the known ones.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is no {what}; use one of {known}")]
pub struct UnknownName {
    /// What was given.
    pub given: String,
    /// What it should have been the name of.
    pub what: &'static str,
    /// The known names, separated by commas.
    pub known: String,
}

fn by_name<T: Copy>(
    given: &str,
    what: &'static str,
    all: &[T],
    name: fn(T) -> &'static str,
) -> Result<T, UnknownName> {
    all.iter().copied().find(|&t| name(t) == given).ok_or_else(|| UnknownName {
        given: given.to_owned(),
        what,
        known: all.iter().map(|&t| name(t)).collect::<Vec<_>>().join(", "),
    })
}

impl FromStr for DType {
    type Err = UnknownName;
    fn from_str(s: &str) -> Result<Self, UnknownName> {
        by_name(s, "element type", &DType::ALL, DType::name)
    }
}

impl FromStr for RedOp {
    type Err = UnknownName;
    fn from_str(s: &str) -> Result<Self, UnknownName> {
        by_name(s, "reduction operator", &RedOp::ALL, RedOp::name)
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Display for RedOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
