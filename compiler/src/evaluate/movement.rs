//! Statements that move data, to operations.
//!
//! A statement reads all its sources before it stores. One operation does so by itself; where a statement becomes
//! several (one a destination rank), none may store what another one reads: that is `overlap`.

use super::{OPERATION, Recording, Run};
use crate::diagnostic::Check;
use crate::evaluate::record::Origin;
use crate::program::RawSlice;
use crate::program::ids::Buffer;
use smallvec::SmallVec;
use std::ops::Range;

/// Memory that statements use one after the other.
#[derive(Debug, Default)]
pub(super) struct Operands {
    /// The ranks that operands name. A stack: evaluating an operand may run statements of a nested fn.
    ranks: Vec<i64>,
    sources: Vec<RawSlice>,
    dests: Vec<RawSlice>,
    /// The sources of several operations one after the other, and where those of each end.
    ends: Vec<usize>,
}

/// An operand whose parts have values: chunks of one rank or of several. It is used once, in the statement for which
/// it was made.
#[derive(Debug)]
pub struct Chunks {
    buffer: Buffer,
    ranks: Range<usize>,
    /// Whether the text names several ranks, if perhaps one by number.
    many: bool,
    start: i64,
    end: i64,
}

/// What stands right of a `=`.
#[derive(Debug)]
pub enum Sources {
    /// One operand, or several combined in order. Those of several ranks go pairwise with the destination's.
    Sum(SmallVec<[Chunks; 2]>),
    /// The chunks of several ranks, combined in order.
    Reduce(Chunks),
}

impl Sources {
    fn parts(&self) -> (&[Chunks], bool) {
        match self {
            Sources::Sum(operands) => (operands, false),
            Sources::Reduce(operand) => (std::slice::from_ref(operand), true),
        }
    }
}

/// What stands in the first index of a buffer.
pub trait RanksOf {
    /// Adds the ranks to the list; whether the text names several.
    fn add_to(self, list: &mut Vec<i64>, world: i64) -> bool;
}

/// One rank.
impl RanksOf for i64 {
    fn add_to(self, list: &mut Vec<i64>, _: i64) -> bool {
        list.push(self);
        false
    }
}

/// The ranks of an array, in its order.
impl<const N: usize> RanksOf for [i64; N] {
    fn add_to(self, list: &mut Vec<i64>, _: i64) -> bool {
        list.extend(self);
        true
    }
}

impl RanksOf for &[i64] {
    fn add_to(self, list: &mut Vec<i64>, _: i64) -> bool {
        list.extend(self);
        true
    }
}

/// `[..]`.
#[derive(Clone, Copy, Debug)]
pub struct EveryRank;

impl RanksOf for EveryRank {
    fn add_to(self, list: &mut Vec<i64>, world: i64) -> bool {
        list.extend(0..world);
        true
    }
}

/// The operations that a part of a statement becomes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    One,
    /// One a destination; `same` says that all store the same value.
    Split {
        same: bool,
    },
}

impl Operands {
    /// The operations of a statement that is split.
    fn each(&self) -> impl Iterator<Item = (&[RawSlice], &RawSlice)> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let sources = starts.zip(&self.ends).map(|(start, &end)| &self.sources[start..end]);
        sources.zip(&self.dests)
    }

    fn slice(&self, chunks: &Chunks, i: usize) -> RawSlice {
        let rank = self.ranks[chunks.ranks.start + if chunks.many { i } else { 0 }];
        RawSlice { buffer: chunks.buffer, rank, start: chunks.start, end: chunks.end }
    }
}

impl Recording {
    /// The operand `buffer[ranks][start..end]`.
    pub fn chunks(&mut self, buffer: Buffer, ranks: impl RanksOf, start: i64, end: i64) -> Chunks {
        let first = self.operands.ranks.len();
        let many = ranks.add_to(&mut self.operands.ranks, self.shape.ranks.into());
        Chunks { buffer, ranks: first..self.operands.ranks.len(), many, start, end }
    }

    /// The statement `dest = sources`, or with `accumulate` `dest += sources`.
    pub fn store(&mut self, dest: &Chunks, accumulate: bool, sources: &Sources) -> Run<()> {
        self.with_operands(dest, |recording, operands| {
            let form = recording.operations(dest, accumulate, sources, operands)?;
            let origin = recording.origin();
            let Form::Split { same } = form else {
                let site = recording.attributes.site;
                recording.recorder.record(origin, &operands.sources, &operands.dests, site);
                return Ok(());
            };
            if recording.separate(operands, same) {
                for (sources, dest) in operands.each() {
                    recording.recorder.record(origin, sources, &[*dest], recording.attributes.site);
                }
            }
            Ok(())
        })
    }

    /// The statement `(p, q) = (e, f)`, one pair a part.
    pub fn together(&mut self, parts: &[(Chunks, Sources)]) -> Run<()> {
        let Some((first, _)) = parts.first() else { return Ok(()) };
        self.with_operands(first, |recording, operands| {
            let mut all = Vec::new();
            for (dest, sources) in parts {
                match recording.operations(dest, false, sources, operands)? {
                    Form::One => all.push((operands.sources.clone(), operands.dests.clone())),
                    Form::Split { .. } => {
                        all.extend(operands.each().map(|(sources, dest)| (sources.to_vec(), vec![*dest])));
                    }
                }
            }
            let origin = recording.origin();
            recording.recorder.record_together(origin, &all, recording.attributes.site);
            Ok(())
        })
    }

    /// The statement `expect!(dest == sources)`.
    pub fn expect(&mut self, dest: &Chunks, sources: &Sources) -> Run<()> {
        self.with_operands(dest, |recording, operands| {
            let form = recording.operations(dest, false, sources, operands)?;
            let origin = recording.origin();
            if form == Form::One {
                recording.recorder.expect(origin, &operands.sources, &operands.dests);
                return Ok(());
            }
            for (sources, dest) in operands.each() {
                recording.recorder.expect(origin, sources, &[*dest]);
            }
            Ok(())
        })
    }

