//! The runtime: NVRTC, worlds, launch.
//!
//! ```text
//! World --communicators--> Communicator --load--> LoadedKernel --enqueue--> (queue) --World::synchronize--> results
//!                          Communicator --alloc-> Window
//! ```
//!
//! [`World::run`] is all of it. A module imports those above it alone:
//!
//! | module | has |
//! |---|---|
//! | [`nvrtc`] | libnvrtc: found, loaded, called |
//! | `driver` | NVIDIA's driver |
//! | `error` | errors, and failures of calls in the program's terms |
//! | `gpus` | the GPUs of a world, real or virtual, behind one trait |
//! | `state` | the state that handles share: groups, calls from queued to ended, why they failed |
//! | `communicator` | communicators and their windows |
//! | `world` | worlds, and how they are made |
//! | `argument`, `kernel`, `launch`, `graph` | a call: its buffers, its kernel, its way into the queue or a graph |
//! | `run` | sessions: a collective on given inputs |
//! | `survey` | this machine's GPUs |
//! | [`units`], `bandwidth` | sizes of buffers, and what a time means for them |

#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod nvrtc;

mod driver;

mod error;

mod gpus;

mod state;

mod communicator;

mod world;

mod argument;

mod kernel;

mod launch;

mod graph;

mod run;

mod survey;

pub mod units;

mod bandwidth;

#[doc(hidden)]
pub mod internals;

/// Streams and slices of this version of cudarc are what calls take.
pub use cudarc;

pub use argument::{Argument, Plain};
pub use bandwidth::Bandwidth;
pub use communicator::{Communicator, Window};
pub use driver::CudaError;
pub use error::{
    Access, At, Awaited, CallProblem, Cause, Error, Failure, InputProblem, Signature, Target, Wait,
};
pub use gpus::{
    BlockTimeline, LEAVING, Link, MOST_BLOCKS, MOST_RANKS, Measured, PATIENCE, Statistics, StepTimes,
    Timeline, WorldOptions, gpus,
};
pub use graph::Graph;
pub use kernel::LoadedKernel;
pub use launch::Call;
pub use quadrille_vgpu::{
    AccessKind, Accesses, ClassCount, ClockOptions, FlagMessage, InstructionClass, LinkStatistics, LinkUse,
    ModelCheck, Picoseconds, Policy, Stale, Topology, Waits,
};
pub use run::{Batch, Job, PreparedCall, Run, Session, count};
pub use state::LoadTimes;
pub use survey::{Gpu, PeerLink, Survey, survey};
pub use world::World;
