//! The checks. Stage 1 judges a [`Program`], stage 2 a lowered schedule. One file a check, named after its id.

use crate::diagnostic::Diagnostic;
use crate::program::Program;

/// Stage 1: every check of the program; all findings, in source order.
pub fn program(_program: &Program) -> Result<(), Vec<Diagnostic>> {
    Ok(())
}

/// Merges the findings of several world sizes: one a (check, statement), the largest failing size shown, the others
/// named in its context.
pub fn merge_sizes(failures: Vec<(u32, Vec<Diagnostic>)>) -> Vec<Diagnostic> {
    failures.into_iter().flat_map(|(_, list)| list).collect()
}
