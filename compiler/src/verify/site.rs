//! How stage 2 names steps in messages.

use super::happens_before::{Blocks, Stamp};
use crate::diagnostic::Loc;
use crate::ids::Place;
use crate::program::{OpId, Program};
use crate::schedule::{Schedule, Step};

/// What a finding needs to name places.
pub(super) struct Sites<'a> {
    pub(super) schedule: &'a Schedule,
    pub(super) program: &'a Program,
    pub(super) blocks: &'a Blocks,
}

impl Sites<'_> {
    fn step(&self, at: Stamp) -> Option<&Step> {
        let place = self.blocks.place(at.block as usize);
        self.schedule.block(place)?.steps.get(at.step as usize)
    }

    fn op(&self, at: Stamp) -> Option<OpId> {
        self.step(at)?.origin.filter(|op| (op.0 as usize) < self.program.ops.len())
    }

    /// The statement that a step carries out; else the collective's name.
    pub(super) fn loc(&self, at: Stamp) -> Loc {
        self.op(at).map_or(self.program.name_loc, |op| self.program.statement(op).loc)
    }

    /// The statement of the first move from a step on: what a wait or barrier stands before.
    pub(super) fn next_loc(&self, at: Stamp) -> Loc {
        let block = self.schedule.block(self.blocks.place(at.block as usize));
        let rest = block.map(|b| &b.steps[at.step as usize..]).unwrap_or_default();
        let ahead = rest.iter().zip(at.step..).find(|(step, _)| step.origin.is_some());
        ahead.map_or(self.program.name_loc, |(_, step)| self.loc(Stamp { step, ..at }))
    }

    /// A step by its place.
    pub(super) fn stamp(&self, place: Place, step: usize) -> Stamp {
        Stamp { block: self.blocks.number(place) as u32, step: step as u32, phase: 0 }
    }

    /// `step 3 of r0.b0 (copy data[0][1] -> data[1][1], from 16:13, c = 0, hop = 1)`.
    pub(super) fn name(&self, at: Stamp) -> String {
        let place = self.blocks.place(at.block as usize);
        let mut text = format!("step {} of {place}", at.step);
        if let Some(step) = self.step(at) {
            text.push_str(&format!(" ({}", step.action));
            if let Some(op) = self.op(at) {
                text.push_str(&format!(", from {}", self.program.at(op)));
            }
            text.push(')');
        }
        text
    }
}
