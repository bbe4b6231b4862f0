//! Values: the types of PTX, floats of every format and rounding, and lane-wise instructions as tables.

pub(crate) mod exact;
pub(crate) mod float;
pub(crate) mod float_ops;
pub(crate) mod tables;
pub(crate) mod types;
