//! What the code that `#[collective]` leaves behind calls; not for users.

pub use quadrille_compiler::ids::Buffer;
pub use quadrille_compiler::kind::Kind;
pub use quadrille_compiler::options::{How, Protocol, ScheduleOptions, Transport};
pub use quadrille_compiler::recording::arithmetic::{Binary, IntType, Unary};
pub use quadrille_compiler::recording::steps::Steps;
pub use quadrille_compiler::recording::tape::{Body, Tape, given, is_power_of_two, length, loc, sum};
pub use quadrille_compiler::recording::{EveryRank, Sources, Stop};
