//! A resident thread block: its shape, shared memory and barriers.

use std::sync::Arc;

use crate::front::isa::{Barrier, BarrierMode};
use crate::front::module::Module;
use crate::memory::Bytes;
use crate::registers::{NO_REG, Reg, Regs};

/// Barriers of a block.
pub(crate) const BARRIERS: usize = 16;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) threads: [u32; 3],
}

impl Shape {
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

/// Splits that wait at a barrier.
#[derive(Clone, Copy, Debug)]
struct Waiter {
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
    waiters: Vec<Waiter>,
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
pub(crate) struct Block {
    pub(crate) rank: usize,
    /// Number of the block among all that its worker has started.
    pub(crate) number: u32,
    /// Number of the launch in the machine.
    pub(crate) launch: usize,
    pub(crate) module: Arc<Module>,
    /// Number of the module in its worker.
    pub(crate) module_number: usize,
    pub(crate) kernel: Arc<str>,
    pub(crate) shape: Shape,
    pub(crate) shared: Bytes,
    pub(crate) static_shared: u32,
    /// Bytes that the activations of a warp may take.
    pub(crate) warp_bytes: u64,
    /// Kernel parameters.
    pub(crate) params: Bytes,
    /// Addresses of the module's variables on this rank.
    pub(crate) variables: Arc<[u64]>,
    pub(crate) barriers: Vec<BarrierState>,
    pub(crate) wakes: Vec<Wake>,
    pub(crate) mbarriers: crate::execute::mbarrier::Mbarriers,
    pub(crate) copies: crate::execute::copies::Copies,
    pub(crate) live_warps: u32,
    /// Threads that have exited.
    pub(crate) exited: u32,
}

impl Block {
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
            state.waiters.push(Waiter { warp, lanes, mode: barrier.mode, d: barrier.d });
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
