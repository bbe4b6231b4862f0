//! The compiler: programs, schedules, proofs, kernels and CUDA text.
