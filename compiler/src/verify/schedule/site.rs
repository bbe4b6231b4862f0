//! How stage 2 names steps in messages.

use super::happens_before::{BlockNumbers, StepStamp};
use crate::diagnostic::Loc;
use crate::program::ids::BlockId;
use crate::program::{OpId, Program};
use crate::schedule::{Action, Block, Schedule, Step};

/// The means to name steps in findings.
pub(super) struct Sites<'a> {
    pub(super) schedule: &'a Schedule,
    pub(super) program: &'a Program,
    pub(super) blocks: &'a BlockNumbers,
}

impl Sites<'_> {
    /// The block that a step is of.
    pub(super) fn place(&self, at: StepStamp) -> BlockId {
        self.blocks.place(at.block as usize)
    }

    fn block(&self, at: StepStamp) -> Option<&Block> {
        self.schedule.block(self.place(at))
    }

    fn step(&self, at: StepStamp) -> Option<&Step> {
        self.block(at)?.steps.get(at.step as usize)
    }

    /// The operation that a step carries out, if known.
    pub(super) fn op(&self, at: StepStamp) -> Option<OpId> {
        self.step(at)?.origin.filter(|op| (op.0 as usize) < self.program.ops.len())
    }

    /// The statement that a step carries out; else the collective's name.
    pub(super) fn loc(&self, at: StepStamp) -> Loc {
        self.op(at).map_or(self.program.name_loc, |op| self.program.statement(op).loc)
    }

    /// The first move of the block from a step on that carries out a known operation.
    fn next_move(&self, at: StepStamp) -> Option<StepStamp> {
        let end = self.block(at)?.steps.len() as u32;
        (at.step..end).map(|step| StepStamp { step, ..at }).find(|&at| self.op(at).is_some())
    }

    /// The last such move up to a step.
    fn last_move(&self, at: StepStamp) -> Option<StepStamp> {
        (0..=at.step).rev().map(|step| StepStamp { step, ..at }).find(|&at| self.op(at).is_some())
    }

    /// The statement that a step serves: that of a move, the one that a wait stands before, or a signal after; else
    /// the collective's name.
    pub(super) fn served(&self, at: StepStamp) -> Loc {
        let origin = match self.step(at).map(|step| &step.action) {
            Some(Action::Wait(_)) => self.next_move(at),
            Some(Action::Signal(_)) => self.last_move(at),
            _ => Some(at),
        };
        origin.map_or(self.program.name_loc, |at| self.loc(at))
    }

    /// The step of the block that signals `waiter` after a move, with no barrier in between: some threads may still
    /// be moving.
    pub(super) fn hasty_signal(&self, at: StepStamp, waiter: impl Fn(BlockId) -> bool) -> Option<u32> {
        let later = self.block(at)?.steps.iter().zip(0..).skip(at.step as usize + 1);
        let mut phase = later.take_while(|(s, _)| !matches!(s.action, Action::Wait(_) | Action::BlockSync));
        let signals = |step: &Step| match &step.action {
            Action::Signal(counters) => counters.iter().any(|counter| waiter(counter.waiter)),
            _ => false,
        };
        phase.find(|(step, _)| signals(step)).map(|(_, number)| number)
    }

    /// A step by its place.
    pub(super) fn stamp(&self, place: BlockId, step: usize) -> StepStamp {
        StepStamp { block: self.blocks.number(place) as u32, step: step as u32, phase: 0 }
    }

    /// `step 3 of r0.b0, which is ..`; see [`Sites::what`].
    pub(super) fn name(&self, at: StepStamp) -> String {
        format!("step {} of {}, which is {},", at.step, self.place(at), self.what(at))
    }

    /// Describes a step and its origin: `copy data[0][1] -> data[1][1]` from 16:13 (c = 0, hop = 1). A wait stands before a
    /// statement, a signal after one.
    pub(super) fn what(&self, at: StepStamp) -> String {
        let Some(step) = self.step(at) else { return "no step".to_owned() };
        let (word, origin) = match &step.action {
            Action::Move { .. } => ("from", Some(at)),
            Action::Wait(_) => ("before", self.next_move(at)),
            Action::Signal(_) => ("after", self.last_move(at)),
            Action::BlockSync => ("", None),
        };
        match origin.and_then(|at| self.op(at)) {
            Some(op) => format!("`{}` {word} {}", step.action, self.program.at(op)),
            None => format!("`{}`", step.action),
        }
    }
}
