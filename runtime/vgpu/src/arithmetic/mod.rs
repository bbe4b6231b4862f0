//! Values: floats as PTX defines them, and lane-wise instructions as tables.

pub(crate) mod exact;
pub(crate) mod float;
pub(crate) mod float_ops;
pub(crate) mod lanes;
