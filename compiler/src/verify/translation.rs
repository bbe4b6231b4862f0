//! `translation`: the schedule does not compute its program. Its moves are replayed over the same values, in an order
//! that the waits allow; without races every such order gives the same.

use super::happens_before::{Clock, Observe, Stamp};
use super::replay::final_state;
use super::site::Sites;
use super::values::{State, ValueId, Values};
use crate::diagnostic::{Check, Diagnostic, Loc};
use crate::ids::{Location, Rank};
use crate::location::LocationTable;
use crate::program::Program;
use crate::schedule::{Action, Step};
use std::collections::BTreeMap;

/// Replays the schedule.
pub(super) struct Translation {
    values: Values,
    state: State,
    stored: LocationTable<Option<Stamp>>,
}

impl Translation {
    pub(super) fn new(program: &Program) -> Translation {
        let values = Values::new(&program.shape);
        let state = State::initial(&program.shape, &values);
        Translation { values, state, stored: LocationTable::new(&program.shape, None) }
    }

    /// Compares every output chunk with the program's: same inputs, same order and grouping. One finding a statement.
    pub(super) fn findings(mut self, sites: &Sites<'_>) -> Vec<Diagnostic> {
        let program = sites.program;
        let wanted = final_state(program, &mut self.values);
        let mut groups: BTreeMap<Loc, (Location, Option<Stamp>, usize)> = BTreeMap::new();
        for rank in (0..program.shape.ranks).map(Rank) {
            for chunk in 0..program.shape.output_chunks() {
                let at = program.shape.output_location(rank, chunk);
                if wanted.read(at) == self.state.read(at) {
                    continue;
                }
                let stored = self.stored.get_mut(at).and_then(|s| *s);
                let loc = stored.map_or(program.name_loc, |stamp| sites.loc(stamp));
                groups.entry(loc).and_modify(|(_, _, more)| *more += 1).or_insert((at, stored, 0));
            }
        }
        let finding = |(loc, (at, stored, more)): (Loc, (Location, Option<Stamp>, usize))| {
            let held = |value: Option<ValueId>| match value {
                None => "nothing".to_owned(),
                Some(value) => match self.values.content(value).leaves {
                    0 => "nothing known".to_owned(),
                    1 => "one input".to_owned(),
                    n => format!("a combination of {n} inputs"),
                },
            };
            let (is, should) = (held(self.state.read(at)), held(wanted.read(at)));
            let relation = if is == should { " in another order" } else { "" };
            let mut finding = Diagnostic::new(
                Check::Translation,
                loc,
                format!("the schedule leaves {is} in {at}, the program {should}{relation}"),
            );
            finding = match stored {
                Some(stamp) => finding.note(format!("stored last by {}", sites.name(stamp))),
                None => finding.note("no step of the schedule stores it"),
            };
            if more == 0 { finding } else { finding.note(format!("{more} more chunks likewise")) }
        };
        groups.into_iter().map(finding).collect()
    }
}

impl Observe for Translation {
    fn moved(&mut self, at: Stamp, step: &Step, _: &Clock) {
        let Action::Move { sources, dests } = &step.action else { return };
        for offset in 0..sources.first().map_or(0, |s| s.len) {
            let terms: Vec<ValueId> = sources
                .iter()
                .map(|s| self.state.read(s.at(offset)).unwrap_or(self.values.unknown()))
                .collect();
            let value = self.values.intern_sum(&terms);
            for dest in dests {
                self.state.store(dest.at(offset), value);
                if let Some(stored) = self.stored.get_mut(dest.at(offset)) {
                    *stored = Some(at);
                }
            }
        }
    }
}
