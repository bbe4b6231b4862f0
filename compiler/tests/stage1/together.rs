//! Simultaneous assignment and promises agree with what they are to mean, by brute force.

use super::sketch::*;
use proptest::prelude::*;
use quadrille_compiler::diagnostic::Check;
use quadrille_compiler::program::Program;
use quadrille_compiler::program::kind::{Contribution, Kind};
use quadrille_compiler::values::Values;
use quadrille_compiler::values::replay::final_state;
use quadrille_compiler::verify;
use std::collections::BTreeMap;

const RANKS: u32 = 3;

/// A chunk of `data`: rank, chunk.
type Chunk = (i64, i64);

/// What it holds: inputs in the order in which they are combined, with their grouping as text.
type Held = BTreeMap<Chunk, String>;

fn place(chunk: &Chunk) -> quadrille_compiler::program::RawSlice {
    data(chunk.0, chunk.1)
}

/// What the program leaves in `data`.
fn held(program: &Program) -> Held {
    let mut values = Values::new(&program.shape);
    let state = final_state(program, &mut values);
    fn text(values: &Values, value: quadrille_compiler::values::ValueId) -> String {
        use quadrille_compiler::values::ValueNode;
        match values.node(value) {
            ValueNode::Leaf(Contribution { rank, chunk }) => format!("{}.{chunk}", rank.0),
            ValueNode::Sum(terms) => {
                let terms: Vec<_> = terms.iter().map(|term| text(values, term)).collect();
                format!("({})", terms.join("+"))
            }
            ValueNode::Unknown => "?".to_owned(),
        }
    }
    let mut held = Held::new();
    for rank in 0..i64::from(RANKS) {
        for chunk in 0..2 {
            let at = quadrille_compiler::program::ids::Location {
                buffer: quadrille_compiler::program::ids::Buffer::Data,
                rank: quadrille_compiler::program::ids::Rank(rank as u32),
                chunk: chunk as u32,
            };
            held.insert((rank, chunk), text(&values, state.read(at).unwrap()));
        }
    }
    held
}

fn chunks() -> impl Strategy<Value = Chunk> {
    (0..i64::from(RANKS), 0..2_i64)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn everything_is_read_before_anything_is_stored(
        statements in prop::collection::vec(
            prop::collection::vec((prop::collection::vec(chunks(), 1..3), chunks()), 1..5),
            1..4,
        ),
    ) {
        let twice = statements.iter().any(|parts| {
            parts.iter().enumerate().any(|(i, (_, dest))| parts[..i].iter().any(|(_, other)| other == dest))
        });
        let mut expected: Held =
            (0..3).flat_map(|r| (0..2).map(move |c| ((r, c), format!("{r}.{c}")))).collect();
        for parts in &statements {
            let before = expected.clone();
            for (sources, dest) in parts {
                let terms: Vec<_> = sources.iter().map(|source| before[source].clone()).collect();
                let value = if terms.len() == 1 { terms[0].clone() } else { format!("({})", terms.join("+")) };
                expected.insert(*dest, value);
            }
        }
        // Any two chunks may meet.
        let program = sketch(Kind::AllReduce, &["(p, q) = (e, f);"], move |r| {
            for parts in &statements {
                let parts: Vec<_> = parts
                    .iter()
                    .map(|(sources, dest)| (sources.iter().map(place).collect(), vec![place(dest)]))
                    .collect();
                r.together(0, &parts);
            }
        });
        match program.in_place().divisible().chunks(|_| 2).program(RANKS) {
            Ok(program) => {
                prop_assert!(!twice);
                prop_assert_eq!(held(&program), expected, "{}", program);
            }
            Err(findings) => {
                prop_assert!(twice && findings.iter().all(|finding| finding.check == Check::Overlap));
            }
        }
    }

    /// A chunk that holds what was promised passes, one that does not is found; so is one that is not spoken of.
    #[test]
    fn promises(
        sums in prop::collection::vec(prop::collection::vec(0..i64::from(RANKS), 1..4), 3),
        promised in prop::collection::vec(prop::option::of(prop::collection::vec(0..i64::from(RANKS), 0..4)), 3),
    ) {
        let sorted = |list: &[i64]| {
            let mut list = list.to_vec();
            list.sort();
            list
        };
        let wrong = |(sum, promise): (&Vec<i64>, &Option<Vec<i64>>)| {
            promise.as_ref().is_some_and(|promise| !promise.is_empty() && sorted(promise) != sorted(sum))
        };
        let silent = promised.iter().any(Option::is_none);
        let wrong = sums.iter().zip(&promised).filter(|pair| wrong(*pair)).count();
        let program = sketch(Kind::Custom, &["output[r][0] = ..;", "expect!(..);"], move |r| {
            for (rank, (sum, promise)) in (0..).zip(sums.iter().zip(&promised)) {
                let inputs = |ranks: &[i64]| ranks.iter().map(|&rank| input(rank, 0)).collect::<Vec<_>>();
                r.set(0, &[("r", rank)], output(rank, 0), &inputs(sum));
                if let Some(promise) = promise {
                    r.promise(1, output(rank, 0), &inputs(promise));
                }
            }
        });
        match program.program(RANKS) {
            Ok(program) => {
                prop_assert!(!silent);
                let findings = verify::program(&program).err().unwrap_or_default();
                prop_assert!(findings.iter().all(|finding| finding.check == Check::Postcondition));
                let more = |finding: &quadrille_compiler::diagnostic::Diagnostic| {
                    let more = &finding.context.as_ref().unwrap().more;
                    1 + more.split(' ').next().and_then(|n| n.parse::<usize>().ok()).unwrap_or(0)
                };
                prop_assert_eq!(findings.iter().map(more).sum::<usize>(), wrong, "{}", program);
            }
            Err(findings) => {
                prop_assert!(silent && findings.iter().all(|finding| finding.check == Check::Requirement));
            }
        }
    }
}
