//! `unsupported`, as far as it concerns a recorded program: one that is too large to be judged. Constructs that cannot
//! be carried out are found where they are read.

use crate::diagnostic::{Check, Diagnostic};
use crate::program::Program;
use crate::program::location::Locations;

/// Chunks of all ranks together, and chunks read and stored by all operations together, that a program may have.
/// Bounds what the checks allocate.
const LIMIT: u64 = 1 << 24;

/// Judges the size of a program.
pub(crate) fn check(program: &Program) -> Option<Diagnostic> {
    let chunks = Locations::count(&program.shape);
    let accesses = program
        .ops
        .iter()
        .map(|op| op.sources.iter().chain(&op.dests).map(|slice| u64::from(slice.len)).sum::<u64>())
        .fold(0, u64::saturating_add);
    let what = if chunks > LIMIT {
        format!("the buffers of all ranks have {chunks} chunks")
    } else if accesses > LIMIT {
        format!("the program reads and stores {accesses} chunks")
    } else {
        return None;
    };
    Some(
        Diagnostic::new(Check::Unsupported, program.name_loc, format!("{what}, more than {LIMIT}"))
            .context(program.context()),
    )
}
