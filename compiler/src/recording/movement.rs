//! Statements that move data, to operations.
//!
//! A statement reads all its sources before it stores. One operation does so by itself; where a statement becomes
//! several (one a destination rank), none may store what another one reads: that is `overlap`.

use super::{Recording, Run};
use crate::diagnostic::Check;
use crate::ids::Buffer;
use crate::options::How;
use crate::record::{Origin, RawSlice};
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

impl Operands {
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

    /// A statement that stores a source, or several combined in order, to `dest`; with `accumulate` added to what is
    /// there. Sources of several ranks go pairwise with the destination's.
    pub fn sum(&mut self, dest: &Chunks, accumulate: bool, sources: &[Chunks]) -> Run<()> {
        self.movement(dest, accumulate, sources, false)
    }

    /// A statement that stores the chunks of several ranks, combined in order, to `dest`.
    pub fn reduce(&mut self, dest: &Chunks, source: &Chunks) -> Run<()> {
        self.movement(dest, false, std::slice::from_ref(source), true)
    }

    fn movement(&mut self, dest: &Chunks, accumulate: bool, sources: &[Chunks], reduce: bool) -> Run<()> {
        let mut operands = std::mem::take(&mut self.operands);
        let result = self.movement_with(dest, accumulate, sources, reduce, &mut operands);
        operands.ranks.truncate(dest.ranks.start);
        self.operands = operands;
        result
    }

    fn movement_with(
        &mut self,
        dest: &Chunks,
        accumulate: bool,
        sources: &[Chunks],
        reduce: bool,
        operands: &mut Operands,
    ) -> Run<()> {
        operands.sources.clear();
        operands.dests.clear();
        operands.ends.clear();
        let dest_count = dest.ranks.len();
        let pairwise = !reduce && sources.iter().any(|operand| operand.many);
        let source_count = if reduce { sources[0].ranks.len() } else { sources.len() };
        // One operation reads everything and stores to all ranks if they store the same value and one rank executes.
        let same = !pairwise && !accumulate;
        let split = dest.many && !(same && (source_count == 1 || self.site.on.is_some()));
        let statement = self.recorder.statement(self.loc, How::default());
        let origin = Origin { statement, trail: self.trail() };
        for i in 0..dest_count {
            operands.dests.push(operands.slice(dest, i));
        }
        let operations = if split { dest_count } else { 1 };
        let reads = (source_count + usize::from(accumulate)) * operations;
        // The two sides are equally long; what is longer than a buffer is refused, and costs no more than that.
        let length = dest.end.saturating_sub(dest.start).clamp(1, i64::from(self.longest));
        self.spend((reads + dest_count) as u64 * length as u64)?;
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
        if !split {
            self.recorder.record(origin, &operands.sources, &operands.dests, self.site);
            return Ok(());
        }
        if self.separate(operands, same) {
            self.record_each(operands, origin);
        }
        Ok(())
    }

    fn record_each(&mut self, operands: &Operands, origin: Origin) {
        let mut start = 0;
        for (dest, &end) in operands.dests.iter().zip(&operands.ends) {
            self.recorder.record(origin, &operands.sources[start..end], &[*dest], self.site);
            start = end;
        }
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
