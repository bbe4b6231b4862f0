//! The checks. Stage 1 judges a [`Program`], stage 2 a lowered schedule. One file a check, named after its id; beside
//! these what several need: the values of a run, its history, the collection of findings.

pub(crate) mod findings;

mod chunk_position;
mod input_overwritten;
pub(crate) mod out_of_bounds;
mod overlap;
mod unsupported;

pub mod values;

pub mod replay;

mod stores;

mod read_before_write;

mod history;
mod postcondition;

pub(crate) mod reproducible;

mod happens_before;
mod site;

mod form;

mod residency;

mod deadlock;

mod data_race;

mod slot_reuse;

mod entry_exit;

mod invariant;

mod translation;

mod stage2;

mod rolled;

pub use rolled::kernel;
pub use stage2::schedule;
pub(crate) use stage2::unordered;

use crate::diagnostic::{Check, Diagnostic};
use crate::positions::Positions;
use crate::program::Program;
use findings::{Findings, Unit};
use replay::Unwritten;
use std::collections::BTreeMap;
use std::ops::Deref;
use stores::Stores;
use values::{State, Values};

/// Evidence that a value has passed its checks: a schedule stage 2, a kernel `rolled`. Only the checks make one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified<T>(T);

impl<T> Verified<T> {
    /// For the checks alone.
    fn new(value: T) -> Verified<T> {
        Verified(value)
    }
}

impl<T> Deref for Verified<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

/// Stage 1: every check of the program; all findings, in source order. Values are judged only where the operations
/// themselves are sound.
pub fn program(program: &Program) -> Result<(), Vec<Diagnostic>> {
    judged(program).map(drop)
}

/// What the chunks of a right program hold at its end.
#[derive(Debug)]
pub(crate) struct Contents {
    pub(crate) values: Values,
    pub(crate) state: State,
}

/// As [`program`]; with what the proof rests on.
pub(crate) fn judged(program: &Program) -> Result<Contents, Vec<Diagnostic>> {
    if let Some(finding) = unsupported::check(program) {
        return Err(vec![finding]);
    }
    let mut list = operations(program).finish();
    if list.is_empty() {
        return contents(program);
    }
    if list.iter().all(|finding| finding.check == Check::ChunkPosition) && right_if_divisible(program) {
        list.iter_mut().for_each(|finding| finding.help = Some(chunk_position::HELP.to_owned()));
    }
    Err(list)
}

fn right_if_divisible(program: &Program) -> bool {
    let divisible = Program { divisible: true, ..program.clone() };
    operations(&divisible).finish().is_empty() && contents(&divisible).is_ok()
}

/// The checks of single operations.
pub(crate) fn operations(program: &Program) -> Findings {
    let mut findings = Findings::default();
    let mut positions = Positions::new(&program.shape);
    for op in &program.ops {
        let position =
            if program.divisible { None } else { chunk_position::check(&program.shape, &positions, op) };
        positions.stored(op);
        for problem in [overlap::check(op), position, input_overwritten::check(op)].into_iter().flatten() {
            let (check, at) = (problem.check, (op.statement, op.trail));
            findings.add(program, at, (check, Unit::Operation), || problem);
        }
    }
    findings
}

/// The checks of what chunks hold.
fn contents(program: &Program) -> Result<Contents, Vec<Diagnostic>> {
    let mut values = Values::new(&program.shape);
    let mut unwritten = Unwritten::default();
    let state = replay::replay(program, &mut values, &mut unwritten);
    let wrong = postcondition::wrong_chunks(program, &values, &state);
    if !unwritten.0 && wrong.is_empty() {
        let contents = Contents { values, state };
        let differing = reproducible::check(program, &contents);
        return differing.map_or(Ok(contents), |finding| Err(vec![finding]));
    }
    let stores = Stores::of(program);
    let mut findings = Findings::default();
    read_before_write::report(program, &stores, &mut findings);
    let mut list = findings.finish();
    list.extend(postcondition::findings(program, &values, wrong, &stores));
    findings::in_source_order(&mut list);
    Err(list)
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
            context.also = sizes.into_iter().map(|(size, _)| size).filter(|&size| size != shown).collect();
            context.also.dedup();
        }
        Some(shown)
    };
    merged.into_values().filter_map(largest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::{Check, Context, Loc, Position};

    fn finding(check: Check, line: u32, ranks: u32) -> Diagnostic {
        let at = |column| Position { line, column };
        Diagnostic::new(check, Loc { start: at(4), end: at(9) }, format!("seen with {ranks}"))
            .context(Context { ranks, ..Context::default() })
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
