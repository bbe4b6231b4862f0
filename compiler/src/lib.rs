//! The compiler: chunk-movement programs, the schedules they are lowered to, the proofs, the kernels and their
//! CUDA text.
//!
//! ```text
//! Program --lower--> Schedule --verify--> Verified<Schedule> --build--> Verified<Kernel> --emit--> CUDA C++
//! ```
//!
//! This crate knows neither Rust syntax, nor the CUDA driver, nor files. Modules stand in data order.

#![forbid(unsafe_code)]
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod words;

pub mod ids;

pub mod location;

pub mod diagnostic;

pub mod kind;

pub mod dtype;

pub mod domain;

pub mod size;

pub mod options;

pub mod contract;

pub mod program;

mod positions;

pub mod record;

pub mod recording;

mod aliasing;

mod transport;

pub mod scaling;

pub mod collective;

pub mod interop;

pub mod abi;

pub mod schedule;

pub mod lower;

pub mod verify;

pub mod report;

pub mod kernel;

pub mod widths;

pub mod emit;
