//! Stage 1 agrees with the brute-force reference: on every mutant of the right programs, and on random programs.

use super::programs;
use super::reference::judge;
use super::sketch::*;
use crate::mutate::programs::mutants;
use proptest::prelude::*;
use quadrille_compiler::diagnostic::{Check, Diagnostic};
use quadrille_compiler::program::Program;
use quadrille_compiler::program::ids::{Buffer, Rank};
use quadrille_compiler::program::kind::Kind;
use quadrille_compiler::values::Values;
use quadrille_compiler::values::replay::final_state;
use quadrille_compiler::verify;
use std::collections::BTreeMap;

/// Output chunks that postcondition findings on statements stand for.
fn counted(findings: &[Diagnostic]) -> usize {
    let chunks = |finding: &Diagnostic| {
        let more = &finding.context.as_ref().unwrap().more;
        1 + more.split(' ').next().and_then(|n| n.parse::<usize>().ok()).unwrap_or(0)
    };
    findings.iter().filter(|f| !f.message.contains("never stored")).map(chunks).sum()
}

/// Compares stage 1 with the reference; whether the program is right.
fn compare(program: &Program) -> bool {
    let reference = judge(program);
    let findings = verify::program(program).err().unwrap_or_default();
    let found = |checks: &[Check]| findings.iter().any(|f| checks.contains(&f.check));
    let operations = [Check::Overlap, Check::ChunkPosition, Check::InputOverwritten];
    assert_eq!(found(&operations), reference.bad_operation, "{program}");
    if !reference.bad_operation {
        assert_eq!(found(&[Check::ReadBeforeWrite]), reference.bad_read, "{program}");
        if !reference.bad_read {
            assert_eq!(found(&[Check::Postcondition]), !reference.wrong.is_empty(), "{program}");
            let stored: usize = reference.wrong.iter().filter(|place| was_stored(program, **place)).count();
            assert_eq!(counted(&findings), stored, "{program}");
            let mut values = Values::new(&program.shape);
            let state = final_state(program, &mut values);
            for (at, contents) in &reference.contents {
                let value = values.contributions(state.read(*at).unwrap());
                let value: BTreeMap<_, _> =
                    value.iter().map(|(leaf, n)| ((leaf.rank.0, leaf.chunk), *n)).collect();
                assert_eq!(value, *contents, "{at} in {program}");
            }
        }
    }
    assert_eq!(findings.is_empty(), reference.right(), "{program}");
    reference.right()
}

fn was_stored(program: &Program, (rank, chunk): (u32, u32)) -> bool {
    let at = program.shape.output_location(Rank(rank), chunk);
    program.ops.iter().flat_map(|op| &op.dests).any(|dest| dest.locations().any(|stored| stored == at))
}

#[test]
fn mutants_of_right_programs() {
    let (mut right, mut wrong) = (0, 0);
    for (name, sketch) in programs::all() {
        for ranks in 1..=4 {
            let program = sketch.program(ranks).unwrap();
            assert!(compare(&program), "{name}");
            for mutant in mutants(&program) {
                if compare(&mutant) { right += 1 } else { wrong += 1 }
            }
        }
    }
    // Both verdicts are exercised; a mutant can be right, as with a copy made twice.
    assert!(right > 100 && wrong > 1000, "{right} {wrong}");
}

/// One random operation: executed on whatever the shape has.
type RandomOp = (bool, Vec<Place>, Place);

/// Which buffer (0 the first, 1 the second, 2 scratch), rank and chunk.
type Place = (u8, u32, u32);

/// Chunks of scratch.
const SCRATCH: u32 = 2;

#[derive(Clone, Copy, Debug)]
struct World {
    kind: Kind,
    in_place: bool,
    ranks: u32,
    chunks: u32,
    root: u32,
}

fn random_program(world: World, ops: &[RandomOp]) -> Sketch {
    let ops = ops.to_vec();
    let World { kind, in_place, ranks, chunks, root } = world;
    let limit: fn(u32) -> u32 = if chunks == 1 { |_| 1 } else { |_| 2 };
    let program = sketch(kind, &["first", "second"], move |r| {
        let slice = |&(which, rank, chunk): &Place| {
            if which == 2 {
                return scratch(i64::from(rank % ranks), i64::from(chunk % SCRATCH));
            }
            let first = which == 0;
            let buffer = match (in_place, first) {
                (true, _) => Buffer::Data,
                (false, true) => Buffer::Input,
                (false, false) => Buffer::Output,
            };
            let (input, output) = kind.units(ranks);
            let units = if in_place {
                input.max(output)
            } else if first {
                input
            } else {
                output
            };
            let rank = if kind.root_only(buffer) { root } else { rank % ranks };
            let chunk = i64::from(chunk % (units * chunks));
            range(buffer, rank.into(), chunk, chunk + 1)
        };
        for (i, (second, sources, dest)) in ops.iter().enumerate() {
            let sources: Vec<_> = sources.iter().map(slice).collect();
            r.set(usize::from(*second), &[("i", i as i64)], slice(dest), &sources);
        }
    });
    let program = if in_place { program.in_place() } else { program };
    program.chunks(limit).scratch(SCRATCH).root(root)
}

fn random_op() -> impl Strategy<Value = RandomOp> {
    let buffer =
        |first, second, scratch| prop_oneof![first => Just(0_u8), second => Just(1), scratch => Just(2)];
    let slice = (buffer(60, 25, 15), 0..4_u32, 0..8_u32);
    let dest = (buffer(2, 78, 20), 0..4_u32, 0..8_u32);
    (any::<bool>(), prop::collection::vec(slice, 1..4), dest)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_programs(
        // A custom program needs promises, which these do not make.
        kind in prop::sample::select(&Kind::ALL[..Kind::ALL.len() - 1]),
        in_place in any::<bool>(),
        ranks in 1..4_u32,
        chunks in 1..3_u32,
        root in 0..4_u32,
        ops in prop::collection::vec(random_op(), 0..10),
    ) {
        let root = if kind.rooted() { root % ranks } else { 0 };
        let world = World { kind, in_place: in_place && kind.has_in_place(), ranks, chunks, root };
        compare(&random_program(world, &ops).program(ranks).unwrap());
    }

    #[test]
    fn random_edits_of_right_programs(
        which in 0..programs::all().len(),
        ranks in 1..6_u32,
        edits in prop::collection::vec(any::<prop::sample::Index>(), 1..4),
    ) {
        let mut program = programs::all()[which].1.program(ranks).unwrap();
        for edit in edits {
            let mut mutants = mutants(&program);
            if !mutants.is_empty() {
                program = mutants.swap_remove(edit.index(mutants.len()));
            }
        }
        compare(&program);
    }
}
