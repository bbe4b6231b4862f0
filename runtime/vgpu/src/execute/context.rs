//! The machine around a warp that executes, and the instruction that it is at.

use crate::execute::block::ResidentBlock;
use crate::execute::counts::{PublishedCounts, Tally};
use crate::fault::{Fault, FaultPlace};
use crate::front::module::PtxModule;
use crate::isa::{PredOperand, PtxFunction};
use crate::memory::MachineMemory;
use crate::observe::{Observer, WarpEvent, WarpSite};
use crate::registers::{NO_REG, Regs};

/// The instruction that a warp is at.
#[derive(Clone, Copy)]
pub(crate) struct WarpPosition<'f> {
    pub(crate) function: &'f PtxFunction,
    pub(crate) pc: u32,
    /// Number of the warp in its block.
    pub(crate) warp: u32,
}

/// Everything that a slice of a warp may touch besides the warp.
pub(crate) struct StepContext<'m> {
    pub(crate) module: &'m PtxModule,
    pub(crate) memory: &'m MachineMemory,
    pub(crate) tally: &'m mut Tally,
    pub(crate) counts: &'m PublishedCounts,
    /// Number of the worker.
    pub(crate) worker: usize,
    pub(crate) observer: Option<&'m mut dyn Observer>,
    pub(crate) block: &'m mut ResidentBlock,
    /// The hang detection looks at backward branches.
    pub(crate) suspect: bool,
    /// The observer has a clock, which is asked before every instruction.
    pub(crate) timed: bool,
    /// Number of the chain of calls of the activation that runs (see [`WarpSite::chain`]).
    pub(crate) chain: u32,
}

impl StepContext<'_> {
    pub(crate) fn site<'e>(&'e self, at: WarpPosition<'e>) -> WarpSite<'e> {
        let WarpPosition { function, pc, warp } = at;
        WarpSite { memory: self.memory, block: &self.block.info, warp, function, pc, chain: self.chain }
    }

    /// The site of an instruction, and the observer if there is one.
    pub(crate) fn observed<'e>(
        &'e mut self,
        at: WarpPosition<'e>,
    ) -> Option<(&'e mut dyn Observer, WarpSite<'e>)> {
        let WarpPosition { function, pc, warp } = at;
        let site =
            WarpSite { memory: self.memory, block: &self.block.info, warp, function, pc, chain: self.chain };
        match &mut self.observer {
            Some(observer) => Some((&mut **observer, site)),
            None => None,
        }
    }

    /// Tells the observer, if there is one, what lanes of a warp do.
    #[inline(always)]
    pub(crate) fn event(&mut self, at: WarpPosition<'_>, event: WarpEvent) -> Result<(), Fault> {
        match self.observed(at) {
            Some((observer, site)) => observer.event(site, event),
            None => Ok(()),
        }
    }

    pub(crate) fn place(&self, at: WarpPosition<'_>, lane: usize) -> FaultPlace {
        self.site(at).place(lane)
    }

    /// Changes of memory by all workers.
    pub(crate) fn epoch(&self) -> u64 {
        self.counts.epoch(self.worker, self.tally)
    }
}

/// The lanes of `mask` in which a guard holds.
#[inline(always)]
pub(crate) fn guard(regs: &Regs, p: PredOperand, mask: u32) -> u32 {
    if p.reg == NO_REG {
        return mask;
    }
    pred(regs, p) & mask
}

/// The lanes in which a predicate holds.
#[inline(always)]
pub(crate) fn pred(regs: &Regs, p: PredOperand) -> u32 {
    let bits = regs.pred[p.reg as usize];
    if p.negated { !bits } else { bits }
}
