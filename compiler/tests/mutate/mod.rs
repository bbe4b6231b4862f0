//! Mutants: a program, a schedule or a kernel with one thing changed.

pub(crate) mod kernels;
pub(crate) mod programs;
pub(crate) mod schedules;
