//! Faults: everything that can go wrong in a PTX text, in a request of the host, and while kernels run.

pub(crate) mod hang;
pub(crate) mod place;
pub(crate) mod ptx;
pub(crate) mod race;
pub(crate) mod request;

use hang::{Waiting, render};
pub(crate) use place::{AccessKind, BadAccess, FaultPlace, Near, SourceLine, Space};
pub(crate) use ptx::{PtxError, PtxProblem, PtxProblemKind};
use race::{Race, SlotReuse};
pub(crate) use request::RequestError;

/// A failure of a run, or of a request of the host.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// An address that belongs to no allocation.
    #[error("out of bounds: {0}")]
    OutOfBounds(Box<BadAccess>),
    /// An address of an allocation that the host has freed.
    #[error("use after free: {0}")]
    UseAfterFree(Box<BadAccess>),
    /// An address that is no multiple of the access's size.
    #[error("misaligned: {0}")]
    Misaligned(Box<BadAccess>),
    /// A read of bytes that nobody has written.
    #[error("uninitialized: {0}")]
    Uninitialized(Box<BadAccess>),
    /// A write to memory that kernels may only read.
    #[error("read-only: {0}")]
    ReadOnly(Box<BadAccess>),
    /// An address of a multicast range in an instruction other than `multimem`.
    #[error("multicast address: only `multimem` instructions may access it: {0}")]
    Multicast(Box<BadAccess>),
    /// A `multimem` instruction on an address outside all multicast ranges.
    #[error("no multicast address: {0}")]
    NotMulticast(Box<BadAccess>),
    /// An mbarrier used against its rules.
    #[error("mbarrier at shared address {address:#x}: {reason} ({value}); {place}")]
    Mbarrier {
        /// Instruction and thread.
        place: Box<FaultPlace>,
        /// Offset in the block's shared memory.
        address: u64,
        /// The rule that is broken.
        reason: &'static str,
        /// The count or phase that is wrong, or 0.
        value: i64,
    },
    /// An asynchronous copy used against its rules.
    #[error("asynchronous copy: {reason}; begun at {place}")]
    Copy {
        /// The instruction that began the copy, and its thread.
        place: Box<FaultPlace>,
        /// The rule that is broken.
        reason: &'static str,
    },
    /// Two accesses that nothing puts in order.
    #[error("data race on {0}")]
    Race(Box<Race>),
    /// A packet that was overwritten before its reader was done with it.
    #[error("slot reuse of {0}")]
    SlotReuse(Box<SlotReuse>),
    /// `trap`.
    #[error("trap: {0}")]
    Trap(Box<FaultPlace>),
    /// Threads of one warp wait for each other at different places.
    #[error(
        "threads {waiting:#010x} of a warp wait at `{instruction}` for threads {missing:#010x}, which {reason}; {place}"
    )]
    Divergent {
        /// The waiting thread of the lowest lane, and its instruction.
        place: Box<FaultPlace>,
        /// The instruction that waits.
        instruction: &'static str,
        /// Lanes that wait.
        waiting: u32,
        /// Lanes that do not come.
        missing: u32,
        /// Why they do not come.
        reason: &'static str,
    },
    /// A barrier used with two different thread counts, or more arrivals than it expects.
    #[error("barrier {barrier} {reason}: arrived {arrived}, expected {expected}; {place}")]
    Barrier {
        /// Instruction and thread.
        place: Box<FaultPlace>,
        /// Number of the barrier.
        barrier: u32,
        /// Threads that have arrived.
        arrived: u32,
        /// Threads that it waits for.
        expected: u32,
        /// The rule that is broken.
        reason: &'static str,
    },
    /// An operand whose value the instruction does not admit.
    #[error("{what} is {value}; {place}")]
    Value {
        /// Instruction and thread.
        place: Box<FaultPlace>,
        /// The operand, and the values that it may have.
        what: &'static str,
        /// Its value.
        value: u64,
    },
    /// Nothing can go on any more.
    #[error("hang: every live warp waits\n{}", render(waiting))]
    Hang {
        /// Every live warp.
        waiting: Vec<Waiting>,
    },
    /// More instructions than the host allows.
    #[error("stopped after {limit} instructions (the limit)")]
    InstructionLimit {
        /// The limit, in instructions of warps.
        limit: u64,
    },
    /// Calls nested too deep.
    #[error("calls nested deeper than {limit}, or with too many registers and local bytes; {place}")]
    CallDepth {
        /// Instruction and thread.
        place: Box<FaultPlace>,
        /// The limit.
        limit: usize,
    },
    /// A launch or another request of the host that cannot be served.
    #[error(transparent)]
    Request(#[from] RequestError),
}

impl Fault {
    /// The place of a fault of one thread.
    pub(crate) fn place_mut(&mut self) -> Option<&mut FaultPlace> {
        match self {
            Fault::OutOfBounds(access)
            | Fault::UseAfterFree(access)
            | Fault::Misaligned(access)
            | Fault::Uninitialized(access)
            | Fault::ReadOnly(access)
            | Fault::Multicast(access)
            | Fault::NotMulticast(access) => access.place.as_mut(),
            Fault::Mbarrier { place, .. }
            | Fault::Copy { place, .. }
            | Fault::Trap(place)
            | Fault::Divergent { place, .. }
            | Fault::Barrier { place, .. }
            | Fault::Value { place, .. }
            | Fault::CallDepth { place, .. } => Some(place),
            Fault::Race(race) => Some(&mut race.second.place),
            Fault::SlotReuse(reuse) => Some(&mut reuse.second.place),
            Fault::Hang { .. } | Fault::InstructionLimit { .. } | Fault::Request(_) => None,
        }
    }
}
