//! What the switch does for a program: statements whose transport is multimem.

use crate::options::{ScheduleOptions, Transport};
use crate::program::ids::Slice;
use crate::program::transport;
use crate::program::{Op, Program};

/// The statements that the switch takes part in.
#[derive(Debug)]
pub(crate) struct Switch {
    used: bool,
    statements: Vec<bool>,
}

impl Switch {
    /// As the program's statements and the schedule say.
    pub(crate) fn of(program: &Program, options: &ScheduleOptions) -> Switch {
        let multimem =
            |how| program.shape.ranks > 1 && transport::transport(options, how) == Some(Transport::Multimem);
        let statements: Vec<bool> = program.statements.iter().map(|s| multimem(&s.how)).collect();
        Switch { used: statements.contains(&true), statements }
    }

    /// Whether it takes part in any statement.
    pub(crate) fn used(&self) -> bool {
        self.used
    }

    fn serves(&self, op: &Op, slices: &[Slice]) -> bool {
        self.used && self.statements.get(op.statement.0 as usize) == Some(&true) && side_by_side(slices)
    }

    /// Whether it combines what the operation reads.
    pub(crate) fn reduces(&self, op: &Op) -> bool {
        self.serves(op, &op.sources)
    }

    /// Whether it hands out what the operation stores.
    pub(crate) fn multicasts(&self, op: &Op) -> bool {
        self.serves(op, &op.dests)
    }
}

/// Whether the slices are several, and the same chunks of different ranks.
fn side_by_side(slices: &[Slice]) -> bool {
    let Some((first, others)) = slices.split_first() else { return false };
    let same = |slice: &Slice| Slice { rank: first.rank, ..*slice } == *first;
    let mut ranks: Vec<_> = slices.iter().map(|slice| slice.rank).collect();
    ranks.sort_unstable();
    ranks.dedup();
    !others.is_empty() && others.iter().all(same) && ranks.len() == slices.len()
}
