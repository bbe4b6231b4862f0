//! Virtual GPUs: execute PTX on the CPU.
//!
//! A [`Machine`] is a number of GPUs (ranks) with one flat address space. It executes kernels of PTX [`Module`]s, as
//! NVRTC emits them, of all ranks together: warps of 32 lanes as vectors, in an order that a seed decides. Bad
//! accesses and waits that nobody ends are [`Fault`]s that name rank, block, thread, PTX line and source line.
//!
//! ```
//! use std::sync::Arc;
//! use quadrille_vgpu::{Config, Launch, Machine, Module, Status};
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
//! let module = Arc::new(Module::parse(ptx)?);
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
//! The flow: text -> `lexer` -> `parser` -> `ast` -> `decode` (with `cfg` for meeting points) -> `isa`; `machine` deals
//! ranks to `worker`s, which give `warp`s turns and speak through the `board`; `exec` runs them. Values: `alu` and
//! `float` for what ordinary code consists of, `floatop` and `soft` for every other format, rounding and modifier,
//! `convert`, `carry`. Memory: `reach`, `access`, `memory`; `multimem`, `copies` (asynchronous ones) and `mbarrier`.
//! `sync` is what lanes and warps do together; `hang` knows when nothing can go on.
#![forbid(unsafe_code)]
#![warn(clippy::print_stdout, clippy::print_stderr)]
#![expect(clippy::needless_range_loop, reason = "loops over lanes are written to be vectorized")]
#![expect(clippy::precedence, reason = "shifts and masks read best as in the PTX manual")]

mod access;
mod adversary;
mod agenda;
mod alu;
mod ast;
mod block;
mod board;
mod carry;
mod cfg;
mod class;
mod clock;
mod compact;
mod convert;
mod copies;
mod decode;
mod error;
mod exec;
mod float;
mod floatop;
mod hang;
mod isa;
mod launch;
mod lexer;
mod liveness;
mod machine;
mod mbarrier;
mod memory;
mod model;
mod module;
mod multimem;
mod observe;
mod parser;
mod random;
mod reach;
mod regs;
mod report;
mod soft;
mod sync;
mod tally;
mod uses;
mod warp;
mod worker;

pub use class::Class;
pub use clock::{
    BlockTimes, ClockOptions, Gpu, LinkUse, Message, Picoseconds, Span, Timeline, Timing, Topology, Wires,
};
pub use error::{
    AccessKind, BadAccess, Fault, Near, Place, PtxError, PtxProblem, PtxProblemKind, RequestError,
    SourceLine, Space,
};
pub use hang::{Polled, Waiting, WaitsFor};
pub use launch::Launch;
pub use machine::{Config, Execution, Machine, Outcome, Policy, Statistics, Status};
pub use model::{Check, Layout, Party, Race, RaceReason, SlotReuse, Stale};
pub use module::Module;
pub use tally::{Accesses, ClassCount, LinkStatistics, Waits};
