//! What tests, benchmarks and the command line judge collectives by, and what stands in for GPUs.
//!
//! | module | has |
//! |---|---|
//! | [`data`] | test data whose results are exact, the exact results, and the comparison |
//! | [`number`] | the arithmetic of the references |
//! | [`among_kernels`] | calls between other kernels of the user's, as collectives are called in earnest |
//! | [`mod@explore`] | many interleavings of the same calls |
//! | [`by_hand`] | kernels that nothing has proved: baselines written by hand |
//! | [`fake`] | a CUDA driver that executes kernels on virtual GPUs, and fails where it is told to |
//! | [`device_check`] | the check of a build on the GPUs of a machine |
//!
//! The library `quadrille` does not build on this crate; its command line does.

pub mod among_kernels;
pub mod by_hand;
pub mod data;
pub mod device_check;
pub mod explore;
pub mod fake;
pub mod number;

pub use data::{Comparison, Pattern, TestMessage, WrongElement};
pub use explore::{Explored, explore};
pub use fake::{FakeDriver, FakeMachine};
