//! The threads of a block that touch the words of a chunk.

/// The threads that touch the words of a chunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Lane {
    pub(super) sort: LaneSort,
    /// Chunks of the operation's range before it.
    pub(super) offset: u32,
    /// Chunks of the operation's range.
    pub(super) size: u32,
}

/// The ways in which MSCCL++ shares the words of a range out to threads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LaneSort {
    /// Packet by packet.
    Packets,
    /// By 16 bytes, from the range's start on.
    Sums,
    /// By the alignment of its ends.
    Copies,
}

impl Lane {
    /// Returns true if the same thread touches the same words of a chunk.
    pub(super) fn meets(&self, other: &Lane) -> bool {
        self == other && self.sort != LaneSort::Copies
    }
}
