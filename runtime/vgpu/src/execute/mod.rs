//! What warps and blocks do: an instruction at a time, 32 lanes at a time.

pub(crate) mod access;
pub(crate) mod block;
pub(crate) mod carry;
pub(crate) mod convert;
pub(crate) mod copies;
pub(crate) mod load_store;
pub(crate) mod mbarrier;
pub(crate) mod multimem;
pub(crate) mod observe;
pub(crate) mod step;
pub(crate) mod sync;
pub(crate) mod warp;
