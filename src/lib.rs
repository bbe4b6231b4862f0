//! Custom GPU collectives, written in Rust, proved before they run.

pub use quadrille_compiler::collective::Collective;
pub use quadrille_macros::collective;

pub mod example;

/// What the code that `#[collective]` leaves behind calls; not for users.
#[doc(hidden)]
pub mod __private {
    pub use quadrille_dsl::from_macro as collective;
}
