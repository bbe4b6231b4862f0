//! The runtime: NVRTC, worlds, launch.

pub mod nvrtc;
