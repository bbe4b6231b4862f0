//! Kernel -> CUDA C++ text. What does not depend on the program lies in `device/*.cuh`; this lays out the calls.

mod body;
mod code;
mod device;
mod doubt;
mod movement;
mod tables;
mod terms;

use self::code::CodeWriter;
use self::terms::CName;
use crate::kernel::Kernel;
use crate::program::dtype::{DType, RedOp};
use crate::program::ids::{BlockId, Rank, ThreadBlock};
use crate::verified::Verified;

/// The CUDA text of a kernel, and what a launch of it needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cuda {
    /// Name of the `__global__` (extern "C").
    pub entry: String,
    /// The whole translation unit; includes no header.
    pub text: String,
    /// Bytes of `text` before what is particular to this kernel.
    pub device_bytes: usize,
    /// World size it is compiled for.
    pub ranks: u32,
    /// Thread blocks of each rank, indexed by rank.
    pub grid: Vec<u32>,
    /// True if one launch has the blocks of all ranks; `rank` in its parameters is not read, and status records and abort words
    /// of further ranks lie behind those of rank 0, [`crate::kernel::abi::StatusRecord::BYTES`] apart.
    pub one_launch: bool,
    /// Threads of a block.
    pub threads: u32,
    /// Block cap of the counter region ([`crate::kernel::abi::CounterLayout`]).
    pub block_cap: u32,
    /// True if it moves messages through FIFOs ([`crate::kernel::abi::FifoLayout`]).
    pub staged: bool,
    /// True if it needs multicast addresses of the windows.
    pub multicast: bool,
    /// True if it touches peers' user buffers, which must then be symmetric windows.
    pub reaches_peers: bool,
    /// Tiles of a call that its counters can tell apart, and the bytes of one; `None` where chunks are moved as a whole.
    pub tiles: Option<(u64, u64)>,
    /// Element type.
    pub dtype: DType,
    /// Reduction operator.
    pub op: RedOp,
    /// The first line in `text` of each step, ascending.
    pub lines: Vec<EmittedLine>,
    /// The class of each block, by rank and block; blocks of a class share lines.
    pub classes: Vec<Vec<u32>>,
    /// For each class, what each step of its blocks is, in the program's terms.
    pub names: Vec<Vec<String>>,
}

/// A step's place in the text. It ends where the next begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmittedLine {
    /// First line of the step in [`Cuda::text`], from 1.
    pub line: u32,
    /// The step there in the program's terms; empty outside steps.
    pub what: String,
    /// The steps of its blocks; `None` outside steps.
    pub steps: Option<StepsAt>,
}

/// Steps of a class's blocks that one place in the text carries out: every `stride`-th from `first` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepsAt {
    /// The class.
    pub class: u32,
    /// The first one's index in the blocks' schedules.
    pub first: u32,
    /// How far the next one is.
    pub stride: u32,
    /// How many.
    pub times: u32,
}

impl StepsAt {
    /// The index of the one in iteration `I`, as a C expression.
    fn expression(&self) -> String {
        match self.times {
            1 => self.first.to_string(),
            _ => format!("{} + {} * I", self.first, self.stride),
        }
    }

    /// The indices.
    pub fn indices(self) -> impl Iterator<Item = u32> {
        (0..self.times).map(move |i| self.first + i * self.stride)
    }

    /// Describes them in the program's terms; `names` are those of all steps of the blocks.
    fn what(&self, names: &[String]) -> String {
        let mut each = self.indices().filter_map(|step| names.get(step as usize));
        let Some(first) = each.next() else { return String::new() };
        match each.last() {
            Some(last) if last != first => format!("one of {} steps, from {first} to {last}", self.times),
            _ => first.clone(),
        }
    }
}

impl Cuda {
    /// Returns the part of the text at `line`; `None` outside the program's steps.
    pub fn what(&self, line: u32) -> Option<&str> {
        let after = self.lines.partition_point(|l| l.line <= line);
        self.lines[..after].last().map(|l| l.what.as_str()).filter(|what| !what.is_empty())
    }

