//! Failed calls in the program's terms: statements instead of instructions, counters instead of addresses.

use super::signature::Signature;
use crate::driver::CudaError;
use quadrille_compiler::kernel::abi::StatusRecord;
use quadrille_compiler::program::ids::{BlockId, Buffer, Rank, ThreadBlock};
use quadrille_compiler::schedule::CounterKind;
use quadrille_vgpu::{AccessKind, Fault};
use std::time::Duration;

/// Why calls failed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Failure {
    /// The cause of a failure, with its place.
    pub cause: Cause,
    /// The call of each rank at that point, if they do not all call the same; else empty.
    pub calls: Vec<(Rank, Signature)>,
}

/// The cause of a failure, with its place.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Cause {
    /// A start signal showed that a peer calls something else. Nothing of that peer has been touched.
    Mismatch {
        /// The place that met the signal.
        at: At,
        /// The call of that rank.
        own: Box<Signature>,
        /// The rank whose start signal it is.
        peer: Rank,
        /// The call of the peer; `None` if none of its calls has the hash that it sent.
        theirs: Option<Box<Signature>>,
    },
    /// A wait took longer than it may; the kernels of that rank have left. What they had not stored is not stored.
    TimedOut {
        /// The place.
        at: At,
        /// The signal or message that did not come.
        waits_for: Awaited,
        /// The count or flag that would have ended the wait, modulo 2^32.
        wanted: u32,
        /// The one that was there.
        seen: u32,
        /// The longest time that a wait may take.
        patience: Duration,
        /// From the waiting rank on, whom each waits for that has given up itself.
        chain: Vec<Rank>,
        /// True if the last of the chain has not given up, so that all wait for it: its kernel never started, or is late.
        /// Else the chain comes back to a rank that waits.
        missing: bool,
    },
    /// The calls were aborted from outside while a thread block waited.
    Aborted {
        /// The place.
        at: At,
        /// The signal or message that it waited for.
        waits_for: Awaited,
    },
    /// The virtual GPUs stopped without a reason given.
    Stopped,
    /// A kernel gave up for a reason that this version does not know.
    Status {
        /// The status record.
        record: StatusRecord,
    },
    /// Nothing can go on: every thread block that has not ended waits.
    Hang {
        /// The waiting blocks, by rank and block.
        waiting: Vec<Wait>,
    },
    /// Two accesses to the same bytes, at least one of them a store, that nothing puts in order; or a store over a
    /// packet whose reader may not be done with it.
    Race {
        /// The earlier one in this run.
        first: Access,
        /// The later one.
        second: Access,
        /// The buffer, if it is one.
        target: Option<Target>,
        /// The report of the virtual GPUs.
        fault: Box<Fault>,
    },
    /// The driver reports that a kernel failed, or fails itself.
    Driver {
        /// The driver's error.
        error: CudaError,
    },
    /// A kernel did what it must not.
    Kernel {
        /// The place, if it was in a kernel.
        at: Option<At>,
        /// The buffer that was accessed, if one was.
        target: Option<Target>,
        /// The report of the virtual GPUs.
        fault: Box<Fault>,
    },
}

/// A place in a call.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct At {
    /// The rank whose kernel it is.
    pub rank: Rank,
    /// The thread block.
    pub block: ThreadBlock,
    /// The statement that it executes, in the program's terms; `None` outside the program's steps.
    pub statement: Option<String>,
    /// The line of the CUDA text, from 1; `None` if unknown.
    pub line: Option<u32>,
}

/// An access of a kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Access {
    /// The place.
    pub at: At,
    /// Load, store or atomic.
    pub kind: AccessKind,
}

/// A thread block that waits.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Wait {
    /// The place where it waits.
    pub at: At,
    /// For what.
    pub waits_for: Awaited,
}

/// An event that a thread block waits for.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[non_exhaustive]
pub enum Awaited {
    /// A signal of a peer.
    Signal {
        /// The kind of the counter.
        kind: CounterKind,
        /// The signaller: a rank and its block.
        from: BlockId,
    },
    /// A message or a credit of a peer.
    Fifo {
        /// The name of the awaited thing: `message`, `credit`, .., or `LL` or `LL128` for their lines.
        what: &'static str,
        /// The rank at the other end.
        peer: Rank,
        /// The FIFO's number among those of the protocol between the two.
        number: u32,
    },
    /// The other threads of its block.
    BlockSync,
    /// An address in no allocation.
    Address {
        /// The address.
        address: u64,
    },
    /// Memory that is no flag, by the virtual GPU's name for it.
    Memory {
        /// The rank whose memory it is.
        rank: Rank,
        /// The allocation's label.
        label: String,
        /// Byte in it.
        offset: i64,
    },
    /// The other threads of its warp.
    Lanes,
}

/// Bytes of a call's buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Target {
    /// The rank whose buffer it is.
    pub rank: Rank,
    /// The buffer.
    pub buffer: Buffer,
    /// The element, from the buffer's begin; negative before it.
    pub element: i64,
    /// Elements of the buffer.
    pub elements: u64,
}

impl std::error::Error for Failure {}
