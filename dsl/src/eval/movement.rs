//! Statements that move data: their operands.

use super::{Evaluator, Run};
use crate::syntax::{Move, Operand, Ranks, Source};
use quadrille_compiler::evaluate::{Chunks, EveryRank, Sources};

impl<'a> Evaluator<'a> {
    pub(super) fn movement(&mut self, moved: &'a Move) -> Run<()> {
        let (dest, sources) = self.sides(moved)?;
        self.recording.store(&dest, moved.accumulate, &sources)
    }

    pub(super) fn together(&mut self, parts: &'a [Move]) -> Run<()> {
        let parts: Vec<_> = parts.iter().map(|part| self.sides(part)).collect::<Run<_>>()?;
        self.recording.together(&parts)
    }

    pub(super) fn expect(&mut self, promise: &'a Move) -> Run<()> {
        let (dest, sources) = self.sides(promise)?;
        self.recording.expect(&dest, &sources)
    }

    pub(super) fn unspecified(&mut self, operand: &'a Operand) -> Run<()> {
        let dest = self.chunks_of(operand)?;
        self.recording.unspecified(&dest)
    }

    fn sides(&mut self, moved: &'a Move) -> Run<(Chunks, Sources)> {
        let dest = self.chunks_of(&moved.dest)?;
        let sources = match &moved.source {
            Source::Sum(operands) => {
                Sources::Sum(operands.iter().map(|operand| self.chunks_of(operand)).collect::<Run<_>>()?)
            }
            Source::Reduce(operand) => Sources::Reduce(self.chunks_of(operand)?),
        };
        Ok((dest, sources))
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
