//! Warps and blocks: an instruction at a time, 32 lanes at a time.
//!
//! | module | holds |
//! |---|---|
//! | `access` | loads, stores and atomics on a run of bytes |
//! | `mbarrier_state` | the mbarriers of a block |
//! | `copy_queue` | the asynchronous copies of a block that are under way |
//! | `block` | a resident block: shared memory, barriers |
//! | `counts` | what workers count while warps run |
//! | `progress` | activations, splits and joins of a warp |
//! | `repetition` | warps that repeat themselves, for the detection of hangs |
//! | `warp` | a warp: divergence, meeting, calls and returns |
//! | `context` | the machine around a warp that executes |
//! | `carry`, `convert`, `compute` | instructions on registers |
//! | `address` | addresses of memory instructions, faults of accesses |
//! | `multimem`, `mbarrier`, `copies`, `load_store` | instructions on memory |
//! | `sync` | instructions at which lanes or warps wait for each other |
//! | `step` | a slice of a warp's instructions |

pub(crate) mod access;
pub(crate) mod address;
pub(crate) mod block;
pub(crate) mod carry;
pub(crate) mod compute;
pub(crate) mod context;
pub(crate) mod convert;
pub(crate) mod copies;
pub(crate) mod copy_queue;
pub(crate) mod counts;
pub(crate) mod load_store;
pub(crate) mod mbarrier;
pub(crate) mod mbarrier_state;
pub(crate) mod multimem;
pub(crate) mod progress;
pub(crate) mod repetition;
pub(crate) mod step;
pub(crate) mod sync;
pub(crate) mod warp;
