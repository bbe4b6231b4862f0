//! The one place where whoever checks or times a run sees what warps do.
//!
//! Every access of a kernel to global or shared memory, every fence, barrier and sync of a warp, and every block's
//! start and end passes an [`Observer`], if the machine has one. It may end the run with a fault, and replace what a
//! load has given.

use std::fmt;

use crate::block::Block;
use crate::error::{AccessKind, Fault, Place, Space};
use crate::isa::{Access, Function};
use crate::memory::Memory;
use crate::regs::{LANES, Lanes, Reg, Regs};

/// The instruction of a warp at which something happens.
#[derive(Clone, Copy)]
#[cfg_attr(not(test), expect(dead_code, reason = "read by observers"))]
pub(crate) struct Site<'e> {
    pub(crate) memory: &'e Memory,
    pub(crate) block: &'e Block,
    /// Number of the warp in its block.
    pub(crate) warp: u32,
    pub(crate) function: &'e Function,
    pub(crate) pc: u32,
}

impl Site<'_> {
    pub(crate) fn place(&self, lane: usize) -> Place {
        let inst = &self.function.code[self.pc as usize];
        Place {
            rank: self.block.rank,
            kernel: self.block.kernel.clone(),
            block: self.block.shape.block,
            thread: self.block.shape.thread(self.warp * LANES as u32 + lane as u32),
            ptx_line: inst.line,
            source: self.function.lines.get(inst.loc as usize).cloned(),
        }
    }
}

/// Lanes of a warp access one allocation, or the shared memory of their block.
#[derive(Clone, Copy)]
#[cfg_attr(not(test), expect(dead_code, reason = "read by observers"))]
pub(crate) struct Touch<'e> {
    pub(crate) site: Site<'e>,
    pub(crate) kind: AccessKind,
    pub(crate) access: &'e Access,
    /// Global or shared.
    pub(crate) space: Space,
    /// In that space; of the lanes of `mask` inside the allocation and aligned.
    pub(crate) addresses: &'e Lanes<u64>,
    pub(crate) mask: u32,
}

/// What warps do besides accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The instruction, executed by lanes of `mask`, is a fence or has no effect at all.
    Fence { mask: u32 },
    /// Lanes of `mask` arrive at a barrier of their block.
    Arrive { barrier: u32, mask: u32 },
    /// That arrival has completed the barrier: all who wait there go on.
    Complete { barrier: u32 },
    /// Lanes of `mask` have met at an instruction that they execute together.
    WarpSync { mask: u32 },
    /// A lane changes the mbarrier at an offset in shared memory, which may end its phase. What it is stands in the
    /// instruction.
    MbarrierChange { lane: u32, address: u64, completes: bool },
    /// A lane asks whether a phase is over.
    MbarrierWait { lane: u32, address: u64, over: bool },
    /// A lane begins an asynchronous copy between spaces and addresses.
    Copy { lane: u32, to: (Space, u64), from: (Space, u64), bytes: u64 },
    /// A lane's earlier copies of one kind, as far as the instruction says, are complete, or have been read.
    CopyWait { lane: u32, bulk: bool, read: bool },
}

pub(crate) trait Observer: fmt::Debug + Send {
    /// Lanes are about to access memory.
    fn touch(&mut self, touch: &Touch<'_>) -> Result<(), Fault>;
    /// A load or an atomic has given the values that now are in the registers, the first one of the vector in the
    /// first register; registers that an instruction does not have are `NO_REG`.
    fn loaded(&mut self, touch: &Touch<'_>, regs: &mut Regs, to: &[Reg]) -> Result<(), Fault>;
    fn event(&mut self, site: Site<'_>, event: Event) -> Result<(), Fault>;
    fn block_starts(&mut self, block: &Block);
    fn block_ends(&mut self, block: &Block);
}

#[cfg(test)]
mod tests;
