//! Kinds of counters, and how many FIFOs and slots there are.

use crate::options::Protocol;

/// What a counter counts. Start words are `{sequence: high 32, hash: low 32}`, all others plain 64-bit counts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum CounterKind {
    /// The writing rank's kernel has begun; written by its block 0.
    Start,
    /// A step of the writing block is done.
    Data,
    /// Messages of a connection that lie in their slots; written by the block that stores them.
    Message,
    /// Messages of a connection that have been read; written by the block that reads them.
    Credit(Protocol),
}

impl CounterKind {
    /// The word in the text form.
    pub fn name(self) -> &'static str {
        match self {
            CounterKind::Start => "start",
            CounterKind::Data => "data",
            CounterKind::Message => "message",
            CounterKind::Credit(Protocol::Simple) => "credit",
            CounterKind::Credit(Protocol::Ll) => "credit LL",
            CounterKind::Credit(Protocol::Ll128) => "credit LL128",
        }
    }

    /// Of those of FIFOs, in the order in which they lie.
    pub(crate) fn fifo(self) -> Option<u64> {
        match self {
            CounterKind::Start | CounterKind::Data => None,
            CounterKind::Message => Some(0),
            CounterKind::Credit(protocol) => Some(1 + protocol as u64),
        }
    }
}

/// Most FIFOs of a protocol from one rank to another.
pub const FIFOS: u32 = 32;
/// Slots of a FIFO in memory, a power of two; the most that a schedule may use.
pub const SLOTS: u32 = 8;
