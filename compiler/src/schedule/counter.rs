//! Kinds of counters, and how many FIFOs and slots there are.

use crate::options::Protocol;

/// The events that a counter counts. A start word is `{sequence: high 32, hash: low 32}`; all others are 64-bit counts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum CounterKind {
    /// The start: the writing rank's kernel has begun. Its block 0 signals it.
    Start,
    /// Steps of the writing block that are done.
    Data,
    /// Messages of a connection that lie in their slots. The block that stores them signals it.
    Message,
    /// Credits: messages of a connection that have been read. The block that reads them signals it.
    Credit(Protocol),
}

impl CounterKind {
    /// Returns the word of the text form.
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

    /// Returns the index of a FIFO's counter among those of the FIFO, in the order of memory; `None` for others.
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
