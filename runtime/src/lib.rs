//! The runtime: NVRTC, worlds, launch.
//!
//! ```text
//! World --communicators--> Communicator --load--> LoadedKernel --enqueue--> (queue) --World::synchronize--> results
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

mod launch;

mod flight;

mod graph;

mod run;

mod survey;

mod timeline;

pub mod units;

mod bandwidth;

mod failure;

mod error;

#[doc(hidden)]
pub mod internals;

/// Streams and slices of this version of cudarc are what calls take.
pub use cudarc;

pub use argument::{Argument, Plain};
pub use bandwidth::Bandwidth;
pub use communicator::{Communicator, Window};
pub use driver::CudaError;
pub use error::{CallProblem, Error, InputProblem};
pub use failure::{Access, At, Awaited, Cause, Failure, Target, Wait};
pub use graph::Graph;
pub use kernel::{LoadTimes, LoadedKernel};
pub use launch::{Call, Signature};
pub use quadrille_vgpu::{
    AccessKind, Accesses, ClassCount, ClockOptions, FlagMessage, InstructionClass, LinkStatistics, LinkUse,
    ModelCheck, Picoseconds, Policy, Stale, Topology, Waits,
};
pub use run::{Batch, Job, PreparedCall, Run, Session, count};
pub use survey::{Gpu, PeerLink, Survey, survey};
pub use timeline::{BlockTimeline, StepTimes, Timeline};
pub use world::{
    LEAVING, Link, MOST_BLOCKS, MOST_RANKS, Measured, PATIENCE, Statistics, World, WorldOptions, gpus,
};
