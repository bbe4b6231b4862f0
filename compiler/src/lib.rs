//! The compiler: chunk-movement programs, the schedules they are lowered to, the proofs, the kernels and their
//! CUDA text.
//!
//! ```text
//! Program --lower--> Schedule --verify--> Verified<Schedule> --build--> Verified<Kernel> --emit--> CUDA C++
//! ```
//!
//! This crate knows neither Rust syntax, nor the CUDA driver, nor files. Modules stand in data order:
//!
//! | module | holds |
//! |---|---|
//! | [`names`] | names that users write, and tables of them |
//! | [`diagnostic`] | findings: what is wrong, where, why, what to do |
//! | [`options`] | how a program is carried out, never what it computes; sizes of messages |
//! | [`program`] | what is moved: ranks, chunks, kinds, element types, operations |
//! | [`body`] | what a collective's text says, as a tree: the parser makes it, the evaluator runs it |
//! | [`values`] | what chunks hold in a run, and in which order it was combined |
//! | [`schedule`] | steps of every thread block, with all synchronization; the world they are for |
//! | [`verified`] | the evidence that a check has passed |
//! | [`kernel`] | what one launch does, the same for all ranks; its contract with the host |
//! | [`verify`] | the checks, of programs, schedules and kernels |
//! | [`report`] | what a program costs and promises |
//! | [`evaluate`] | bodies to programs |
//! | [`lower`] | programs to schedules |
//! | [`emit`] | kernels to CUDA text |
//! | [`collective`] | all of it, for one collective |
//! | [`interop`] | plans of MSCCL and MSCCL++, read and written |

#![forbid(unsafe_code)]
#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod body;
pub mod collective;
pub mod diagnostic;
pub mod emit;
pub mod evaluate;
pub mod interop;
pub mod kernel;
pub mod lower;
pub mod names;
pub mod options;
pub mod program;
pub mod report;
pub mod schedule;
pub mod values;
pub mod verified;
pub mod verify;
