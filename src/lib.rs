#![doc = include_str!("../README.md")]

// What every program with a collective names: the attributes, and what they make.
pub use quadrille_macros::{collective, collectives, schedule};

pub use compiler::{Collective, DType, Diagnostics, Domain, Kind, RedOp};
pub use runtime::{Communicator, World};

pub mod compiler;
pub mod runtime;

#[cfg(feature = "cli")]
pub mod cli;
#[cfg(feature = "cli")]
pub mod example;

#[doc = include_str!("../docs/running.md")]
pub mod running {}

#[doc(hidden)]
#[path = "private.rs"]
pub mod __private;
