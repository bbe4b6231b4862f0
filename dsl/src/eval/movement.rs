//! Statements that move data, to operations.
//!
//! A statement reads all its sources before it stores. One operation does so by itself; where a statement becomes
//! several (one a destination rank), none may store what another one reads: that is `overlap`.

use super::{Evaluator, Run};
use crate::syntax::{Move, Operand, Ranks, Source};
use quadrille_compiler::diagnostic::Check;
use quadrille_compiler::ids::Buffer;
use quadrille_compiler::options::How;
use quadrille_compiler::program::StatementId;
use quadrille_compiler::record::{Origin, RawSite, RawSlice};
use std::ops;

/// Memory that statements use one after the other.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    /// The ranks that operands name.
    ranks: Vec<i64>,
    operands: Vec<Chunks>,
    sources: Vec<RawSlice>,
    dests: Vec<RawSlice>,
    /// The sources of several operations one after the other, and where those of each end.
    ends: Vec<usize>,
}

/// An operand whose parts have values.
#[derive(Clone, Debug)]
struct Chunks {
    buffer: Buffer,
    ranks: ops::Range<usize>,
    /// Whether the text names several ranks, if perhaps one by number.
    many: bool,
    start: i64,
    end: i64,
}

impl Scratch {
    fn slice(&self, chunks: &Chunks, i: usize) -> RawSlice {
        let rank = self.ranks[chunks.ranks.start + if chunks.many { i } else { 0 }];
        RawSlice { buffer: chunks.buffer, rank, start: chunks.start, end: chunks.end }
    }
}

impl<'a> Evaluator<'a> {
    pub(super) fn movement(&mut self, moved: &'a Move) -> Run<()> {
        let mut scratch = std::mem::take(&mut self.scratch);
        let result = self.movement_with(moved, &mut scratch);
        self.scratch = scratch;
        result
    }

    fn movement_with(&mut self, moved: &'a Move, scratch: &mut Scratch) -> Run<()> {
        scratch.ranks.clear();
        scratch.operands.clear();
        scratch.sources.clear();
        scratch.dests.clear();
        scratch.ends.clear();
        let dest = self.chunks_of(&moved.dest, &mut scratch.ranks)?;
        let reduce = match &moved.source {
            Source::Sum(operands) => {
                for operand in operands {
                    let chunks = self.chunks_of(operand, &mut scratch.ranks)?;
                    scratch.operands.push(chunks);
                }
                false
            }
            Source::Reduce(operand) => {
                let chunks = self.chunks_of(operand, &mut scratch.ranks)?;
                scratch.operands.push(chunks);
                true
            }
        };
        let dest_count = dest.ranks.len();
        let pairwise = !reduce && scratch.operands.iter().any(|operand| operand.many);
        let source_count = if reduce { scratch.operands[0].ranks.len() } else { scratch.operands.len() };
        // One operation reads everything and stores to all ranks if they store the same value and one rank executes.
        let same = !pairwise && !moved.accumulate;
        let split = dest.many && !(same && (source_count == 1 || self.on.is_some()));
        let origin = Origin { statement: self.statement_id(moved.id), trail: self.trail() };
        for i in 0..dest_count {
            scratch.dests.push(scratch.slice(&dest, i));
        }
        let operations = if split { dest_count } else { 1 };
        let reads = (source_count + usize::from(moved.accumulate)) * operations;
        // The two sides are equally long; what is longer than a buffer is refused, and costs no more than that.
        let length = dest.end.saturating_sub(dest.start).clamp(1, i64::from(self.longest));
        self.spend((reads + dest_count) as u64 * length as u64)?;
        for i in 0..operations {
            if moved.accumulate {
                scratch.sources.push(scratch.dests[i]);
            }
            if reduce {
                for j in 0..source_count {
                    scratch.sources.push(scratch.slice(&scratch.operands[0], j));
                }
            } else {
                for j in 0..source_count {
                    scratch.sources.push(scratch.slice(&scratch.operands[j], i));
                }
            }
            scratch.ends.push(scratch.sources.len());
        }
        if !split {
            self.recorder.record(origin, &scratch.sources, &scratch.dests, self.site());
            return Ok(());
        }
        if !self.separate(scratch, same) {
            return Ok(());
        }
        self.record_each(scratch, origin);
        Ok(())
    }

    fn record_each(&mut self, scratch: &Scratch, origin: Origin) {
        let site = self.site();
        let mut start = 0;
        for (dest, &end) in scratch.dests.iter().zip(&scratch.ends) {
            self.recorder.record(origin, &scratch.sources[start..end], &[*dest], site);
            start = end;
        }
    }

    /// Whether no operation of the statement stores what another one reads or stores; reported otherwise.
    /// `same` says that all would store the same value.
    fn separate(&mut self, scratch: &Scratch, same: bool) -> bool {
        let dests = &scratch.dests;
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
        for (i, &end) in scratch.ends.iter().enumerate() {
            for source in &scratch.sources[start..end] {
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
                    let text = show(source);
                    let message = format!(
                        "{text} is stored for rank {} and read for rank {} by one statement",
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

    fn site(&self) -> RawSite {
        RawSite { on: self.on, ..RawSite::default() }
    }

    fn statement_id(&mut self, id: u32) -> StatementId {
        let (loc, recorder) = (self.loc, &mut self.recorder);
        *self.statements[id as usize].get_or_insert_with(|| recorder.statement(loc, How::default()))
    }

    fn chunks_of(&mut self, operand: &'a Operand, ranks: &mut Vec<i64>) -> Run<Chunks> {
        let first = ranks.len();
        let many = match &operand.ranks {
            Ranks::One(rank) => {
                ranks.push(self.scalar(rank)?);
                false
            }
            Ranks::All => {
                ranks.extend(0..i64::from(self.shape.ranks));
                true
            }
            Ranks::Group { value, at, len } => {
                let at = self.base + *at as usize;
                self.store(value, at)?;
                ranks.extend_from_slice(&self.slots[at..at + *len as usize]);
                true
            }
        };
        let start = self.scalar(&operand.start)?;
        let end = match &operand.end {
            None => start.saturating_add(1),
            Some((end, inclusive)) => self.scalar(end)?.saturating_add(i64::from(*inclusive)),
        };
        Ok(Chunks { buffer: operand.buffer, ranks: first..ranks.len(), many, start, end })
    }
}

fn overlap(a: &RawSlice, b: &RawSlice) -> bool {
    a.buffer == b.buffer && a.rank == b.rank && a.start < b.end && b.start < a.end
}

fn show(slice: &RawSlice) -> String {
    let RawSlice { buffer, rank, start, end } = *slice;
    if end.saturating_sub(start) == 1 {
        format!("{buffer}[{rank}][{start}]")
    } else {
        format!("{buffer}[{rank}][{start}..{end}]")
    }
}
