//! The runtime: NVRTC, worlds, launch.
