//! `chunk-position`: chunks that meet in one operation have the same position, index mod C, since late chunks of an
//! uneven message are shorter.

use crate::diagnostic::{Check, Diagnostic};
use crate::program::Op;
use crate::program::ids::Buffer;
use crate::program::kind::Shape;
use crate::program::positions::Positions;

/// The help for a program that is right but for chunks of different size.
pub(crate) const HELP: &str =
    "if every message divides evenly, say `divisible` in the attribute; other counts are then refused";

/// Judges an operation of a collective that does not promise divisible counts, given the positions of all chunks.
pub(crate) fn check(shape: &Shape, positions: &Positions, op: &Op) -> Option<Diagnostic> {
    let len = op.dests.first()?.len;
    // Outside scratch positions follow each other.
    let in_scratch = op.sources.iter().any(|slice| slice.buffer == Buffer::Scratch);
    let offsets = 0..if in_scratch { len } else { 1 };
    let (first, position, other, elsewhere) = offsets.into_iter().find_map(|offset| {
        let stored = op.dests.iter().filter(|dest| dest.buffer != Buffer::Scratch);
        let mut operands =
            stored.chain(&op.sources).filter_map(|slice| Some((slice, positions.of(slice.at(offset))?)));
        let (first, position) = operands.next()?;
        let (other, elsewhere) = operands.find(|(_, elsewhere)| *elsewhere != position)?;
        Some((first, position, other, elsewhere))
    })?;
    let message = format!("{first} and {other} have different positions in their units");
    let mut finding = Diagnostic::new(Check::ChunkPosition, None, message).note(format!(
        "with {} chunks a unit they {} at positions {position} and {elsewhere}; when a message does not divide \
         evenly, late chunks are shorter",
        shape.chunks,
        if first.len == 1 { "stand" } else { "begin" },
    ));
    if [first, other].iter().any(|slice| slice.buffer == Buffer::Scratch) {
        finding = finding.note("a chunk of `scratch` has the position of what was stored there last");
    }
    Some(finding)
}
