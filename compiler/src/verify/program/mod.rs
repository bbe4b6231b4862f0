//! Stage 1: the checks of a program.

mod chunk_position;
mod history;
mod input_overwritten;
pub(crate) mod out_of_bounds;
mod overlap;
mod postcondition;
mod read_before_write;
pub(crate) mod reproducible;
mod stores;
mod unsupported;

use crate::diagnostic::{Check, Diagnostic};
use crate::program::Program;
use crate::program::positions::Positions;
use crate::values::replay::{self, Unwritten};
use crate::values::{Contents, Values};
use crate::verify::findings::{self, Counted, Findings};
use stores::StoreTable;

/// Stage 1: every check of the program; all findings, in source order. Values are judged only where the operations
/// themselves are sound.
pub fn program(program: &Program) -> Result<(), Vec<Diagnostic>> {
    judged(program).map(drop)
}

/// As [`program`]; with what the proof rests on.
pub(crate) fn judged(program: &Program) -> Result<Contents, Vec<Diagnostic>> {
    if let Some(finding) = unsupported::check(program) {
        return Err(vec![finding]);
    }
    let mut list = operations(program).finish();
    if list.is_empty() {
        return contents(program);
    }
    if list.iter().all(|finding| finding.check == Check::ChunkPosition) && right_if_divisible(program) {
        list.iter_mut().for_each(|finding| finding.help = Some(chunk_position::HELP.to_owned()));
    }
    Err(list)
}

fn right_if_divisible(program: &Program) -> bool {
    let divisible = Program { divisible: true, ..program.clone() };
    operations(&divisible).finish().is_empty() && contents(&divisible).is_ok()
}

/// The checks of single operations.
pub(crate) fn operations(program: &Program) -> Findings {
    let mut findings = Findings::default();
    let mut positions = Positions::new(&program.shape);
    for op in &program.ops {
        let position =
            if program.divisible { None } else { chunk_position::check(&program.shape, &positions, op) };
        positions.stored(op);
        for problem in [overlap::check(op), position, input_overwritten::check(op)].into_iter().flatten() {
            let (check, at) = (problem.check, (op.statement, op.trail));
            findings.add(program, at, (check, Counted::Operation), || problem);
        }
    }
    findings
}

/// The checks of what chunks hold.
fn contents(program: &Program) -> Result<Contents, Vec<Diagnostic>> {
    let mut values = Values::new(&program.shape);
    let mut unwritten = Unwritten::default();
    let state = replay::replay(program, &mut values, &mut unwritten);
    let wrong = postcondition::wrong_chunks(program, &values, &state);
    if !unwritten.0 && wrong.is_empty() {
        let contents = Contents { values, state };
        let differing = reproducible::check(program, &contents);
        return differing.map_or(Ok(contents), |finding| Err(vec![finding]));
    }
    let stores = StoreTable::of(program);
    let mut findings = Findings::default();
    read_before_write::report(program, &stores, &mut findings);
    let mut list = findings.finish();
    list.extend(postcondition::findings(program, &values, wrong, &stores));
    findings::in_source_order(&mut list);
    Err(list)
}
