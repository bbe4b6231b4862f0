//! The runtime: worlds of GPUs, real or virtual, and the calls that run on them. [`crate::running`] shows how.
//!
//! | group | has |
//! |---|---|
//! | worlds | [`World`] and its [`WorldOptions`]; [`survey()`] and [`gpus()`] tell about the machine |
//! | memory | [`Communicator`], one a rank, gives each rank's [`Window`]s; [`Plain`] is memory that peers do not map |
//! | calls | a [`LoadedKernel`] takes a [`Call`]; a [`Graph`] launches captured calls again |
//! | sessions | [`World::run`] and [`Session`] run a collective on inputs in the host's memory |
//! | errors | every fn gives an [`Error`]; a [`Failure`] tells in the program's terms why calls failed |
//! | interleavings | [`ModelCheck`] and [`Policy`] say how virtual GPUs look for races |
//! | time | [`ClockOptions`] and [`Topology`] make a virtual clock; [`Timeline`], [`Statistics`] and [`Bandwidth`] are its results |
//! | NVRTC | [`nvrtc`] finds, fetches and calls libnvrtc |

// Worlds.
pub use quadrille_runtime::{
    Gpu, LEAVING, MOST_BLOCKS, MOST_RANKS, Measured, PATIENCE, PeerLink, Survey, World, WorldOptions, gpus,
    survey,
};

// Memory.
pub use quadrille_runtime::{Argument, Communicator, Plain, Window};

// Calls.
pub use quadrille_runtime::{Call, Graph, LoadTimes, LoadedKernel};

// Sessions.
pub use quadrille_runtime::{Batch, Job, PreparedCall, Run, Session};

// Errors.
pub use quadrille_runtime::{
    Access, AccessKind, At, Awaited, CallProblem, Cause, CudaError, Error, Failure, InputProblem, Signature,
    Target, Wait,
};

// Interleavings.
pub use quadrille_runtime::{ModelCheck, Policy, Stale};

// Time.
pub use quadrille_runtime::{
    Accesses, Bandwidth, BlockTimeline, ClassCount, ClockOptions, FlagMessage, InstructionClass, Link,
    LinkStatistics, LinkUse, Picoseconds, Statistics, StepTimes, Timeline, Topology, Waits,
};

/// The crate cudarc, in the version whose streams and slices calls take.
pub use quadrille_runtime::cudarc;

pub mod nvrtc {
    //! libnvrtc, CUDA's run-time compiler.
    //!
    //! [`provide`] finds it, or fetches it once, and [`announce`] tells the user what takes time; [`find`] never
    //! fetches. `World`s call it by themselves. [`Cache`] keeps what it compiled
    //! ([`World::keep_kernels`](super::World::keep_kernels)). [`compile`] compiles any CUDA text for an [`Arch`].

    pub use quadrille_runtime::nvrtc::{
        Absence, Found, Looked, NvrtcError, Progress, Source, ToolError, Version, WheelProblem, announce,
        cache, driver, fetch, find, offline, provide, supported, version,
    };

    pub use quadrille_runtime::nvrtc::{
        Arch, Cache, Code, CodeKind, CompileError, CompileOptions, Compiled, Features, Image, ParseArchError,
        Text, compile, compile_with,
    };
}
