//! The report of a hang: every live warp, and the reasons why it waits.

use crate::execute::block::ResidentBlock;
use crate::execute::progress::{Split, SplitState};
use crate::execute::warp::Warp;
use crate::fault::hang::{Polled, Waiting, WaitsFor};
use crate::fault::{Fault, Space};
use crate::isa::PtxOp;
use crate::machine::Machine;
use crate::memory::MachineMemory;
use crate::observe::WarpSite;

/// A warp and what is around it.
#[derive(Clone, Copy)]
struct HungWarp<'m> {
    memory: &'m MachineMemory,
    block: &'m ResidentBlock,
    warp: &'m Warp,
}

impl Machine {
    pub(crate) fn hang(&self) -> Fault {
        let memory = &self.memory;
        let mut waiting = Vec::new();
        for worker in &self.workers {
            for warp in &worker.warps {
                if let Some(Some(block)) = worker.blocks.get(warp.block) {
                    waiting.push(HungWarp { memory, block, warp }.waiting());
                }
            }
        }
        Fault::Hang { waiting }
    }
}

impl<'m> HungWarp<'m> {
    fn site(&self, function: u32, pc: u32) -> Option<WarpSite<'m>> {
        let HungWarp { memory, block, warp } = *self;
        let function = block.info.module.functions.get(function as usize)?;
        function.code.get(pc as usize)?;
        Some(WarpSite { memory, block: &block.info, warp: warp.index, function, pc, chain: 0 })
    }

    fn waiting(&self) -> Waiting {
        let HungWarp { memory, block, warp } = *self;
        let mut for_what = Vec::new();
        for split in &warp.progress.splits {
            for_what.extend(self.split_waits(split));
        }
        let polled: Vec<Polled> = warp
            .watcher
            .reads
            .iter()
            .filter_map(|read| {
                let place = self.site(read.function, read.pc)?.place(read.lane as usize);
                let len = read.bytes as usize;
                let (value, near) = match read.space {
                    Space::Shared => {
                        let at = read.address as usize;
                        (at + len <= block.shared.len()).then(|| (block.shared.to_vec(at, len), None))?
                    }
                    _ => (memory.read(read.address, len).ok()?, memory.near(read.address)),
                };
                Some(Polled {
                    address: read.address,
                    bytes: read.bytes,
                    space: read.space,
                    value,
                    near,
                    place,
                })
            })
            .collect();
        if warp.can_run() {
            for_what.push(WaitsFor::Memory(polled));
        }
        let (rank, kernel) = (block.info.rank, block.info.kernel.clone());
        Waiting { rank, kernel, block: block.info.shape.block, warp: warp.index, for_what }
    }

    fn split_waits(&self, split: &Split) -> Option<WaitsFor> {
        let function = self.warp.progress.frames.get(split.frame)?.function;
        let site = self.site(function, split.pc)?;
        let place = site.place(split.mask.trailing_zeros() as usize);
        match split.state {
            SplitState::Ready => None,
            SplitState::Members(_) | SplitState::Aligned => {
                Some(WaitsFor::Lanes { waiting: split.mask, place })
            }
            SplitState::Barrier(barrier) => {
                let state = self.block.barriers.get(barrier as usize)?;
                debug_assert!(matches!(site.function.code[split.pc as usize].op, PtxOp::Barrier(_)));
                let (arrived, expected, exited) = (state.arrived, state.expected, self.block.exited);
                Some(WaitsFor::Barrier { barrier, arrived, expected, exited, place })
            }
        }
    }
}
