//! Schedule options: how a program is carried out. They never change its result.

mod ranges;
pub mod size;

use crate::diagnostic::{Diagnostic, Loc};
use crate::names::table;
use serde::{Deserialize, Serialize};

table! {
    /// How data and flags travel; the names are NCCL's.
    #[derive(Serialize, Deserialize)]
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
    /// The way that data takes: the rank that moves it, and the memory in between.
    #[derive(Serialize, Deserialize)]
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

/// A value that an attribute gives, with its location.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Given<T> {
    /// The value.
    pub value: T,
    /// The location of `key = value`.
    pub loc: Loc,
}

/// The options of a statement, or of the block around it. An inner attribute replaces an outer one, option by option.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct StatementOptions {
    /// `protocol = ..`.
    pub protocol: Option<Given<Protocol>>,
    /// `transport = ..`, or `#[multimem]`.
    pub transport: Option<Given<Transport>>,
}

/// One `#[schedule(..)]` of a collective, for messages of some sizes. The compiler chooses the options that are not
/// given.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ScheduleOptions {
    /// The location of the attribute; none for a collective without attributes.
    pub loc: Option<Loc>,
    /// Protocol and transport of statements that say nothing else.
    pub how: StatementOptions,
    /// The parts that every chunk is split into, each on thread blocks of its own; at least 1.
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
    /// The largest message that is too small, in bytes (see [`sizes`]).
    pub from: Option<Given<u64>>,
    /// The largest message served, in bytes.
    pub up_to: Option<Given<u64>>,
}

/// The sizes of messages that a schedule serves, in bytes: more than `above`, up to `up_to`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sizes {
    /// The largest size that is too small; `None` where the schedule serves the smallest.
    pub above: Option<u64>,
    /// The largest size served.
    pub up_to: u64,
}

impl Sizes {
    /// Returns true if a message of `bytes` is served.
    pub fn contains(&self, bytes: u64) -> bool {
        self.above.is_none_or(|above| bytes > above) && bytes <= self.up_to
    }
}

/// Returns the sizes that each schedule serves, in the order given.
///
/// A schedule serves messages of more than `from` bytes, up to and including `up_to`. So the `up_to` of one may be the
/// `from` of the next. Without `from` it begins at the nearest smaller `up_to` of the others, or with the smallest
/// message. Without `up_to` it ends at the nearest larger `from` of the others, or never.
///
/// # Errors
/// Ranges that overlap, are empty, or leave a hole; every such pair on the later attribute.
pub fn sizes(schedules: &[ScheduleOptions]) -> Result<Vec<Sizes>, Vec<Diagnostic>> {
    ranges::resolve(schedules)
}
