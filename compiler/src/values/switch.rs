//! The operations in which the switch takes part: those of statements whose transport is multimem.

use crate::options::{ScheduleOptions, Transport};
use crate::program::ids::Slice;
use crate::program::transport;
use crate::program::{Op, Program};

/// The statements in which the switch takes part.
#[derive(Debug)]
pub(crate) struct Switch {
    used: bool,
    statements: Vec<bool>,
}

impl Switch {
    /// Finds the statements, by the options of the program's statements and of the schedule.
    pub(crate) fn of(program: &Program, options: &ScheduleOptions) -> Switch {
        let multimem =
            |how| program.shape.ranks > 1 && transport::transport(options, how) == Some(Transport::Multimem);
        let statements: Vec<bool> = program.statements.iter().map(|s| multimem(&s.how)).collect();
        Switch { used: statements.contains(&true), statements }
    }

    /// Returns true if it takes part in any statement.
    pub(crate) fn used(&self) -> bool {
        self.used
    }

    fn serves(&self, op: &Op, slices: &[Slice]) -> bool {
        self.used && self.statements.get(op.statement.0 as usize) == Some(&true) && side_by_side(slices)
    }

    /// Returns true if the switch combines the operation's sources.
    pub(crate) fn reduces(&self, op: &Op) -> bool {
        self.serves(op, &op.sources)
    }

    /// Returns true if the switch stores to the operation's destinations.
    pub(crate) fn multicasts(&self, op: &Op) -> bool {
        self.serves(op, &op.dests)
    }
}

/// Returns true for several slices that are the same chunks of different ranks.
fn side_by_side(slices: &[Slice]) -> bool {
    let Some((first, others)) = slices.split_first() else { return false };
    let same = |slice: &Slice| Slice { rank: first.rank, ..*slice } == *first;
    let mut ranks: Vec<_> = slices.iter().map(|slice| slice.rank).collect();
    ranks.sort_unstable();
    ranks.dedup();
    !others.is_empty() && others.iter().all(same) && ranks.len() == slices.len()
}
