//! `expect!` and `unspecified!` of a custom collective.

use super::{OpOrigin, Recorder};
use crate::diagnostic::words;
use crate::diagnostic::{Check, Diagnostic};
use crate::program::Program;
use crate::program::RawSlice;
use crate::program::contract::Promise;
use crate::program::ids::{Buffer, Slice};
use crate::program::kind::{Contribution, Shape};
use crate::verify::program::out_of_bounds;
use std::sync::Arc;

/// Records what chunks are to hold.
pub(super) fn expect(recorder: &mut Recorder, origin: OpOrigin, sources: &[RawSlice], dests: &[RawSlice]) {
    let Some(dests) = slices(recorder, origin, dests, Buffer::Output) else { return };
    let Some(sources) = slices(recorder, origin, sources, Buffer::Input) else { return };
    let Some(first) = dests.first() else { return };
    if let Some(other) = dests.iter().chain(&sources).find(|slice| slice.len != first.len) {
        let chunks = words::count(first.len.into(), "chunk");
        let message = format!("{first} has {chunks} but {other} has {}", other.len);
        recorder.report(origin, Check::OutOfBounds, Diagnostic::new(Check::OutOfBounds, None, message));
        return;
    }
    for offset in 0..first.len {
        let mut inputs: Vec<Contribution> =
            sources.iter().map(|s| Contribution { rank: s.rank, chunk: s.start + offset }).collect();
        inputs.sort_unstable();
        let holds = Promise::Holds(Arc::from(inputs));
        for dest in &dests {
            promise(recorder, origin, dest, offset, holds.clone());
        }
    }
}

/// Records what chunks may hold anything.
pub(super) fn unspecified(recorder: &mut Recorder, origin: OpOrigin, dests: &[RawSlice]) {
    let Some(dests) = slices(recorder, origin, dests, Buffer::Output) else { return };
    for dest in &dests {
        for offset in 0..dest.len {
            promise(recorder, origin, dest, offset, Promise::Unspecified);
        }
    }
}

/// Slices of the output or input as a program out of place has them.
fn slices(recorder: &mut Recorder, origin: OpOrigin, raw: &[RawSlice], wanted: Buffer) -> Option<Vec<Slice>> {
    let shape = Shape { in_place: false, scratch: 0, ..recorder.program.shape };
    let slice = |raw: &RawSlice| {
        if raw.buffer != wanted {
            let message = format!("{raw} stands where the {} is named", wanted.name());
            let finding = Diagnostic::new(Check::Requirement, None, message).note(
                "a promise says what `output` holds at the end, in terms of what `input` held at the beginning",
            );
            return Err(Box::new(finding));
        }
        out_of_bounds::slice(&shape, raw)
    };
    match raw.iter().map(slice).collect::<Result<Vec<_>, _>>() {
        Ok(slices) => Some(slices),
        Err(problem) => {
            let check = problem.check;
            recorder.report(origin, check, *problem);
            None
        }
    }
}

fn promise(recorder: &mut Recorder, origin: OpOrigin, dest: &Slice, offset: u32, promise: Promise) {
    let Some(contract) = &mut recorder.program.contract else { return };
    let chunk = dest.start + offset;
    if contract.promise(dest.rank, chunk, promise).is_some() {
        let message = format!("output[{}][{chunk}] is promised twice", dest.rank.0);
        let finding = Diagnostic::new(Check::Requirement, None, message)
            .note("for each chunk of the output one `expect!` or `unspecified!` says what it is to hold");
        recorder.report(origin, Check::Requirement, finding);
    }
}

/// The finding on output chunks of a custom collective that no promise speaks of.
pub(super) fn silent(program: &Program) -> Option<Diagnostic> {
    let mut open = program.contract.as_ref()?.open();
    let (rank, chunk) = open.next()?;
    let more = open.count() as u64;
    let mut message = format!("nothing says what output[{}][{chunk}] is to hold", rank.0);
    if more > 0 {
        message.push_str(&format!(", and {} likewise", words::count(more, "more chunk")));
    }
    Some(
        Diagnostic::new(Check::Requirement, program.name_loc, message)
            .context(program.context())
            .help("say so by `expect!(output[r][c] == ..);` or, where it may hold anything, `unspecified!(output[r][c]);`"),
    )
}
