//! The one place where whoever checks or times a run sees what warps do.
//!
//! Every access of a kernel to global or shared memory, every fence, barrier and sync of a warp, and every block's
//! start and end passes an [`Observer`], if the machine has one. It may end the run with a fault, and replace what a
//! load has given.

use std::fmt;
use std::sync::Arc;

use crate::fault::{AccessKind, Fault, FaultPlace, Space};
use crate::front::module::PtxModule;
use crate::isa::{ClockUnit, MemoryAccess, MemoryOrder, Multimem, ProxyKind, PtxFunction, Scope};
use crate::memory::{AllocationId, MachineMemory, MemoryBytes};
use crate::registers::{LANES, Lanes, Reg, Regs};

/// The place of a block in its grid.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockShape {
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) threads: [u32; 3],
}

impl BlockShape {
    pub(crate) fn thread_count(&self) -> u32 {
        self.threads.iter().product()
    }

    pub(crate) fn warps(&self) -> u32 {
        self.thread_count().div_ceil(32)
    }

    /// Number of the block in its grid.
    pub(crate) fn linear(&self) -> u64 {
        let [x, y, z] = self.block.map(u64::from);
        let [nx, ny, _] = self.grid.map(u64::from);
        x + nx * (y + ny * z)
    }

    /// Coordinates of a thread.
    pub(crate) fn thread(&self, number: u32) -> [u32; 3] {
        let [x, y, _] = self.threads;
        [number % x, number / x % y, number / x / y]
    }
}

/// A thread block: what names it, and where its threads are.
#[derive(Clone, Debug)]
pub(crate) struct BlockInfo {
    pub(crate) rank: usize,
    /// Number of the block among all that its worker has started.
    pub(crate) number: u32,
    /// Number of the launch in the machine.
    pub(crate) launch: usize,
    pub(crate) module: Arc<PtxModule>,
    pub(crate) kernel: Arc<str>,
    pub(crate) shape: BlockShape,
}

/// The instruction of a warp at which something happens.
#[derive(Clone, Copy)]
pub(crate) struct WarpSite<'e> {
    pub(crate) memory: &'e MachineMemory,
    pub(crate) block: &'e BlockInfo,
    /// Number of the warp in its block.
    pub(crate) warp: u32,
    pub(crate) function: &'e PtxFunction,
    pub(crate) pc: u32,
    /// Number of the chain of calls that it is in (see [`Observer::call`]), 0 of the kernel's own.
    pub(crate) chain: u32,
}

impl WarpSite<'_> {
    pub(crate) fn place(&self, lane: usize) -> FaultPlace {
        let inst = &self.function.code[self.pc as usize];
        FaultPlace {
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
pub(crate) struct MemoryTouch<'e> {
    pub(crate) site: WarpSite<'e>,
    pub(crate) kind: AccessKind,
    pub(crate) access: &'e MemoryAccess,
    /// Global or shared.
    pub(crate) space: Space,
    /// In that space; of the lanes of `mask` inside the allocation and aligned.
    pub(crate) addresses: &'e Lanes<u64>,
    pub(crate) mask: u32,
    /// The allocation, for global memory.
    pub(crate) allocation: Option<AllocationId>,
    /// By which of the multicast ranges over the allocation, from 1.
    pub(crate) way: Option<u8>,
    /// Its bytes, or the block's, and the address of offset 0.
    pub(crate) bytes: &'e MemoryBytes,
    pub(crate) origin: u64,
}

/// Lanes of a warp have accessed one multicast range.
#[derive(Clone, Copy)]
pub(crate) struct MulticastAccess<'e> {
    pub(crate) site: WarpSite<'e>,
    pub(crate) instruction: &'e Multimem,
    pub(crate) mask: u32,
    /// Ranks, and where the lanes' addresses lie on each.
    pub(crate) members: &'e [(usize, Lanes<u64>)],
}

/// Things that warps do besides accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WarpEvent {
    /// Lanes of `mask` execute a fence.
    Fence { order: MemoryOrder, scope: Scope, mask: u32 },
    /// Lanes of `mask` execute a fence of a proxy.
    ProxyFence { kind: ProxyKind, mask: u32 },
    /// Lanes of `mask` arrive at a barrier of their block, and wait for it unless they only arrive.
    Arrive { barrier: u32, mask: u32, waits: bool },
    /// That arrival has completed the barrier: all who wait there go on.
    Complete { barrier: u32 },
    /// A lane arrives at the mbarrier at an offset in shared memory, in a phase; with `copies`, not before its copies so
    /// far (but the bulk ones) are complete.
    MbarrierArrive { lane: u32, address: u64, phase: u64, copies: bool },
    /// A lane has found that the phases of an mbarrier before `phase` are over.
    MbarrierOver { lane: u32, address: u64, phase: u64 },
    /// A lane begins an asynchronous copy between spaces and addresses: `read` bytes of the source, `bytes` of the
    /// destination. An mbarrier, in a phase, is told when it is complete.
    Copy {
        lane: u32,
        bulk: bool,
        to: (Space, u64),
        from: (Space, u64),
        read: u64,
        bytes: u64,
        mbarrier: Option<(u64, u64)>,
    },
    /// A lane makes a group of its copies of one kind that no mbarrier is told of and that belong to none yet.
    CopyCommit { lane: u32, bulk: bool },
    /// The first `groups` groups of a lane are complete, or have been read.
    CopyWait { lane: u32, bulk: bool, read: bool, groups: u64 },
    /// Lanes of `mask`, of those that are `live`, have met at a `bar.warp.sync`.
    WarpSync { mask: u32, live: u32 },
}

pub(crate) trait Observer: fmt::Debug + Send {
    /// Asks a clock whether the time of a warp's next instruction has come; `active` are the lanes that would execute it.
    fn issue(&mut self, _: &WarpSite<'_>, _frame: usize, _: &Regs, _active: u32) -> bool {
        true
    }
    /// The time of the instruction that is being executed, if there is a clock.
    fn time(&mut self, _: ClockUnit) -> Option<u64> {
        None
    }
    /// When a warp of a block can go on by the clock, in picoseconds.
    fn due(&mut self, _block: u32, _warp: u32) -> u64 {
        0
    }
    /// A warp that can go on `now` has its turn until another one can, in picoseconds.
    fn turn(&mut self, _now: u64, _until: u64) {}
    /// Lanes call a function; gives the chain of calls that they are in then a number.
    fn call(&mut self, _: &WarpSite<'_>) -> u32 {
        0
    }
    /// Lanes are about to access memory.
    fn touch(&mut self, touch: &MemoryTouch<'_>) -> Result<(), Fault>;
    /// The access has taken place; atomics come one lane at a time. What a load gave is in the registers, the first
    /// value of the vector in the first one; registers that an instruction does not have are `NO_REG`. Says whether the
    /// observer has replaced any.
    fn done(&mut self, touch: &MemoryTouch<'_>, regs: &mut Regs, to: &[Reg]) -> Result<bool, Fault>;
    /// Lanes have accessed a multicast range; every rank's part has been touched and done before.
    fn multicast(&mut self, _: &MulticastAccess<'_>) {}
    fn event(&mut self, site: WarpSite<'_>, event: WarpEvent) -> Result<(), Fault>;
    fn block_starts(&mut self, block: &BlockInfo);
    fn block_ends(&mut self, block: &BlockInfo);
    /// The last block of a launch has ended, of which this is one.
    fn launch_ends(&mut self, block: &BlockInfo);
}

#[cfg(test)]
mod tests;
