//! What the facade has for `#[collective]` and what it leaves behind.

pub use quadrille_compiler as compiler;
pub use quadrille_compiler::collective::Collective;
pub use quadrille_macros::collective;

#[doc(hidden)]
#[path = "private.rs"]
pub mod __private;
