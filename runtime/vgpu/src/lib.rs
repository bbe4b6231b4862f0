//! Virtual GPUs: execute PTX on the CPU.
//!
//! A [`Machine`] is a number of GPUs (ranks) with one flat address space. It executes kernels of PTX [`PtxModule`]s, as
//! NVRTC emits them, of all ranks together: warps of 32 lanes as vectors, in an order that a seed decides. Bad
//! accesses and waits that nobody ends are [`Fault`]s that name rank, block, thread, PTX line and source line.
//!
//! ```
//! use std::sync::Arc;
//! use quadrille_vgpu::{Config, Launch, Machine, PtxModule, Status};
//!
//! let ptx = "
//! .version 8.0
//! .target sm_90
//! .address_size 64
//! .visible .entry twice(.param .u64 data)
//! {
//!     .reg .b32 %r<4>;
//!     .reg .b64 %rd<4>;
//!     ld.param.u64 %rd1, [data];
//!     mov.u32 %r1, %tid.x;
//!     mul.wide.u32 %rd2, %r1, 4;
//!     add.s64 %rd3, %rd1, %rd2;
//!     ld.global.u32 %r2, [%rd3];
//!     shl.b32 %r3, %r2, 1;
//!     st.global.u32 [%rd3], %r3;
//!     ret;
//! }";
//! let module = Arc::new(PtxModule::parse(ptx)?);
//! let mut machine = Machine::new(Config { ranks: 2, ..Config::default() })?;
//! let data = machine.alloc(1, 4 * 40, 256, "data")?;
//! for i in 0..40u32 {
//!     machine.write(data + 4 * u64::from(i), &i.to_le_bytes())?;
//! }
//! // Rank 0 works on rank 1's memory.
//! machine.launch(Launch {
//!     rank: 0,
//!     module,
//!     kernel: "twice".into(),
//!     grid: [1, 1, 1],
//!     block: [40, 1, 1],
//!     shared_bytes: 0,
//!     params: vec![data.to_le_bytes().to_vec()],
//! })?;
//! let outcome = machine.run()?;
//! assert_eq!(outcome.status, Status::Completed);
//! assert_eq!(machine.read(data + 4 * 39, 4)?, 78u32.to_le_bytes());
//! assert_eq!(outcome.statistics.link(0, 1).bytes_stored, 160);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! With [`Config::check`], runs are checked against the PTX memory model: races are faults, and reads may return any
//! value that the model lets them. Reads never see stores that have not been executed, and stores to one location take
//! effect in the order of their execution; so load buffering and 2+2W, which the model allows, do not show up.
//!
//! Modules stand in data order:
//!
//! | module | holds |
//! |---|---|
//! | `fault` | everything that can go wrong: in a text, in a request, in a run |
//! | `random` | the scheduler's random numbers |
//! | `registers` | vectors of 32 lanes |
//! | `arithmetic` | the types of PTX, floats of every format and rounding, lane-wise instructions as tables |
//! | `isa` | decoded instructions and functions |
//! | `front` | PTX text to decoded functions, with points where diverged lanes meet and registers that share places |
//! | `memory` | one address space of all ranks, as words that host atomics access |
//! | `observe` | the hooks at which the memory model and the clock see what warps do |
//! | `model` | the PTX memory model: who knows of which access, which values may be read, races |
//! | `clock` | the virtual clock: topologies, links, registers in flight, timelines |
//! | `execute` | warps and blocks: what an instruction does in 32 lanes, memory instructions, barriers, copies |
//! | `machine` | ranks, launches, the seeded order of warps over host threads, hangs |
#![forbid(unsafe_code)]
#![warn(clippy::print_stdout, clippy::print_stderr)]
#![expect(clippy::needless_range_loop, reason = "loops over lanes are written to be vectorized")]
#![expect(clippy::precedence, reason = "shifts and masks read best as in the PTX manual")]

mod arithmetic;
mod clock;
mod execute;
mod fault;
mod front;
mod isa;
mod machine;
mod memory;
mod model;
mod observe;
mod random;
mod registers;

pub use clock::{
    BlockTimes, ClockOptions, ClockTimeline, FlagMessage, GpuSpec, LinkUse, Picoseconds, Span, Timing,
    Topology, Wires,
};
pub use execute::counts::{Accesses, ClassCount, LinkStatistics, Waits};
pub use fault::Fault;
pub use fault::hang::{Polled, Waiting, WaitsFor};
pub use fault::place::{AccessKind, BadAccess, FaultPlace, Near, SourceLine, Space};
pub use fault::ptx::{PtxError, PtxProblem, PtxProblemKind};
pub use fault::race::{Party, Race, RaceReason, SlotReuse};
pub use fault::request::RequestError;
pub use front::module::PtxModule;
pub use isa::InstructionClass;
pub use machine::launch::Launch;
pub use machine::{Config, Execution, Machine, Outcome, Policy, RunStatistics, Status};
pub use model::{ModelCheck, PacketLayout, Stale};