    /// A step of a block of the schedule, as a status record names it: what it is, and its first line.
    pub fn step(&self, at: BlockId, step: u32) -> Option<(&str, u32)> {
        let class = *self.classes.get(at.rank.0 as usize)?.get(at.block.0 as usize)?;
        let carries_out =
            |steps: &StepsAt| steps.class == class && steps.indices().any(|index| index == step);
        let line = self.lines.iter().find(|line| line.steps.as_ref().is_some_and(carries_out))?;
        Some((self.names.get(class as usize)?.get(step as usize)?, line.line))
    }

    /// Thread blocks of `rank`'s launch, or where one is for all ranks, of that one: as many of each rank as the largest has.
    pub fn launch_blocks(&self, rank: Rank) -> u32 {
        match self.one_launch {
            true => self.of_each() * self.ranks,
            false => self.grid.get(rank.0 as usize).copied().unwrap_or(0),
        }
    }

    /// Returns the owner of block number `block` in `rank`'s launch.
    pub fn place(&self, rank: Rank, block: u32) -> BlockId {
        match (self.one_launch, self.of_each()) {
            (true, each @ 1..) => BlockId { rank: Rank(block / each), block: ThreadBlock(block % each) },
            _ => BlockId { rank, block: ThreadBlock(block) },
        }
    }

    fn of_each(&self) -> u32 {
        self.grid.iter().copied().max().unwrap_or(0)
    }

    /// The part of the text that is particular to this kernel.
    pub fn body(&self) -> &str {
        &self.text[self.device_bytes..]
    }

    /// The oldest architecture whose PTX has what the text uses, as N in sm_N: scoped acquire and release need 70,
    /// rounding to bf16x2 or f16x2 needs 80, `multimem` 90 (PTX ISA, "Target ISA Notes" of `ld`, `st`, `cvt` and
    /// `multimem`).
    pub fn least_arch(&self) -> u32 {
        self.dtype.least_arch().max(if self.multicast { 90 } else { 0 })
    }

    /// Returns the hash of the text, which identifies the kernel in the call hash.
    pub fn hash(&self) -> u64 {
        crate::kernel::abi::text_hash(&self.text)
    }
}

/// Emits a kernel that has been proved to be its schedule.
pub fn cuda(kernel: &Verified<Kernel>) -> Cuda {
    let mut code = CodeWriter::default();
    writeln!(code, "// ---- widths\n{}", kernel.widths.text(kernel.unroll));
    for file in device::FILES.iter().filter(|file| (file.needed)(kernel)) {
        writeln!(code, "// ---- {}\n{}", file.name, file.text);
    }
    let device_bytes = code.text().len();
    let lines = body::body(kernel, &mut code);
    // Every rank launches as many, so that a block's instance follows from its number.
    let blocks =
        if kernel.instances > 1 { vec![kernel.blocks(); kernel.grid.len()] } else { kernel.grid.clone() };
    let mut classes: Vec<Vec<u32>> = blocks.iter().map(|&blocks| vec![0; blocks as usize]).collect();
    for (number, class) in (0..).zip(&kernel.classes) {
        for member in &class.members {
            classes[member.rank.0 as usize][member.block.0 as usize] = number;
        }
    }
    classes.iter_mut().for_each(|of_rank| *of_rank = of_rank.repeat(kernel.instances as usize));
    Cuda {
        entry: entry(kernel),
        text: code.into_text(),
        device_bytes,
        ranks: kernel.shape.ranks,
        grid: blocks.iter().map(|blocks| blocks * kernel.instances).collect(),
        one_launch: kernel.one_launch,
        threads: kernel.threads,
        block_cap: kernel.block_cap,
        staged: kernel.has_fifos(),
        multicast: kernel.has_multicast(),
        reaches_peers: kernel.reaches_peers(),
        tiles: kernel.tile.map(|bytes| (kernel.widths.most_signals() / kernel.most_signals().max(1), bytes)),
        dtype: kernel.dtype,
        op: kernel.op,
        lines,
        classes,
        names: kernel.classes.iter().map(|class| body::names(kernel, class)).collect(),
    }
}

/// The kernel's name in the image.
fn entry(kernel: &Kernel) -> String {
    format!("quadrille_{}", CName(&kernel.name))
}
