//! A resident thread block: its shape, shared memory and barriers.

use std::sync::Arc;

use crate::execute::copy_queue::BlockCopies;
use crate::execute::mbarrier_state::Mbarriers;
use crate::isa::{Barrier, BarrierMode};
use crate::memory::MemoryBytes;
use crate::observe::BlockInfo;
use crate::registers::{NO_REG, Reg, Regs};

/// Barriers of a block.
pub(crate) const BARRIERS: usize = 16;

/// Splits that wait at a barrier.
#[derive(Clone, Copy, Debug)]
struct BarrierWaiter {
    warp: u32,
    lanes: u32,
    mode: BarrierMode,
    d: Reg,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct BarrierState {
    /// Threads that the current phase waits for; 0 before the first arrival.
    pub(crate) expected: u32,
    pub(crate) arrived: u32,
    popc: u32,
    all: bool,
    waiters: Vec<BarrierWaiter>,
}

/// A completed barrier, for one warp.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wake {
    pub(crate) warp: u32,
    pub(crate) lanes: u32,
    pub(crate) barrier: u32,
    mode: BarrierMode,
    d: Reg,
    popc: u32,
    all: bool,
}

impl Wake {
    /// Writes the result of a reduction.
    pub(crate) fn deliver(&self, regs: &mut Regs, mask: u32) {
        match self.mode {
            BarrierMode::Popc => regs.put(self.d, mask, &[self.popc; 32]),
            BarrierMode::And => regs.put_pred(self.d, mask, if self.all { u32::MAX } else { 0 }),
            BarrierMode::Or => regs.put_pred(self.d, mask, if self.popc > 0 { u32::MAX } else { 0 }),
            BarrierMode::Sync | BarrierMode::Arrive => {}
        }
    }
}

/// Why an arrival is refused.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refused {
    pub(crate) arrived: u32,
    pub(crate) expected: u32,
    pub(crate) reason: &'static str,
}

#[derive(Clone, Debug)]
pub(crate) struct ResidentBlock {
    pub(crate) info: BlockInfo,
    /// Number of the module in its worker.
    pub(crate) module_number: usize,
    pub(crate) shared: MemoryBytes,
    pub(crate) static_shared: u32,
    /// Bytes that the activations of a warp may take.
    pub(crate) warp_bytes: u64,
    /// Kernel parameters.
    pub(crate) params: MemoryBytes,
    /// Addresses of the module's variables on this rank.
    pub(crate) variables: Arc<[u64]>,
    pub(crate) barriers: Vec<BarrierState>,
    pub(crate) wakes: Vec<Wake>,
    pub(crate) mbarriers: Mbarriers,
    pub(crate) copies: BlockCopies,
    pub(crate) live_warps: u32,
    /// Threads that have exited.
    pub(crate) exited: u32,
}

impl ResidentBlock {
    /// `threads` more have come to barrier `id`; `true` if that completes it.
    pub(crate) fn arrive(
        &mut self,
        id: u32,
        expected: u32,
        threads: u32,
        barrier: &Barrier,
        (warp, lanes, votes): (u32, u32, u32),
    ) -> Result<bool, Refused> {
        let state = &mut self.barriers[id as usize];
        if state.expected == 0 {
            (state.expected, state.popc, state.all) = (expected, 0, true);
        } else if state.expected != expected {
            let reason = "is used with two different counts";
            return Err(Refused { arrived: state.expected, expected, reason });
        }
        state.arrived += threads;
        if state.arrived > state.expected {
            let reason = "has more arrivals than it expects";
            return Err(Refused { arrived: state.arrived, expected, reason });
        }
        if barrier.a.reg != NO_REG {
            state.popc += votes.count_ones();
            state.all &= votes == lanes;
        }
        if barrier.mode != BarrierMode::Arrive {
            state.waiters.push(BarrierWaiter { warp, lanes, mode: barrier.mode, d: barrier.d });
        }
        if state.arrived < state.expected {
            return Ok(false);
        }
        let done = std::mem::take(state);
        self.wakes.extend(done.waiters.iter().map(|w| Wake {
            warp: w.warp,
            lanes: w.lanes,
            barrier: id,
            mode: w.mode,
            d: w.d,
            popc: done.popc,
            all: done.all,
        }));
        Ok(true)
    }
}
