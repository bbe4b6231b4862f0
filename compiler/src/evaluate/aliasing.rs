//! The other way of calling a program: one in place with two buffers, one out of place with a single one.

use crate::diagnostic::Diagnostic;
use crate::evaluate::record::{OpOrigin, Recorder};
use crate::options::StatementOptions;
use crate::program::RawSite;
use crate::program::RawSlice;
use crate::program::ids::{Buffer, Location, Rank};
use crate::program::kind::{Expected, Shape};
use crate::program::location::LocationTable;
use crate::program::{Op, Program, Trails};
use rustc_hash::FxHashMap;

/// The program as called the other way. A program in place reads from `input` what it has not stored, and stores to
/// `output` what belongs there and to scratch what does not; what it leaves as it is gets copied. A program out of
/// place is taken literally, with `input` and `output` in one buffer: whether it is right so has to be judged.
///
/// # Errors
/// Of a program out of place: operations that one buffer does not allow, or a kind that has no form in place.
pub(crate) fn called_otherwise(program: &Program) -> Result<Program, Vec<Diagnostic>> {
    if program.shape.in_place { Ok(InPlaceSplit::new(program).run()?) } else { merge(program) }
}

/// In place to out of place.
struct InPlaceSplit<'p> {
    program: &'p Program,
    recorder: Recorder,
    stored: LocationTable<bool>,
    /// Chunks of `data` that have to be kept in scratch, with their places there.
    kept: FxHashMap<Location, u32>,
    /// Scratch in use by each rank.
    used: Vec<u32>,
    outputs: LocationTable<Option<u32>>,
}

