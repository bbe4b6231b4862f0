//! Runs a program over values.

use crate::ids::Location;
use crate::program::{OpId, Program};
use crate::verify::values::{State, ValueId, Values};
use smallvec::SmallVec;

/// What a run does to chunks; told in the order in which it happens.
pub(crate) trait Observe {
    /// The operation reads a chunk, which holds nothing if `value` is `None`.
    fn read(&mut self, op: OpId, at: Location, value: Option<ValueId>);
    /// The operation made a value and stores it.
    fn store(&mut self, op: OpId, at: Location, value: ValueId);
}

/// Runs the program from the contents at the call's begin; returns the contents at its end. Slices must lie in their
/// buffers.
pub(crate) fn replay(program: &Program, values: &mut Values, observer: &mut impl Observe) -> State {
    let mut state = State::initial(&program.shape, values);
    let mut terms: SmallVec<[ValueId; 8]> = SmallVec::new();
    for (i, op) in program.ops.iter().enumerate() {
        let id = OpId(i as u32);
        let len = op.dests.first().map_or(0, |dest| dest.len);
        for offset in 0..len {
            terms.clear();
            for source in &op.sources {
                let at = source.at(offset);
                let value = state.read(at);
                observer.read(id, at, value);
                terms.push(value.unwrap_or(values.unknown()));
            }
            let value = values.intern_sum(&terms);
            for dest in &op.dests {
                observer.store(id, dest.at(offset), value);
                state.store(dest.at(offset), value);
            }
        }
    }
    state
}

/// The values at the end of the program, for comparison with those of a schedule that shares `values`.
pub fn final_state(program: &Program, values: &mut Values) -> State {
    struct Nothing;
    impl Observe for Nothing {
        fn read(&mut self, _: OpId, _: Location, _: Option<ValueId>) {}
        fn store(&mut self, _: OpId, _: Location, _: ValueId) {}
    }
    replay(program, values, &mut Nothing)
}
