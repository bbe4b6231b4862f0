//! `read-before-write`: every chunk read holds a value.

use crate::diagnostic::{Check, Diagnostic};
use crate::program::Program;
use crate::verify::findings::{Findings, Unit};
use crate::verify::stores::Stores;

/// Reports reads of chunks nothing has been written to.
pub(crate) fn report(program: &Program, stores: &Stores, findings: &mut Findings) {
    let mut before = None;
    for &(id, at) in &stores.unwritten {
        if before.replace(id) == Some(id) {
            continue;
        }
        let op = &program.ops[id.0 as usize];
        findings.add(program, (op.statement, op.trail), (Check::ReadBeforeWrite, Unit::Operation), || {
            let message = format!("{at} is read before anything is stored there");
            let finding = Diagnostic::new(Check::ReadBeforeWrite, None, message);
            match stores.first(at) {
                None => finding.note("nothing is stored there later either"),
                Some(first) if first == id => finding
                    .note("this operation is the first to store there")
                    .help("store a first value with `=` before anything is added to it"),
                Some(first) => finding.note(format!("the first store is at {}", program.at(first))),
            }
        });
    }
}