    /// The statement `unspecified!(dest)`.
    pub fn unspecified(&mut self, dest: &Chunks) -> Run<()> {
        self.with_operands(dest, |recording, operands| {
            let dests: Vec<RawSlice> = (0..dest.ranks.len()).map(|i| operands.slice(dest, i)).collect();
            recording.spend_chunks(dest, dests.len())?;
            let origin = recording.origin();
            recording.recorder.unspecified(origin, &dests);
            Ok(())
        })
    }

    /// Runs with the memory of operands, of which `first` was made first.
    fn with_operands(
        &mut self,
        first: &Chunks,
        run: impl FnOnce(&mut Recording, &mut Operands) -> Run<()>,
    ) -> Run<()> {
        let mut operands = std::mem::take(&mut self.operands);
        let result = run(self, &mut operands);
        operands.ranks.truncate(first.ranks.start);
        self.operands = operands;
        result
    }

    /// Where in the run the statement is.
    fn origin(&mut self) -> Origin {
        let statement = self.recorder.statement(self.loc, self.attributes.how);
        Origin { statement, trail: self.trail() }
    }

    /// Takes the cost of `slices` slices as long as `dest` off the budget. What is longer than a buffer is refused,
    /// and costs no more than that.
    fn spend_chunks(&mut self, dest: &Chunks, slices: usize) -> Run<()> {
        let length = dest.end.saturating_sub(dest.start).clamp(1, i64::from(self.longest));
        self.spend(slices as u64 * length as u64)
    }

    /// Lays out what an assignment reads and stores.
    fn operations(
        &mut self,
        dest: &Chunks,
        accumulate: bool,
        sources: &Sources,
        operands: &mut Operands,
    ) -> Run<Form> {
        operands.sources.clear();
        operands.dests.clear();
        operands.ends.clear();
        let (sources, reduce) = sources.parts();
        let dest_count = dest.ranks.len();
        let pairwise = !reduce && sources.iter().any(|operand| operand.many);
        let source_count = if reduce { sources[0].ranks.len() } else { sources.len() };
        // One operation reads everything and stores to all ranks if they store the same value and one rank executes.
        let same = !pairwise && !accumulate;
        let split = dest.many && !(same && (source_count == 1 || self.attributes.site.on.is_some()));
        for i in 0..dest_count {
            operands.dests.push(operands.slice(dest, i));
        }
        let operations = if split { dest_count } else { 1 };
        let reads = (source_count + usize::from(accumulate)) * operations;
        // The two sides are equally long.
        self.spend(OPERATION.saturating_mul(operations as u64))?;
        self.spend_chunks(dest, reads + dest_count)?;
        for i in 0..operations {
            if accumulate {
                operands.sources.push(operands.dests[i]);
            }
            if reduce {
                for j in 0..source_count {
                    operands.sources.push(operands.slice(&sources[0], j));
                }
            } else {
                for source in sources {
                    operands.sources.push(operands.slice(source, i));
                }
            }
            operands.ends.push(operands.sources.len());
        }
        Ok(if split { Form::Split { same } } else { Form::One })
    }

    /// Whether no operation of the statement stores what another one reads or stores; reported otherwise.
    /// `same` says that all would store the same value.
    fn separate(&mut self, operands: &Operands, same: bool) -> bool {
        let dests = &operands.dests;
        let conflict = |slice: &RawSlice, operation: usize| {
            dests.iter().enumerate().find(|(other, dest)| *other != operation && overlap(slice, dest))
        };
        // Destinations of one statement are the same chunks of ranks in order, so most often no two can meet.
        let distinct = dests.windows(2).all(|pair| pair[0].rank < pair[1].rank);
        if !distinct
            && let Some((_, dest)) = dests.iter().enumerate().find(|(i, dest)| conflict(dest, *i).is_some())
        {
            let rank = dest.rank;
            self.overlap(format!("rank {rank} stands twice among the ranks stored to"), None);
            return false;
        }
        let mut start = 0;
        for (i, &end) in operands.ends.iter().enumerate() {
            for source in &operands.sources[start..end] {
                if source.buffer != dests[i].buffer {
                    continue;
                }
                let met = if distinct {
                    let at = dests.binary_search_by_key(&source.rank, |dest| dest.rank).ok();
                    at.filter(|at| *at != i && overlap(source, &dests[*at]))
                } else {
                    conflict(source, i).map(|(other, _)| other)
                };
                if let Some(other) = met {
                    let message = format!(
                        "{source} is stored for rank {} and read for rank {} by one statement",
                        dests[other].rank, dests[i].rank
                    );
                    let help = same.then_some(
                        "name the one rank that executes it, by `#[on(..)]`, or store to other chunks",
                    );
                    self.overlap(message, help);
                    return false;
                }
            }
            start = end;
        }
        true
    }

    /// Reports the first overlap of a statement, and counts the others.
    fn overlap(&mut self, message: String, help: Option<&str>) {
        let loc = Some(self.loc);
        if let Some((_, more)) = self.overlaps.iter_mut().find(|(finding, _)| finding.loc == loc) {
            *more += 1;
            return;
        }
        let mut finding = self
            .finding(Check::Overlap, message)
            .note("each rank executes its own part of the statement, in no order");
        finding.help = help.map(str::to_owned);
        self.overlaps.push((finding, 0));
    }
}

fn overlap(a: &RawSlice, b: &RawSlice) -> bool {
    a.buffer == b.buffer && a.rank == b.rank && a.start < b.end && b.start < a.end
}
