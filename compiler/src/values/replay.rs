//! Replays: runs of a program over values.

use crate::program::{OpId, Program};
use crate::values::{ChunkValues, ValueId, Values};
use smallvec::SmallVec;
use std::ops::Range;

/// An observer of a replay. It learns of every read and store of ranges of chunks, by their numbers (see
/// [`Locations`](crate::program::location::Locations)), in order: an operation reads all its sources before it stores.
pub(crate) trait ReplayObserver {
    /// An operation reads chunks that hold these values, or nothing.
    fn read(&mut self, op: OpId, chunks: Range<usize>, held: &[Option<ValueId>]);
    /// An operation has stored these values to chunks.
    fn store(&mut self, op: OpId, chunks: Range<usize>, held: &[Option<ValueId>]);
}

/// Runs the program from the state at the call's begin, and returns the state at its end. An operation with a slice
/// outside its buffer does nothing: slices have been judged before.
pub(crate) fn replay(
    program: &Program,
    values: &mut Values,
    observer: &mut impl ReplayObserver,
) -> ChunkValues {
    let mut state = ChunkValues::initial(&program.shape, values);
    let locations = *state.locations();
    let held = state.held();
    let combined = program.ops.iter().filter(|op| op.sources.len() > 1);
    values.reserve(combined.clone().count(), combined.map(|op| op.sources[0].len as usize).sum());
    let unknown = values.unknown();
    let mut sources: SmallVec<[Range<usize>; 8]> = SmallVec::new();
    let mut dests: SmallVec<[Range<usize>; 8]> = SmallVec::new();
    for (op, id) in program.ops.iter().zip((0..).map(OpId)) {
        sources.clear();
        sources.extend(op.sources.iter().filter_map(|slice| locations.range(slice)));
        dests.clear();
        dests.extend(op.dests.iter().filter_map(|slice| locations.range(slice)));
        if (sources.len(), dests.len()) != (op.sources.len(), op.dests.len()) {
            continue;
        }
        let len = dests.iter().chain(&sources).map(Range::len).min().unwrap_or(0);
        for range in sources.iter_mut().chain(&mut dests) {
            range.end = range.start + len;
        }
        for source in &sources {
            observer.read(id, source.clone(), &held[source.clone()]);
        }
        match &sources[..] {
            [source] => {
                for dest in &dests {
                    held.copy_within(source.clone(), dest.start);
                    held[dest.clone()].iter_mut().for_each(|held| *held = held.or(Some(unknown)));
                }
            }
            sources => combine(values, held, &Ranges { sources, dests: &dests, len }),
        }
        for dest in &dests {
            observer.store(id, dest.clone(), &held[dest.clone()]);
        }
    }
    state
}

/// The chunks of an operation, by their numbers.
pub(super) struct Ranges<'a> {
    pub(super) sources: &'a [Range<usize>],
    pub(super) dests: &'a [Range<usize>],
    /// The length of each.
    pub(super) len: usize,
}

/// Combines ranges of chunks. Each source is one of the destinations, or disjoint from them.
pub(super) fn combine(
    values: &mut Values,
    held: &mut [Option<ValueId>],
    &Ranges { sources, dests, len }: &Ranges<'_>,
) {
    let mut terms: SmallVec<[ValueId; 8]> = SmallVec::new();
    let mut done = 0;
    while done < len {
        // Consecutive values of every source are combined at once.
        let mut alike = len - done;
        terms.clear();
        for source in sources {
            let next = &held[source.start + done..][..alike];
            terms.push(next[0].unwrap_or(values.unknown()));
            alike = following(next);
        }
        while alike > 0 {
            let (value, made) = values.intern_sums(&terms, alike as u32);
            for dest in dests {
                let stored = &mut held[dest.start + done..][..made as usize];
                stored.iter_mut().zip(0..).for_each(|(held, by)| *held = Some(value.further(by)));
            }
            terms.iter_mut().for_each(|term| *term = term.further(made));
            done += made as usize;
            alike -= made as usize;
        }
    }
}

/// Returns the number of chunks at the beginning that hold consecutive values; at least 1.
fn following(held: &[Option<ValueId>]) -> usize {
    let Some(Some(first)) = held.first() else { return 1 };
    held.iter().zip(0..).position(|(held, by)| *held != Some(first.further(by))).unwrap_or(held.len())
}

/// Returns the state at the program's end, for comparison with that of a schedule that shares `values`.
pub fn final_state(program: &Program, values: &mut Values) -> ChunkValues {
    replay(program, values, &mut Unwritten::default())
}

/// An observer that notes whether a run reads a chunk that holds nothing.
#[derive(Debug, Default)]
pub(crate) struct Unwritten(pub(crate) bool);

impl ReplayObserver for Unwritten {
    fn read(&mut self, _: OpId, _: Range<usize>, held: &[Option<ValueId>]) {
        self.0 |= held.iter().fold(false, |unwritten, held| unwritten | held.is_none());
    }

    fn store(&mut self, _: OpId, _: Range<usize>, _: &[Option<ValueId>]) {}
}
