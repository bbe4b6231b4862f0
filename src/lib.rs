#![doc = include_str!("../README.md")]

pub use quadrille_compiler as compiler;
pub use quadrille_compiler::collective::Collective;
pub use quadrille_compiler::diagnostic::Diagnostics;
pub use quadrille_compiler::domain::Domain;
pub use quadrille_compiler::dtype::{DType, RedOp};
pub use quadrille_compiler::kind::Kind;
pub use quadrille_macros::{collective, collectives, schedule};
pub use quadrille_runtime as runtime;
pub use quadrille_runtime::{Communicator, World};

#[cfg(feature = "cli")]
pub mod cli;
#[cfg(feature = "cli")]
pub mod example;

/// What the code that `#[collective]` leaves behind calls; not for users.
#[doc(hidden)]
pub mod __private {
    pub use quadrille_dsl::from_macro as collective;
    pub use quadrille_dsl::from_module as collective_of_module;
}
