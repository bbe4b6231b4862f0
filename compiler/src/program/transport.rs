//! The executing rank of statements whose transport is get.

use crate::options::{ScheduleOptions, StatementOptions, Transport};
use crate::program::{Op, Program, Site};
use smallvec::smallvec;

/// Returns the program with the executing ranks that `options` ask for. With `get`, the destination's rank executes a
/// copy, unless `#[on(..)]` names another one.
pub(crate) fn place(mut program: Program, options: &ScheduleOptions) -> Program {
    let gets: Vec<bool> = program
        .statements
        .iter()
        .map(|statement| transport(options, &statement.how) == Some(Transport::Get))
        .collect();
    if !gets.contains(&true) {
        return program;
    }
    let ops = std::mem::take(&mut program.ops);
    for op in ops {
        if op.site.on.is_some() || op.sources.len() != 1 || !gets[op.statement.0 as usize] {
            program.ops.push(op);
            continue;
        }
        for dest in &op.dests {
            let site = Site { on: Some(dest.rank), ..op.site };
            program.ops.push(Op { dests: smallvec![*dest], site, ..op.clone() });
        }
    }
    program
}

/// Returns the transport asked for: the statement's own, or else the schedule's.
pub(crate) fn transport(options: &ScheduleOptions, how: &StatementOptions) -> Option<Transport> {
    how.transport.or(options.how.transport).map(|given| given.value)
}
