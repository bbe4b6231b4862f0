//! What the code that `#[collective]` leaves behind calls; not for users.

pub use quadrille_compiler::ids::Buffer;
pub use quadrille_compiler::kind::Kind;
pub use quadrille_compiler::recording::arithmetic::{Binary, IntType, Unary};
pub use quadrille_compiler::recording::steps::Steps;
pub use quadrille_compiler::recording::tape::{Body, Tape, is_power_of_two, length};
pub use quadrille_compiler::recording::{EveryRank, Stop};
