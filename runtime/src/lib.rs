//! The runtime: NVRTC, worlds, launch.
//!
//! ```text
//! World --communicators--> Communicator --load--> Kernel --enqueue--> (queue) --World::synchronize--> results
//!                          Communicator --alloc-> Window
//! ```
//!
//! [`World::run`] is all of it. Modules stand in the order of this picture.

#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod nvrtc;

mod driver;

mod world;

mod communicator;

mod argument;

mod kernel;

mod by_hand;

mod launch;

mod flight;

mod graph;

mod run;

mod chain;

mod explore;

mod survey;

mod timeline;

mod number;

pub mod data;

mod bandwidth;

mod failure;

mod error;

#[cfg(test)]
mod tests;

/// Streams and slices of this version of cudarc are what calls take.
pub use cudarc;

pub use argument::{Argument, Plain};
pub use bandwidth::Bandwidth;
pub use by_hand::ByHand;
pub use communicator::{Communicator, Window};
pub use driver::CudaError;
pub use error::{CallProblem, Error, InputProblem};
pub use explore::{Explored, explore};
pub use failure::{Access, At, Awaited, Cause, Failure, Target, Wait};
pub use graph::Graph;
pub use kernel::{Kernel, LoadTimes};
pub use launch::{Call, Signature};
pub use quadrille_vgpu::{
    AccessKind, Accesses, ClassCount, ClockOptions, FlagMessage, InstructionClass, LinkStatistics, LinkUse,
    ModelCheck, Picoseconds, Policy, Stale, Topology, Waits,
};
pub use run::{Batch, Job, Run, Session};
pub use survey::{Gpu, PeerLink, Survey, survey};
pub use timeline::{BlockTimeline, StepTimes, Timeline};
pub use world::{
    LEAVING, Link, MOST_BLOCKS, MOST_RANKS, Measured, Options, PATIENCE, Statistics, World, gpus,
};
