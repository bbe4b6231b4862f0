//! Schedule options: how a program is to be carried out, never what it computes.

mod ranges;
pub mod size;

use crate::diagnostic::{Diagnostic, Loc};
use crate::names::table;

table! {
    /// How data and flags travel; the names are NCCL's.
    pub enum Protocol {
        /// Vectors of data, then one release of a counter.
        Simple = "Simple",
        /// Words of 8 bytes, half data and half flag.
        Ll = "LL",
        /// Lines of 128 bytes: 120 bytes of data and 8 of flag.
        Ll128 = "LL128",
    }
}

table! {
    /// Who moves the data, and through what.
    pub enum Transport {
        /// The source's rank stores into the destination's buffer.
        Put = "put",
        /// The destination's rank loads from the source's buffer.
        Get = "get",
        /// Through FIFO slots of the peer, with credits.
        Staged = "staged",
        /// Through the switch's multicast address.
        Multimem = "multimem",
        /// By bulk copies through shared memory.
        Bulk = "bulk",
    }
}

/// A value as the attribute gives it, and where it stands there.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Given<T> {
    /// The value.
    pub value: T,
    /// Where `key = value` stands.
    pub loc: Loc,
}

/// What a statement, or the block around it, says about how it is carried out. The inner attribute wins, option by
/// option.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct How {
    /// `protocol = ..`.
    pub protocol: Option<Given<Protocol>>,
    /// `transport = ..`, or `#[multimem]`.
    pub transport: Option<Given<Transport>>,
}

/// One `#[schedule(..)]` of a collective: how messages of some sizes are carried out. What is not given is the
/// compiler's choice.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ScheduleOptions {
    /// Where the attribute stands; none for the options of a collective that has no attribute.
    pub loc: Option<Loc>,
    /// Protocol and transport of statements that say nothing else.
    pub how: How,
    /// In how many parts every chunk is split, each on thread blocks of its own; at least 1.
    pub instances: Option<Given<u32>>,
    /// Most thread blocks of a rank, 1 to 64.
    pub blocks: Option<Given<u32>>,
    /// Threads of a block: a multiple of 32, up to 1024.
    pub threads: Option<Given<u32>>,
    /// FIFO slots of a connection, at least 1.
    pub slots: Option<Given<u32>>,
    /// Bytes of a tile, at least 1.
    pub tile: Option<Given<u64>>,
    /// Iterations of the inner loop that are unrolled, at least 1.
    pub unroll: Option<Given<u32>>,
    /// Messages up to this many bytes are others' (see [`sizes`]).
    pub from: Option<Given<u64>>,
    /// The largest message served, in bytes.
    pub up_to: Option<Given<u64>>,
}

/// The sizes of messages that a schedule serves, in bytes: above `above` (or any, where nothing is), up to `up_to`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sizes {
    /// The largest size that is too small; `None` where the schedule serves the smallest.
    pub above: Option<u64>,
    /// The largest size served.
    pub up_to: u64,
}

impl Sizes {
    /// Whether a message of `bytes` is served.
    pub fn contains(&self, bytes: u64) -> bool {
        self.above.is_none_or(|above| bytes > above) && bytes <= self.up_to
    }
}

/// The sizes that each schedule serves, in the order given. A schedule serves messages above its `from` up to and
/// including its `up_to`, so that one's `up_to` may be the next one's `from`. Without `from` it begins where the
/// nearest smaller `up_to` of the others ends, or with the smallest message; without `up_to` it ends where the nearest
/// larger `from` of the others begins, or never.
///
/// # Errors
/// Ranges that overlap, are empty, or leave a hole: every such pair, on the later attribute.
pub fn sizes(schedules: &[ScheduleOptions]) -> Result<Vec<Sizes>, Vec<Diagnostic>> {
    ranges::resolve(schedules)
}
