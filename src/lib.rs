#![doc = include_str!("../README.md")]

pub use quadrille_compiler as compiler;
pub use quadrille_compiler::collective::Collective;
pub use quadrille_compiler::diagnostic::Diagnostics;
pub use quadrille_compiler::program::dtype::{DType, RedOp};
pub use quadrille_compiler::program::kind::Kind;
pub use quadrille_compiler::schedule::domain::Domain;
pub use quadrille_macros::{collective, collectives, schedule};
pub use quadrille_runtime as runtime;
pub use quadrille_runtime::{Communicator, World};

#[cfg(feature = "cli")]
pub mod cli;
#[cfg(feature = "cli")]
pub mod example;

#[doc = include_str!("../docs/running.md")]
pub mod running {}

#[doc(hidden)]
#[path = "private.rs"]
pub mod __private;
