//! The checks. Stage 1 judges a program, stage 2 a schedule, and `rolled` a kernel. One file a check, named after its id.

pub(crate) mod findings;
mod kernel;
pub(crate) mod program;
mod schedule;

pub use findings::{SettingFindings, merge_sizes, without_excluded};
pub use kernel::kernel;
pub use program::program;
pub(crate) use program::{judged, operations, reproducible};
pub use schedule::schedule;
pub(crate) use schedule::unordered;
