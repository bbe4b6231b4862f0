//! Statements that move data, to operations.
//!
//! A statement reads all its sources before it stores. One operation does so by itself; where a statement becomes
//! several (one a destination rank), none may store what another one reads: that is `overlap`.

use super::{Evaluated, Evaluator, OPERATION};
use crate::body::{ChunksExpr, Expr, MoveSource, MoveStmt, RanksExpr};
use crate::diagnostic::Check;
use crate::evaluate::record::OpOrigin;
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
struct OperandChunks {
    buffer: Buffer,
    ranks: Range<usize>,
    /// True if the text names ranks by a range, which may hold one alone.
    many: bool,
    start: i64,
    end: i64,
}

/// The right side of a `=`.
#[derive(Debug)]
enum Sources {
    /// One operand, or several combined in order. Those of several ranks go pairwise with the destination's.
    Sum(SmallVec<[OperandChunks; 2]>),
    /// The chunks of several ranks, combined in order.
    Reduce(OperandChunks),
}

impl Sources {
    fn parts(&self) -> (&[OperandChunks], bool) {
        match self {
            Sources::Sum(operands) => (operands, false),
            Sources::Reduce(operand) => (std::slice::from_ref(operand), true),
        }
    }
}

/// The operations that a part of a statement becomes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum OperationForm {
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

    fn slice(&self, chunks: &OperandChunks, i: usize) -> RawSlice {
        let rank = self.ranks[chunks.ranks.start + if chunks.many { i } else { 0 }];
        RawSlice { buffer: chunks.buffer, rank, start: chunks.start, end: chunks.end }
    }
}

impl<'a> Evaluator<'a> {
    /// `dest = sources` or `dest += sources`.
    pub(super) fn movement(&mut self, moved: &'a MoveStmt) -> Evaluated<()> {
        let (dest, sources) = &self.sides(moved)?;
        self.with_operands(dest, |run, operands| {
            let form = run.operations(dest, moved.accumulate, sources, operands)?;
            let origin = run.origin();
            let OperationForm::Split { same } = form else {
                let site = run.attributes.site;
                run.recorder.record(origin, &operands.sources, &operands.dests, site);
                return Ok(());
            };
            if run.separate(operands, same) {
                for (sources, dest) in operands.each() {
                    run.recorder.record(origin, sources, &[*dest], run.attributes.site);
                }
            }
            Ok(())
        })
    }

    /// `(p, q) = (e, f)`, one pair a part.
    pub(super) fn together(&mut self, parts: &'a [MoveStmt]) -> Evaluated<()> {
        let parts: Vec<_> = parts.iter().map(|part| self.sides(part)).collect::<Evaluated<_>>()?;
        let Some((first, _)) = parts.first() else { return Ok(()) };
        self.with_operands(first, |run, operands| {
            let mut all = Vec::new();
            for (dest, sources) in &parts {
                match run.operations(dest, false, sources, operands)? {
                    OperationForm::One => all.push((operands.sources.clone(), operands.dests.clone())),
                    OperationForm::Split { .. } => {
                        all.extend(operands.each().map(|(sources, dest)| (sources.to_vec(), vec![*dest])));
                    }
                }
            }
            let origin = run.origin();
            run.recorder.record_together(origin, &all, run.attributes.site);
            Ok(())
        })
    }

    /// `expect!(dest == sources)`.
    pub(super) fn expect(&mut self, promise: &'a MoveStmt) -> Evaluated<()> {
        let (dest, sources) = &self.sides(promise)?;
        self.with_operands(dest, |run, operands| {
            let form = run.operations(dest, false, sources, operands)?;
            let origin = run.origin();
            if form == OperationForm::One {
                run.recorder.expect(origin, &operands.sources, &operands.dests);
                return Ok(());
            }
            for (sources, dest) in operands.each() {
                run.recorder.expect(origin, sources, &[*dest]);
            }
            Ok(())
        })
    }

    /// `unspecified!(dest)`.
    pub(super) fn unspecified(&mut self, dest: &'a ChunksExpr) -> Evaluated<()> {
        let dest = &self.chunks(dest)?;
        self.with_operands(dest, |run, operands| {
            let dests: Vec<RawSlice> = (0..dest.ranks.len()).map(|i| operands.slice(dest, i)).collect();
            run.spend_chunks(dest, dests.len())?;
            let origin = run.origin();
            run.recorder.unspecified(origin, &dests);
            Ok(())
        })
    }

    fn sides(&mut self, moved: &'a MoveStmt) -> Evaluated<(OperandChunks, Sources)> {
        let dest = self.chunks(&moved.dest)?;
        let sources = match &moved.source {
            MoveSource::Sum(operands) => {
                Sources::Sum(operands.iter().map(|operand| self.chunks(operand)).collect::<Evaluated<_>>()?)
            }
            MoveSource::Reduce(operand) => Sources::Reduce(self.chunks(operand)?),
        };
        Ok((dest, sources))
    }

