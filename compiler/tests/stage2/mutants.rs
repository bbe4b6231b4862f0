//! Mutants of schedules: one step, arrival, signal, barrier or expectation dropped, doubled or retargeted. Each is
//! rejected.

use super::{findings, interpret, lowered_as, programs, ways};
use crate::mutate::schedules::mutants;
use quadrille_compiler::program::Program;
use std::collections::BTreeMap;

#[test]
fn no_wrong_mutant_passes() {
    judge(|n, way| n == 2 || n == 3 && way == 0);
}

#[test]
#[ignore = "takes minutes: every way at every size"]
fn no_wrong_mutant_passes_at_more_sizes() {
    judge(|_, _| true);
}

/// Judges the mutants of every program at world sizes and ways, by number, that are asked for.
fn judge(asked: impl Fn(u32, usize) -> bool) {
    let mut how: BTreeMap<String, usize> = BTreeMap::new();
    for (name, sketch) in programs::all() {
        for n in 2..=4 {
            let program: Program = sketch.program(n).unwrap();
            for (_, (way, options)) in ways().into_iter().enumerate().filter(|(way, _)| asked(n, *way)) {
                for (what, mutant) in mutants(&lowered_as(&program, &options)) {
                    let verdict = match findings(&mutant, &program).first() {
                        Some(finding) => finding.check.to_string(),
                        None => {
                            // Two neighbouring steps may change places where nothing depends on their order; a wait for
                            // an earlier credit or message may be enough where the next wait covers it.
                            let agrees = interpret::agrees(&mutant, &program, 40);
                            assert_eq!(agrees, Ok(()), "{name}, {n} ranks, {way}: {what} passes");
                            let equivalent = what.contains("swap") || what.contains("credit");
                            assert!(equivalent, "{name}, {n} ranks, {way}: {what} passes");
                            "equivalent".to_owned()
                        }
                    };
                    *how.entry(verdict).or_default() += 1;
                }
            }
        }
    }
    println!("{how:?}");
    for check in ["form", "translation", "deadlock", "data-race", "slot-reuse", "entry-exit", "invariant"] {
        assert!(how.contains_key(check), "no mutant was rejected by {check}: {how:?}");
    }
}
