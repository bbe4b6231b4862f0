//! Collectives called otherwise than they are written: in place, or out of place.

use super::programs;
use super::reference::judge;
use super::sketch::*;
use proptest::prelude::*;
use quadrille_compiler::collective::{Collective, Evaluate};
use quadrille_compiler::diagnostic::Diagnostic;
use quadrille_compiler::program::Program;
use quadrille_compiler::program::ProgramSetting;
use quadrille_compiler::program::ids::{Buffer, Location, Rank};
use quadrille_compiler::program::kind::{Expected, Kind, Shape};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

struct Fixed(Program);

impl Evaluate for Fixed {
    fn program(&self, _: &ProgramSetting) -> Result<Program, Vec<Diagnostic>> {
        Ok(self.0.clone())
    }
}

/// The program as it is called; none where that is refused.
fn called(program: &Program, in_place: bool) -> Option<Program> {
    let shape = &program.shape;
    let collective = Collective {
        name: program.name.clone(),
        kind: shape.kind,
        in_place: shape.in_place,
        ranks: vec![shape.ranks],
        only: false,
        root: shape.root.0,
        params: Vec::new(),
        schedules: Vec::new(),
        chosen: 0,
        source: program.source.clone(),
        name_loc: program.name_loc,
        evaluate: Arc::new(Fixed(program.clone())),
    };
    collective.called(in_place).program(shape.ranks).ok()
}

/// What a program with two buffers does where they are one, taken literally: whether the outputs are right.
fn right_with_one_buffer(program: &Program) -> bool {
    type Contents = BTreeMap<(u32, u32), u64>;
    let shape = Shape { in_place: true, ..program.shape };
    if !shape.kind.has_in_place() {
        return false;
    }
    let one = |at: Location| match at.buffer {
        Buffer::Input => shape.input_location(at.rank, at.chunk),
        Buffer::Output => shape.output_location(at.rank, at.chunk),
        _ => at,
    };
    let mut held: BTreeMap<Location, Contents> = BTreeMap::new();
    for rank in (0..shape.ranks).map(Rank) {
        for chunk in 0..shape.input_chunks(rank) {
            held.insert(shape.input_location(rank, chunk), Contents::from([((rank.0, chunk), 1)]));
        }
    }
    for op in &program.ops {
        let mut stores = Vec::new();
        let places = |slices: &[quadrille_compiler::program::ids::Slice], i: u32| -> Vec<Location> {
            slices.iter().map(|slice| one(slice.at(i))).collect()
        };
        let mut stored = BTreeSet::new();
        for i in 0..op.dests[0].len {
            let mut sum = Contents::new();
            for source in places(&op.sources, i) {
                let Some(value) = held.get(&source) else { return false };
                value.iter().for_each(|(leaf, n)| *sum.entry(*leaf).or_default() += n);
            }
            for dest in places(&op.dests, i) {
                // One store a chunk, and no other chunk of the operation is read there.
                let read_elsewhere =
                    (0..op.dests[0].len).any(|j| j != i && places(&op.sources, j).contains(&dest));
                if !stored.insert(dest) || read_elsewhere {
                    return false;
                }
                stores.push((dest, sum.clone()));
            }
        }
        held.extend(stores);
    }
    shape.outputs().all(|(rank, chunk)| {
        let all = |chunk| (0..shape.ranks).map(|rank| ((rank, chunk), 1)).collect::<Contents>();
        let due = match program.expected(rank, chunk) {
            Expected::Unspecified => return true,
            Expected::Copied(leaf) => Contents::from([((leaf.rank.0, leaf.chunk), 1)]),
            Expected::Reduced { chunk } => all(chunk),
            Expected::Combined(inputs) => inputs.iter().fold(Contents::new(), |mut due, leaf| {
                *due.entry((leaf.rank.0, leaf.chunk)).or_default() += 1;
                due
            }),
        };
        held.get(&shape.output_location(rank, chunk)) == Some(&due)
    })
}

/// Checks both ways; whether the program may be called in place.
fn compare(program: &Program) -> bool {
    let mut places = vec![program.shape.in_place];
    let out = called(program, false).expect("what is in place may be called out of place");
    assert!(!out.shape.in_place && judge(&out).right(), "{out}\nof {program}");
    if program.shape.in_place {
        // And back again: no more is said but that what passes is right.
        places.extend(called(&out, true).map(|back| judge(&back).right()));
        assert!(!places.contains(&false), "{out}\nof {program}");
        return true;
    }
    let accepted = called(program, true);
    assert_eq!(accepted.is_some(), right_with_one_buffer(program), "{program}");
    accepted.inspect(|one| assert!(one.shape.in_place && judge(one).right(), "{one}")).is_some()
}

#[test]
fn right_programs() {
    let mut accepted = BTreeMap::new();
    for (name, sketch) in programs::all() {
        for ranks in 1..=5 {
            let both = compare(&sketch.program(ranks).unwrap());
            accepted.entry(name).or_insert_with(Vec::new).push(both);
        }
    }
    // One chunk is read by all and stored by all: wrong in place, but for one rank.
    assert_eq!(accepted["one-shot all-reduce"], [true, false, false, false, false]);
    assert_eq!(accepted["two-shot all-reduce"], [true; 5]);
    assert_eq!(accepted["pairwise all-to-all"], [true, false, false, false, false]);
    assert_eq!(accepted["ring all-gather"], [true; 5]);
    assert_eq!(accepted["direct gather"], [false; 5]);
    assert!(Kind::ALL.iter().all(|kind| kind.has_in_place() || *kind != Kind::AllToAll));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// Right programs of operations in random order: each rank makes its sums from inputs and from others' sums.
    #[test]
    fn random_all_reduces(
        ranks in 2..4_i64,
        in_place in any::<bool>(),
        order in Just((0..12_i64).collect::<Vec<_>>()).prop_shuffle(),
        own in prop::collection::vec(any::<bool>(), 12),
    ) {
        let program = sketch(Kind::AllReduce, &["sums", "copies"], move |r| {
            let mut done = BTreeSet::new();
            for &number in order.iter().filter(|number| **number < 2 * ranks) {
                let (rank, chunk) = (number % ranks, number / ranks);
                let source = |peer| if in_place { data(peer, chunk) } else { input(peer, chunk) };
                let dest = |peer| if in_place { data(peer, chunk) } else { output(peer, chunk) };
                match done.contains(&chunk) {
                    // The first rank sums, others copy or, where their inputs are still there, sum themselves.
                    true if in_place || own[number as usize] => {}
                    again => {
                        r.set_all(0, &[], &[dest(rank)], &each(r.n, source), Some(rank));
                        if !again {
                            done.insert(chunk);
                            for peer in (0..r.n).filter(|peer| *peer != rank) {
                                r.set(1, &[], dest(peer), &[dest(rank)]);
                            }
                        }
                    }
                }
            }
        });
        let program = if in_place { program.in_place() } else { program };
        compare(&program.chunks(|_| 2).program(ranks as u32).unwrap());
    }
}
