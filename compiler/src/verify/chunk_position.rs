//! `chunk-position`: chunks that meet in one operation have the same position, index mod C, since late chunks of an
//! uneven message are shorter.

use crate::diagnostic::{Check, Diagnostic};
use crate::kind::Shape;
use crate::program::Op;

/// What to do where the program is right but for chunks of different size.
pub(crate) const HELP: &str =
    "if every message divides evenly, say `divisible` in the attribute; other counts are then refused";

/// What is wrong with the operation, if anything; for collectives that do not promise divisible counts.
pub(crate) fn check(shape: &Shape, op: &Op) -> Option<Diagnostic> {
    let position = |start: u32| start % shape.chunks;
    let first = op.dests.first()?;
    let other =
        op.dests.iter().chain(&op.sources).find(|other| position(other.start) != position(first.start))?;
    let message = format!("{first} and {other} have different positions in their units");
    Some(Diagnostic::new(Check::ChunkPosition, None, message).note(format!(
        "with {} chunks a unit they {} at positions {} and {}; when a message does not divide evenly, late \
                 chunks are shorter",
        shape.chunks,
        if first.len == 1 { "stand" } else { "begin" },
        position(first.start),
        position(other.start)
    )))
}
