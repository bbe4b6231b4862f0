//! `read-before-write`: every chunk read holds a value.

use crate::diagnostic::{Check, Diagnostic};
use crate::program::Program;
use crate::program::ids::{Buffer, Location};
use crate::program::kind::{Kind, Shape};
use crate::verify::findings::{Counted, Findings};
use crate::verify::program::stores::StoreTable;

/// Reports reads of chunks nothing has been written to.
pub(crate) fn report(program: &Program, stores: &StoreTable, findings: &mut Findings) {
    let mut before = None;
    for &(id, at) in &stores.unwritten {
        if before.replace(id) == Some(id) {
            continue;
        }
        let op = &program.ops[id.0 as usize];
        findings.add(program, (op.statement, op.trail), (Check::ReadBeforeWrite, Counted::Operation), || {
            let message = format!("{at} is read before anything is stored there");
            let mut finding = Diagnostic::new(Check::ReadBeforeWrite, None, message);
            finding.notes.extend(at_the_start(&program.shape, at));
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

/// The contents of a buffer at the start, unless all chunks of `data` hold an input.
fn at_the_start(shape: &Shape, at: Location) -> Option<String> {
    match (at.buffer, shape.kind) {
        (Buffer::Scratch, _) => Some("`scratch` holds nothing at the start".to_owned()),
        (Buffer::Data, Kind::Broadcast) => {
            Some(format!("at the start only the root, rank {}, has anything in `data`", shape.root.0))
        }
        (Buffer::Data, Kind::AllGather) => {
            let first = shape.input_location(at.rank, 0).chunk;
            let input = match shape.chunks {
                1 => format!("{first}"),
                chunks => format!("{first}..{}", first + chunks),
            };
            Some(format!(
                "at the start data[{0}] holds rank {0}'s input, data[{0}][{input}], alone",
                at.rank.0
            ))
        }
        _ => None,
    }
}
