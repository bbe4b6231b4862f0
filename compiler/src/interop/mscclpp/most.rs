//! The most that MSCCL++'s executor takes (microsoft/mscclpp at 1f5f065, src/core/include/execution_common.hpp).

/// Operations of a thread block.
pub(super) const MOST_OPS: usize = 64;
/// Channels of each sort, and remote buffers, of a thread block.
pub(super) const MOST_CHANNELS: usize = 16;
/// Channels of an operation.
pub(super) const MOST_CHANNELS_OF_OP: usize = 8;
/// Semaphores of an operation.
pub(super) const MOST_SEMAPHORES_OF_OP: usize = 16;
/// Sources, and destinations, of an operation.
pub(super) const MOST_ENDS: usize = 10;
/// Barriers of a GPU.
pub(super) const MOST_BARRIERS: u64 = 16;
