//! Virtual GPUs: execute PTX on the CPU.
