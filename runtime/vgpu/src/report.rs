//! What every live warp waits for, for the report of a hang.

use crate::error::{Fault, Place, Space};
use crate::hang::{Polled, Waiting, WaitsFor};
use crate::isa::Op;
use crate::machine::Machine;
use crate::regs::LANES;
use crate::warp::{Split, State, Warp};

impl Warp {
    /// Whether some lanes do not wait for others.
    pub(crate) fn can_run(&self) -> bool {
        self.progress.splits.iter().any(|s| s.state == State::Ready)
    }
}

impl Machine {
    pub(crate) fn hang(&self) -> Fault {
        Fault::Hang { waiting: self.warps.iter().filter_map(|w| self.waiting(w)).collect() }
    }

    fn place(&self, warp: &Warp, function: u32, pc: u32, lane: u32) -> Option<Place> {
        let block = self.blocks.get(warp.block)?.as_ref()?;
        let function = block.module.functions.get(function as usize)?;
        let inst = function.code.get(pc as usize)?;
        Some(Place {
            rank: block.rank,
            kernel: block.kernel.clone(),
            block: block.shape.block,
            thread: block.shape.thread(warp.index * LANES as u32 + lane),
            ptx_line: inst.line,
            source: function.lines.get(inst.loc as usize).cloned(),
        })
    }

    fn waiting(&self, warp: &Warp) -> Option<Waiting> {
        let block = self.blocks.get(warp.block)?.as_ref()?;
        let mut for_what = Vec::new();
        for split in &warp.progress.splits {
            for_what.extend(self.split_waits(warp, split));
        }
        let polled: Vec<Polled> = warp
            .watcher
            .reads
            .iter()
            .filter_map(|read| {
                let place = self.place(warp, read.function, read.pc, read.lane)?;
                let len = read.bytes as usize;
                let (value, near) = match read.space {
                    Space::Shared => {
                        let at = read.address as usize;
                        (block.shared.data.get(at..at + len)?.to_vec(), None)
                    }
                    _ => (self.memory.read(read.address, len).ok()?, self.memory.near(read.address)),
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
        let (rank, kernel) = (block.rank, block.kernel.clone());
        Some(Waiting { rank, kernel, block: block.shape.block, warp: warp.index, for_what })
    }

    fn split_waits(&self, warp: &Warp, split: &Split) -> Option<WaitsFor> {
        let block = self.blocks.get(warp.block)?.as_ref()?;
        let function = warp.progress.frames.get(split.frame)?.function;
        let place = self.place(warp, function, split.pc, split.mask.trailing_zeros())?;
        match split.state {
            State::Ready => None,
            State::Members(_) | State::Aligned => Some(WaitsFor::Lanes { waiting: split.mask, place }),
            State::Barrier(barrier) => {
                let state = block.barriers.get(barrier as usize)?;
                let code = &block.module.functions.get(function as usize)?.code;
                debug_assert!(matches!(code[split.pc as usize].op, Op::Barrier(_)));
                let (arrived, expected) = (state.arrived, state.expected);
                Some(WaitsFor::Barrier { barrier, arrived, expected, exited: block.exited, place })
            }
        }
    }
}
