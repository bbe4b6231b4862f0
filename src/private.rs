//! What the code that `#[collective]` leaves behind calls; not for users.

pub use quadrille_compiler::evaluate::arithmetic::{Binary, IntType, Unary};
pub use quadrille_compiler::evaluate::steps::Steps;
pub use quadrille_compiler::evaluate::tape::{Body, Tape, given, is_power_of_two, length, loc, sum};
pub use quadrille_compiler::evaluate::{EveryRank, Sources, Stop};
pub use quadrille_compiler::options::{How, Protocol, ScheduleOptions, Transport};
pub use quadrille_compiler::program::ids::Buffer;
pub use quadrille_compiler::program::kind::Kind;
