//! The part of a call that must be equal on every rank, as messages name it.

use quadrille_compiler::program::dtype::{DType, RedOp};
use std::fmt;

/// The part of a call that must be equal on every rank.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Signature {
    /// The collective's name.
    pub program: String,
    /// Elements of one unit.
    pub count: u64,
    /// Element type.
    pub dtype: DType,
    /// Reduction operator.
    pub op: RedOp,
    /// Window offsets of `data`, or of `input` and `output`, in bytes.
    pub offsets: Vec<u64>,
    /// Hash of the kernel's text.
    pub kernel: u64,
}

/// `ring_all_reduce of 1000 bf16 (sum), window offset 0`
impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let offsets: Vec<_> = self.offsets.iter().map(u64::to_string).collect();
        let s = if offsets.len() == 1 { "" } else { "s" };
        let Signature { program, count, dtype, op, .. } = self;
        write!(f, "{program}, count {count}, {dtype} {op}, window offset{s} {}", offsets.join(" and "))
    }
}
