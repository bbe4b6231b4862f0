//! Everything that the next steps of a warp depend on, besides memory: activations, splits and joins.

use crate::memory::MemoryBytes;
use crate::registers::{Bank, Regs};

/// The reason why a split does not run, or that it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SplitState {
    Ready,
    /// Waits at `pc` until these lanes are there.
    Members(u32),
    /// Waits at `pc` until all live lanes are there.
    Aligned,
    /// Has arrived at a barrier of the block.
    Barrier(u32),
}

/// Lanes at one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Split {
    pub(crate) frame: usize,
    pub(crate) pc: u32,
    pub(crate) mask: u32,
    pub(crate) join: usize,
    pub(crate) state: SplitState,
}

/// A place where lanes that have diverged meet again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Join {
    pub(super) frame: usize,
    pub(super) pc: u32,
    /// Lanes that are to meet here; none if the entry is free.
    pub(super) mask: u32,
    pub(super) arrived: u32,
    pub(super) parent: usize,
    /// Reached by returning from the activation inside, not by its program counter.
    pub(super) by_return: bool,
}

/// An activation of a function.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Activation {
    pub(crate) function: u32,
    pub(crate) regs: Regs,
    /// Parameters of the function and of its calls, `param_bytes` a lane, rounded up to whole words.
    pub(crate) params: MemoryBytes,
    pub(crate) param_bytes: usize,
    pub(crate) local_base: u64,
    /// Lanes that have not returned; none if the entry is free.
    pub(super) live: u32,
    /// Join of the caller, its frame and the number of the call.
    pub(super) call: Option<(usize, usize, u32)>,
    pub(super) depth: usize,
    /// See [`WarpSite::chain`](crate::observe::Site::chain).
    pub(crate) chain: u32,
}

/// Everything that the next steps of a warp depend on, besides memory.
#[derive(Clone, Debug)]
pub(crate) struct WarpProgress {
    pub(crate) frames: Vec<Activation>,
    pub(crate) splits: Vec<Split>,
    pub(super) joins: Vec<Join>,
    pub(super) current: usize,
    /// Backward branches since lanes last arrived somewhere while others waited.
    pub(super) impatience: u32,
}

/// A register of an activation: number of the activation, bank and register.
pub(crate) type Somewhere = (usize, (Bank, usize));

impl WarpProgress {
    /// Returns true if the state differs from `other`. The register that differed last time, `last`, is compared first: loops
    /// that count differ there again and again.
    pub(crate) fn differs(&self, other: &WarpProgress, last: &mut Option<Somewhere>) -> bool {
        if let Some((frame, register)) = *last
            && let (Some(mine), Some(others)) = (self.frames.get(frame), other.frames.get(frame))
            && mine.regs.differs_in(&others.regs, register)
        {
            return true;
        }
        if (self.current, self.impatience) != (other.current, other.impatience)
            || self.splits != other.splits
            || self.joins != other.joins
            || self.frames.len() != other.frames.len()
        {
            return true;
        }
        self.frames.iter().zip(&other.frames).enumerate().any(|(number, (mine, others))| {
            if mine.function == others.function
                && let Some(register) = mine.regs.difference(&others.regs)
            {
                *last = Some((number, register));
                return true;
            }
            mine != others
        })
    }
}