    fn chunks(&mut self, operand: &'a ChunksExpr) -> Evaluated<OperandChunks> {
        let rank = match &operand.ranks {
            RanksExpr::One(rank) => self.scalar(rank)?,
            RanksExpr::All | RanksExpr::Range { .. } => 0,
            RanksExpr::Group { value, at, .. } => {
                let at = self.base + *at as usize;
                self.store(value, at)?;
                0
            }
        };
        let range = match &operand.ranks {
            RanksExpr::Range { start, end } => self.rank_range(start.as_ref(), end.as_ref())?,
            _ => 0..i64::from(self.shape.ranks),
        };
        let start = self.scalar(&operand.start)?;
        let end = match &operand.end {
            None => start.saturating_add(1),
            Some((end, inclusive)) => self.scalar(end)?.saturating_add(i64::from(*inclusive)),
        };
        let ranks = &mut self.operands.ranks;
        let first = ranks.len();
        match operand.ranks {
            RanksExpr::One(_) => ranks.push(rank),
            RanksExpr::All | RanksExpr::Range { .. } => ranks.extend(range),
            RanksExpr::Group { at, len, .. } => {
                let at = self.base + at as usize;
                ranks.extend_from_slice(&self.slots[at..at + len as usize]);
            }
        }
        let many = !matches!(operand.ranks, RanksExpr::One(_));
        Ok(OperandChunks { buffer: operand.buffer, ranks: first..ranks.len(), many, start, end })
    }

    /// The ranks of a range. Of those that do not exist it has one on each side, which the recorder reports.
    fn rank_range(
        &mut self,
        start: Option<&'a Expr>,
        end: Option<&'a (Expr, bool)>,
    ) -> Evaluated<Range<i64>> {
        let world = i64::from(self.shape.ranks);
        let start = start.map_or(Ok(0), |start| self.scalar(start))?;
        let end = match end {
            None => world,
            Some((end, inclusive)) => self.scalar(end)?.saturating_add(i64::from(*inclusive)),
        };
        if start >= end {
            let message = format!("the range of ranks {start}..{end} is empty");
            return Err(self.stop(Check::OutOfBounds, message));
        }
        Ok(start.clamp(-1, world)..end.clamp(0, world + 1))
    }

    /// Runs with the memory of operands, of which `first` was made first.
    fn with_operands(
        &mut self,
        first: &OperandChunks,
        run: impl FnOnce(&mut Self, &mut Operands) -> Evaluated<()>,
    ) -> Evaluated<()> {
        let mut operands = std::mem::take(&mut self.operands);
        let result = run(self, &mut operands);
        operands.ranks.truncate(first.ranks.start);
        self.operands = operands;
        result
    }

    /// Returns the statement with the iteration in which it runs.
    fn origin(&mut self) -> OpOrigin {
        let statement = self.recorder.statement(self.loc, self.attributes.how);
        OpOrigin { statement, trail: self.trail() }
    }

    /// Takes the cost of `slices` slices as long as `dest` off the budget. What is longer than a buffer is refused,
    /// and costs no more than that.
    fn spend_chunks(&mut self, dest: &OperandChunks, slices: usize) -> Evaluated<()> {
        let length = dest.end.saturating_sub(dest.start).clamp(1, i64::from(self.longest));
        self.spend(slices as u64 * length as u64)
    }

    /// Lays out what an assignment reads and stores.
    fn operations(
        &mut self,
        dest: &OperandChunks,
        accumulate: bool,
        sources: &Sources,
        operands: &mut Operands,
    ) -> Evaluated<OperationForm> {
        operands.sources.clear();
        operands.dests.clear();
        operands.ends.clear();
        let (sources, reduce) = sources.parts();
        let dest_count = dest.ranks.len();
        let pairwise = !reduce && sources.iter().any(|operand| operand.many);
        // Ranges alone have a length that the parser does not know.
        if !reduce
            && let Some(other) =
                sources.iter().find(|operand| operand.many && operand.ranks.len() != dest_count)
        {
            let message = format!(
                "the left side names {dest_count} ranks, and the right side {}; they do not go in pairs",
                other.ranks.len()
            );
            let mut stop = self.stop(Check::OutOfBounds, message);
            stop.0.help = Some("name as many ranks on both sides".to_owned());
            return Err(stop);
        }
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
        Ok(if split { OperationForm::Split { same } } else { OperationForm::One })
    }

    /// Returns true if no operation of the statement stores chunks that another one reads or stores; reports it otherwise.
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
