//! Statements that move data: their operands.

use super::{Evaluator, Run};
use crate::syntax::{Move, Operand, Ranks, Source};
use quadrille_compiler::recording::{Chunks, EveryRank};
use smallvec::SmallVec;

impl<'a> Evaluator<'a> {
    pub(super) fn movement(&mut self, moved: &'a Move) -> Run<()> {
        let dest = self.chunks_of(&moved.dest)?;
        match &moved.source {
            Source::Sum(operands) => {
                let sources: SmallVec<[Chunks; 2]> =
                    operands.iter().map(|operand| self.chunks_of(operand)).collect::<Run<_>>()?;
                self.recording.sum(&dest, moved.accumulate, &sources)
            }
            Source::Reduce(operand) => {
                let source = self.chunks_of(operand)?;
                self.recording.reduce(&dest, &source)
            }
        }
    }

    fn chunks_of(&mut self, operand: &'a Operand) -> Run<Chunks> {
        let rank = match &operand.ranks {
            Ranks::One(rank) => self.scalar(rank)?,
            Ranks::All => 0,
            Ranks::Group { value, at, .. } => {
                let at = self.base + *at as usize;
                self.store(value, at)?;
                0
            }
        };
        let start = self.scalar(&operand.start)?;
        let end = match &operand.end {
            None => start.saturating_add(1),
            Some((end, inclusive)) => self.scalar(end)?.saturating_add(i64::from(*inclusive)),
        };
        let buffer = operand.buffer;
        Ok(match operand.ranks {
            Ranks::One(_) => self.recording.chunks(buffer, rank, start, end),
            Ranks::All => self.recording.chunks(buffer, EveryRank, start, end),
            Ranks::Group { at, len, .. } => {
                let at = self.base + at as usize;
                self.recording.chunks(buffer, &self.slots[at..at + len as usize], start, end)
            }
        })
    }
}
