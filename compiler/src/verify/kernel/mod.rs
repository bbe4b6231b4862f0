//! The check of a kernel.

mod rolled;

pub use rolled::kernel;
