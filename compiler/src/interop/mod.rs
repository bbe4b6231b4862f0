//! Plans of other systems, as collectives. What is imported is proved, compiled and executed like what is written here.

mod executor;
mod lines;
pub mod msccl;
pub mod mscclpp;
mod rust;

pub use executor::ExecutorVerdict;
pub use rust::rust;

use crate::diagnostic::{Check, Diagnostic, Loc, SourceFile};
use std::fmt::Display;

/// Chunks that all steps of a plan move.
const MOST_MOVED: u64 = 1 << 20;
/// Chunks of all buffers of all GPUs.
const MOST_LOCATIONS: u64 = 1 << 24;
/// Findings that are shown; a file of another sort would give thousands.
const MOST_FINDINGS: usize = 100;

/// Judges a plan of another system as its own executor runs it, an MSCCL XML file as `runtime` does. `None` for other
/// sources, and for plans that cannot be imported.
pub fn executed(source: &SourceFile, runtime: msccl::Runtime) -> Option<ExecutorVerdict> {
    match (msccl::is_xml(&source.text), mscclpp::is_json(&source.text)) {
        (true, _) => msccl::executed(&source.text, runtime),
        (false, true) => mscclpp::executed(&source.text),
        (false, false) => None,
    }
}

/// The first findings, as they stand in the file.
fn shown(mut list: Vec<Diagnostic>) -> Vec<Diagnostic> {
    list.sort_by_key(|finding| finding.loc);
    list.truncate(MOST_FINDINGS);
    list
}

/// A finding on a place of a file.
fn finding(check: Check, loc: Loc, message: impl Into<String>) -> Diagnostic {
    Diagnostic::new(check, loc, message)
}

/// The name of chunks beyond a buffer's end.
fn out_of_bounds(buffer: &str, start: i64, count: i64, size: impl Display) -> String {
    match count {
        1 => format!("there is no chunk {start} among the {size} of `{buffer}`"),
        _ => format!("there are no chunks {start} to {} among the {size} of `{buffer}`", start + count - 1),
    }
}

/// A file's name as that of a function.
fn identifier(name: &str) -> String {
    const LONGEST: usize = 100;
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let mut text: String = name.trim().chars().take(LONGEST).map(plain).collect();
    if !text.starts_with(|c: char| c.is_ascii_alphabetic()) {
        text.insert_str(0, "plan_");
    }
    text
}
