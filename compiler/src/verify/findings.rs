//! Collects problems, one a (check, statement): the first in full, the others counted.

use crate::diagnostic::{Check, Context, Diagnostic};
use crate::program::{Program, StatementId, TrailId};
use crate::words;
use rustc_hash::FxHashMap;

/// What one problem of a statement is counted in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unit {
    /// Operations: one run of the statement makes one or several.
    Operation,
    /// Chunks of the output.
    Chunk,
}

/// Problems found so far.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    entries: Vec<Entry>,
    index: FxHashMap<(Check, StatementId), usize>,
}

#[derive(Debug)]
struct Entry {
    diagnostic: Diagnostic,
    more: u64,
    unit: Unit,
}

impl Findings {
    /// Adds a problem of `statement` in iteration `trail`. `describe` is called for the first one of its check and
    /// statement only; place and context are filled in here.
    pub(crate) fn add(
        &mut self,
        program: &Program,
        (statement, trail): (StatementId, TrailId),
        (check, unit): (Check, Unit),
        describe: impl FnOnce() -> Diagnostic,
    ) {
        let next = self.entries.len();
        let at = *self.index.entry((check, statement)).or_insert(next);
        if at < next {
            self.entries[at].more += 1;
            return;
        }
        let mut diagnostic = describe();
        diagnostic.loc = Some(program.statements[statement.0 as usize].loc);
        diagnostic.context = Some(Context { iteration: program.trails.describe(trail), ..program.context() });
        self.entries.push(Entry { diagnostic, more: 0, unit });
    }

    /// Everything found, in source order.
    pub(crate) fn finish(self) -> Vec<Diagnostic> {
        let mut list: Vec<Diagnostic> = self.entries.into_iter().map(Entry::finish).collect();
        in_source_order(&mut list);
        list
    }
}

impl Entry {
    fn finish(mut self) -> Diagnostic {
        if self.more > 0
            && let Some(context) = &mut self.diagnostic.context
        {
            let noun = match self.unit {
                Unit::Operation => "more operation",
                Unit::Chunk => "more chunk",
            };
            context.more = format!("{} likewise", words::count(self.more, noun));
        }
        self.diagnostic
    }
}

/// Sorts findings as they stand in the source, several of one place by their check.
pub(crate) fn in_source_order(list: &mut [Diagnostic]) {
    list.sort_by_key(|d| (d.loc, d.check));
}
