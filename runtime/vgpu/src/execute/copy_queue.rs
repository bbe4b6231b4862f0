//! The asynchronous copies of a block that are under way.

use rustc_hash::FxHashMap;

use crate::fault::{FaultPlace, Space};

/// A place in shared memory of the block, or in global memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct CopyRange {
    pub(super) space: Space,
    pub(super) at: u64,
}

#[derive(Clone, Debug)]
pub(super) enum CopyWork {
    /// `read` bytes are copied, the rest of `size` becomes zeros.
    Copy {
        to: CopyRange,
        from: CopyRange,
        size: u64,
        read: u64,
        data: Option<Vec<u8>>,
        mbarrier: Option<u64>,
    },
    /// An arrival behind the thread's earlier copies.
    Arrive { mbarrier: u64 },
}

#[derive(Clone, Debug)]
pub(super) struct CopyItem {
    /// Number of the thread in its block.
    pub(super) thread: u32,
    pub(super) bulk: bool,
    /// Number of the group among the thread's, once there is one.
    pub(super) group: Option<u64>,
    pub(super) work: CopyWork,
    /// The instruction that began it.
    pub(super) place: FaultPlace,
}

/// The copies of a block that are not complete, in the order in which they were begun.
#[derive(Clone, Debug, Default)]
pub(crate) struct BlockCopies {
    pub(super) items: Vec<CopyItem>,
    /// Groups that each thread has made; bulk groups are counted apart.
    pub(super) groups: FxHashMap<(u32, bool), u64>,
}

impl BlockCopies {
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}
