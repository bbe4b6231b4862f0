//! `overlap`: a destination equals a source or is disjoint from it, and destinations are pairwise disjoint.

use crate::diagnostic::{Check, Diagnostic};
use crate::program::Op;
use crate::program::ids::Slice;

/// Judges one operation.
pub(crate) fn check(op: &Op) -> Option<Diagnostic> {
    for (i, dest) in op.dests.iter().enumerate() {
        if let Some(source) = op.sources.iter().find(|source| *source != dest && source.overlaps(dest)) {
            let message = format!("{dest} and its source {source} overlap in part");
            return Some(Diagnostic::new(Check::Overlap, None, message).note(format!(
                "they share {}; the two sides must be equal or disjoint",
                shared(dest, source)
            )));
        }
        if let Some(other) = op.dests[..i].iter().find(|other| other.overlaps(dest)) {
            let message = format!("{} is stored twice by one operation", shared(other, dest));
            let finding = Diagnostic::new(Check::Overlap, None, message);
            return Some(finding.note(if other == dest {
                format!("rank {} is named twice among the destinations", dest.rank.0)
            } else {
                format!("the destinations {other} and {dest} share it")
            }));
        }
    }
    None
}

/// The chunks that two overlapping slices share.
fn shared(a: &Slice, b: &Slice) -> Slice {
    let start = a.start.max(b.start);
    Slice { start, len: a.end().min(b.end()) - start, ..*a }
}