impl<'p> InPlaceSplit<'p> {
    fn new(program: &'p Program) -> InPlaceSplit<'p> {
        let from = &program.shape;
        let mut outputs = LocationTable::new(from, None);
        for (rank, chunk) in from.outputs() {
            if let Some(cell) = outputs.get_mut(from.output_location(rank, chunk)) {
                *cell = Some(chunk);
            }
        }
        let mut split = InPlaceSplit {
            program,
            recorder: Recorder::rewriting(program, *from),
            stored: LocationTable::new(from, false),
            kept: FxHashMap::default(),
            used: vec![from.scratch; from.ranks as usize],
            outputs,
        };
        split.keep();
        let scratch = split.used.iter().copied().max().unwrap_or(0);
        split.recorder = Recorder::rewriting(program, Shape { in_place: false, scratch, ..*from });
        split
    }

    /// Finds places in scratch for what is stored to neither output.
    fn keep(&mut self) {
        for dest in self.program.ops.iter().flat_map(|op| &op.dests) {
            for at in dest.locations().filter(|at| at.buffer == Buffer::Data) {
                if self.outputs.get_mut(at).is_none_or(|output| output.is_none()) {
                    let used = &mut self.used[at.rank.0 as usize];
                    self.kept.entry(at).or_insert_with(|| {
                        *used += 1;
                        *used - 1
                    });
                }
            }
        }
    }

    fn run(mut self) -> Result<Program, Vec<Diagnostic>> {
        for op in &self.program.ops {
            let pieces = pieces(op, |at, store| self.place(at, store));
            for (sources, dests) in pieces {
                self.recorder.record(origin(op), &sources, &dests, site(op));
            }
        }
        self.untouched();
        self.recorder.finish()
    }

    /// Returns the place of a chunk in the form out of place, at its next read or store.
    fn place(&mut self, at: Location, store: bool) -> Location {
        if at.buffer != Buffer::Data {
            return at;
        }
        let stored =
            self.stored.get_mut(at).is_some_and(|stored| std::mem::replace(stored, *stored || store));
        if !(stored || store) {
            // Nothing is read that was neither given nor stored.
            let chunk = self.program.shape.initial(at).map_or(at.chunk, |leaf| leaf.chunk);
            return Location { buffer: Buffer::Input, rank: at.rank, chunk };
        }
        match (self.outputs.get_mut(at).copied().flatten(), self.kept.get(&at)) {
            (Some(chunk), _) => Location { buffer: Buffer::Output, rank: at.rank, chunk },
            (None, Some(&chunk)) => Location { buffer: Buffer::Scratch, rank: at.rank, chunk },
            (None, None) => at,
        }
    }

    /// Copies what the program leaves as it is and yet belongs to the output.
    fn untouched(&mut self) {
        let shape = self.program.shape;
        let mut statement = None;
        for (rank, chunk) in shape.outputs() {
            let at = shape.output_location(rank, chunk);
            let wanted = self.program.expected(rank, chunk) != Expected::Unspecified;
            let stored = self.stored.get_mut(at).is_some_and(|stored| *stored);
            let Some(input) = shape.initial(at).filter(|_| wanted && !stored) else { continue };
            let name = self.program.name_loc;
            let statement =
                *statement.get_or_insert_with(|| self.recorder.statement(name, StatementOptions::default()));
            let raw = |buffer, rank: Rank, chunk| raw(Location { buffer, rank, chunk }, 1);
            self.recorder.record(
                OpOrigin { statement, trail: Trails::ROOT },
                &[raw(Buffer::Input, input.rank, input.chunk)],
                &[raw(Buffer::Output, rank, chunk)],
                RawSite::default(),
            );
        }
    }
}

/// Out of place to in place.
fn merge(program: &Program) -> Result<Program, Vec<Diagnostic>> {
    let shape = Shape { in_place: true, ..program.shape };
    let mut recorder = Recorder::rewriting(program, shape);
    let place = |at: Location| match at.buffer {
        Buffer::Input => shape.input_location(at.rank, at.chunk),
        Buffer::Output => shape.output_location(at.rank, at.chunk),
        Buffer::Data | Buffer::Scratch => at,
    };
    for op in &program.ops {
        for (sources, mut dests) in pieces(op, |at, _| place(at)) {
            if let [only] = sources[..] {
                // Already there.
                dests.retain(|dest| *dest != only);
            }
            if !dests.is_empty() {
                recorder.record(origin(op), &sources, &dests, site(op));
            }
        }
    }
    recorder.finish()
}

fn origin(op: &Op) -> OpOrigin {
    OpOrigin { statement: op.statement, trail: op.trail }
}

fn site(op: &Op) -> RawSite {
    RawSite {
        on: op.site.on.map(|rank| rank.0.into()),
        channel: op.site.channel.map(i64::from),
        block: op.site.block.map(|block| block.0.into()),
    }
}

fn raw(at: Location, len: u32) -> RawSlice {
    let start = i64::from(at.chunk);
    RawSlice { buffer: at.buffer, rank: at.rank.0.into(), start, end: start + i64::from(len) }
}

/// Divides an operation whose chunks all move to other places: neighbours that stay neighbours stay together. Calls
/// `place` for each chunk, for reads before stores.
fn pieces(op: &Op, mut place: impl FnMut(Location, bool) -> Location) -> Vec<(Vec<RawSlice>, Vec<RawSlice>)> {
    let mut pieces: Vec<(Vec<RawSlice>, Vec<RawSlice>)> = Vec::new();
    let len = op.dests.first().map_or(0, |dest| dest.len);
    for offset in 0..len {
        let sources: Vec<_> = op.sources.iter().map(|slice| raw(place(slice.at(offset), false), 1)).collect();
        let dests: Vec<_> = op.dests.iter().map(|slice| raw(place(slice.at(offset), true), 1)).collect();
        let follows = |last: &[RawSlice], next: &[RawSlice]| {
            last.iter().zip(next).all(|(a, b)| (a.buffer, a.rank, a.end) == (b.buffer, b.rank, b.start))
        };
        match pieces.last_mut().filter(|last| follows(&last.0, &sources) && follows(&last.1, &dests)) {
            Some(last) => last.0.iter_mut().chain(&mut last.1).for_each(|slice| slice.end += 1),
            None => pieces.push((sources, dests)),
        }
    }
    pieces
}
