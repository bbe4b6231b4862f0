//! The windows of the state spaces among generic addresses, and the addresses of parameters.

/// Window of an address: 0 is memory of ranks.
pub(crate) const WINDOW_SHIFT: u32 = 56;
pub(crate) const SHARED_WINDOW: u64 = 1 << WINDOW_SHIFT;
pub(crate) const LOCAL_WINDOW: u64 = 2 << WINDOW_SHIFT;
pub(crate) const PARAM_WINDOW: u64 = 3 << WINDOW_SHIFT;
/// Parameters of functions and calls begin here in the param space; kernel parameters at 0.
pub(crate) const FRAME_PARAMS: u64 = 1 << 32;
