//! Collects problems, one a (check, statement): the first in full, the others counted.

use crate::diagnostic::words;
use crate::diagnostic::{Check, Diagnostic, DiagnosticContext};
use crate::program::{Program, StatementId, TrailId};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// The things of which the problems of a statement are counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Counted {
    /// Operations: one run of the statement makes one or several.
    Operation,
    /// Chunks of the output.
    Chunk,
}

/// Problems found so far.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    entries: Vec<CountedFinding>,
    index: FxHashMap<(Check, StatementId), usize>,
}

#[derive(Debug)]
struct CountedFinding {
    diagnostic: Diagnostic,
    more: u64,
    unit: Counted,
}

impl Findings {
    /// Adds a problem of `statement` in iteration `trail`. `describe` is called for the first one of its check and
    /// statement only; place and context are filled in here.
    pub(crate) fn add(
        &mut self,
        program: &Program,
        (statement, trail): (StatementId, TrailId),
        (check, unit): (Check, Counted),
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
        diagnostic.context =
            Some(DiagnosticContext { iteration: program.trails.describe(trail), ..program.context() });
        self.entries.push(CountedFinding { diagnostic, more: 0, unit });
    }

    /// Everything found, in source order.
    pub(crate) fn finish(self) -> Vec<Diagnostic> {
        let mut list: Vec<Diagnostic> = self.entries.into_iter().map(CountedFinding::finish).collect();
        in_source_order(&mut list);
        list
    }
}

impl CountedFinding {
    fn finish(mut self) -> Diagnostic {
        if self.more > 0
            && let Some(context) = &mut self.diagnostic.context
        {
            let noun = match self.unit {
                Counted::Operation => "more operation",
                Counted::Chunk => "more chunk",
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

/// Merges the findings of several world sizes: one a (check, place), the largest failing size shown, the others
/// named in its context; in source order. Several findings that one size has with the same check and place stay
/// apart.
pub fn merge_sizes(failures: Vec<(u32, Vec<Diagnostic>)>) -> Vec<Diagnostic> {
    let mut merged: BTreeMap<_, Vec<(u32, Diagnostic)>> = BTreeMap::new();
    for (size, list) in failures {
        let mut seen: BTreeMap<_, usize> = BTreeMap::new();
        for finding in list {
            let key = (finding.loc, finding.check);
            let nth = seen.entry(key).or_insert(0);
            merged.entry((key, *nth)).or_default().push((size, finding));
            *nth += 1;
        }
    }
    let largest = |mut sizes: Vec<(u32, Diagnostic)>| {
        sizes.sort_by_key(|(size, _)| *size);
        let (_, mut shown) = sizes.pop()?;
        if let Some(context) = &mut shown.context {
            let shown = context.ranks;
            if !context.params.is_empty() {
                context.also_with = with_params(&sizes);
            }
            context.also = sizes.into_iter().map(|(size, _)| size).filter(|&size| size != shown).collect();
            context.also.dedup();
        }
        Some(shown)
    };
    merged.into_values().filter_map(largest).collect()
}

/// Names settings of a collective with parameters: the world sizes of each value, as `2, 4 with k = 3; 8 with k = 4`.
fn with_params(settings: &[(u32, Diagnostic)]) -> String {
    let mut by_params: Vec<(&str, Vec<u32>)> = Vec::new();
    for (size, finding) in settings {
        let params = finding.context.as_ref().map_or("", |context| &context.params);
        match by_params.iter_mut().find(|(known, _)| *known == params) {
            Some((_, sizes)) => sizes.push(*size),
            None => by_params.push((params, vec![*size])),
        }
    }
    let texts = by_params.into_iter().map(|(params, mut sizes)| {
        sizes.dedup();
        format!("{} with {params}", words::runs(&sizes).join(", "))
    });
    texts.collect::<Vec<_>>().join("; ")
}

/// The findings of stage 1 in one setting of a collective.
#[derive(Clone, Debug)]
pub struct SettingFindings {
    /// The world size.
    pub ranks: u32,
    /// The values of the parameters.
    pub params: Vec<i64>,
    /// The findings; empty where the program is right.
    pub list: Vec<Diagnostic>,
}

impl SettingFindings {
    /// Returns true if an `assert!` of the program excludes the setting.
    pub fn excluded(&self) -> bool {
        !self.list.is_empty() && self.list.iter().all(|finding| finding.excludes)
    }
}

/// Drops the settings that an `assert!` of the program excludes, where the world size and each value of a parameter is
/// admitted in another setting. A size or value that no setting admits was listed by mistake, and its findings stay.
pub fn without_excluded(settings: Vec<SettingFindings>) -> Vec<SettingFindings> {
    let admitted: Vec<(u32, Vec<i64>)> = settings
        .iter()
        .filter(|setting| !setting.excluded())
        .map(|setting| (setting.ranks, setting.params.clone()))
        .collect();
    let elsewhere = |setting: &SettingFindings| {
        admitted.iter().any(|(ranks, _)| *ranks == setting.ranks)
            && setting
                .params
                .iter()
                .enumerate()
                .all(|(i, value)| admitted.iter().any(|(_, params)| params[i] == *value))
    };
    settings
        .into_iter()
        .filter(|setting| setting.params.is_empty() || !setting.excluded() || !elsewhere(setting))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::{Check, DiagnosticContext, LineColumn, Loc};

    fn finding(check: Check, line: u32, ranks: u32) -> Diagnostic {
        let at = |column| LineColumn { line, column };
        Diagnostic::new(check, Loc { start: at(4), end: at(9) }, format!("seen with {ranks}"))
            .context(DiagnosticContext { ranks, ..DiagnosticContext::default() })
    }

    #[test]
    fn shows_the_largest_size_and_names_the_others() {
        let merged = merge_sizes(vec![
            (8, vec![finding(Check::Overlap, 9, 8)]),
            (2, vec![finding(Check::Overlap, 9, 2), finding(Check::Postcondition, 5, 2)]),
            (4, vec![finding(Check::Overlap, 9, 4), finding(Check::ChunkPosition, 9, 4)]),
        ]);
        let shown: Vec<_> = merged
            .iter()
            .map(|d| (d.check, d.loc.unwrap().start.line, d.context.clone().unwrap().ranks))
            .collect();
        assert_eq!(
            shown,
            [(Check::Postcondition, 5, 2), (Check::Overlap, 9, 8), (Check::ChunkPosition, 9, 4)]
        );
        assert_eq!(merged[1].context.as_ref().unwrap().also, [2, 4]);
        assert_eq!(merged[1].message, "seen with 8");
        assert!(merged[0].context.as_ref().unwrap().also.is_empty());
    }

    #[test]
    fn keeps_different_findings_of_one_place() {
        let two = |ranks| {
            let mut second = finding(Check::Syntax, 3, ranks);
            second.message = "another".to_owned();
            vec![finding(Check::Syntax, 3, ranks), second]
        };
        let merged = merge_sizes(vec![(2, two(2)), (3, two(3))]);
        let messages: Vec<_> = merged.iter().map(|d| &d.message[..]).collect();
        assert_eq!(messages, ["seen with 3", "another"]);
    }
}
