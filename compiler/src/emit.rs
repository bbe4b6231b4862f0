//! Kernel -> CUDA C++ text.

use crate::dtype::{DType, RedOp};

/// The CUDA text of a kernel, and what a launch of it needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cuda {
    /// Name of the `__global__` (extern "C").
    pub entry: String,
    /// The whole translation unit; includes no header.
    pub text: String,
    /// World size it is compiled for.
    pub ranks: u32,
    /// Thread blocks of each rank's launch, indexed by rank.
    pub grid: Vec<u32>,
    /// Threads of a block.
    pub threads: u32,
    /// Block cap of the counter region ([`crate::abi::CounterLayout`]).
    pub block_cap: u32,
    /// Element type.
    pub dtype: DType,
    /// Reduction operator.
    pub op: RedOp,
    /// Which lines of `text` belong to which step: the first line of each, ascending.
    pub lines: Vec<Line>,
}

/// A step's place in the text. It ends where the next begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// First line of the step in [`Cuda::text`], from 1.
    pub line: u32,
    /// What stands there, in the program's terms: `statement 12:13 data[to][c] += data[from][c];`.
    pub what: String,
}

impl Cuda {
    /// What stands at `line` of the text; `None` outside the program's steps.
    pub fn what(&self, line: u32) -> Option<&str> {
        let after = self.lines.partition_point(|l| l.line <= line);
        self.lines[..after].last().map(|l| l.what.as_str()).filter(|what| !what.is_empty())
    }

    /// Hash of the text: what identifies the kernel in the call hash.
    pub fn hash(&self) -> u64 {
        crate::abi::text_hash(&self.text)
    }
}
