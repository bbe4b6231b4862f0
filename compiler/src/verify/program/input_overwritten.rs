//! `input-overwritten`: `input` belongs to the caller and is never stored to.

use crate::diagnostic::{Check, Diagnostic};
use crate::program::Op;
use crate::program::ids::Buffer;

/// Judges one operation.
pub(crate) fn check(op: &Op) -> Option<Diagnostic> {
    let dest = op.dests.iter().find(|dest| dest.buffer == Buffer::Input)?;
    Some(
        Diagnostic::new(Check::InputOverwritten, None, format!("{dest} is overwritten"))
            .note("`input` is read-only where the collective is not `in_place`")
            .help("store to `output`, or say `in_place` in the attribute and use `data`"),
    )
}
