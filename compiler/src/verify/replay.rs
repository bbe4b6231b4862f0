//! Runs a program over values.

use crate::program::{OpId, Program};
use crate::verify::values::{State, ValueId, Values};
use smallvec::SmallVec;
use std::ops::Range;

/// What a run does to chunks, by their numbers (see [`Locations`](crate::location::Locations)); told in the order in
/// which it happens.
pub(crate) trait Observe {
    /// The operation reads a chunk, which holds nothing if `value` is `None`.
    fn read(&mut self, op: OpId, at: usize, value: Option<ValueId>);
    /// The operation made a value and stores it.
    fn store(&mut self, op: OpId, at: usize, value: ValueId);
}

/// Runs the program from the contents at the call's begin; returns the contents at its end. An operation with a slice
/// outside its buffer does nothing: slices are judged before.
pub(crate) fn replay(program: &Program, values: &mut Values, observer: &mut impl Observe) -> State {
    let mut state = State::initial(&program.shape, values);
    let locations = *state.locations();
    let held = state.held();
    let combined = program.ops.iter().filter(|op| op.sources.len() > 1);
    values.reserve(combined.map(|op| op.sources[0].len as usize).sum());
    let unknown = values.unknown();
    let mut sources: SmallVec<[Range<usize>; 8]> = SmallVec::new();
    let mut dests: SmallVec<[Range<usize>; 8]> = SmallVec::new();
    let mut terms: SmallVec<[ValueId; 8]> = SmallVec::new();
    for (op, id) in program.ops.iter().zip((0..).map(OpId)) {
        sources.clear();
        sources.extend(op.sources.iter().filter_map(|slice| locations.range(slice)));
        dests.clear();
        dests.extend(op.dests.iter().filter_map(|slice| locations.range(slice)));
        if (sources.len(), dests.len()) != (op.sources.len(), op.dests.len()) {
            continue;
        }
        let len = dests.iter().chain(&sources).map(Range::len).min().unwrap_or(0);
        if let ([source], [dest]) = (&sources[..], &dests[..]) {
            for (from, to) in source.clone().zip(dest.clone()) {
                observer.read(id, from, held[from]);
                let value = held[from].unwrap_or(unknown);
                observer.store(id, to, value);
                held[to] = Some(value);
            }
            continue;
        }
        for offset in 0..len {
            terms.clear();
            for source in &sources {
                let at = source.start + offset;
                observer.read(id, at, held[at]);
                terms.push(held[at].unwrap_or(unknown));
            }
            let value = values.intern_sum(&terms);
            for dest in &dests {
                let at = dest.start + offset;
                observer.store(id, at, value);
                held[at] = Some(value);
            }
        }
    }
    state
}

/// The values at the end of the program, for comparison with those of a schedule that shares `values`.
pub fn final_state(program: &Program, values: &mut Values) -> State {
    replay(program, values, &mut Unwritten::default())
}

/// Whether a run reads a chunk that holds nothing.
#[derive(Debug, Default)]
pub(crate) struct Unwritten(pub(crate) bool);

impl Observe for Unwritten {
    fn read(&mut self, _: OpId, _: usize, value: Option<ValueId>) {
        self.0 |= value.is_none();
    }

    fn store(&mut self, _: OpId, _: usize, _: ValueId) {}
}
