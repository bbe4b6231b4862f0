//! What a program computes, independently of the checks: its operations run over numbers.

use quadrille_compiler::program::Program;
use quadrille_compiler::program::ids::Location;
use quadrille_compiler::program::kind::{Contribution, Expected};
use std::collections::HashMap;

/// A number for each rank's input chunk, such that no two sums of different ones are likely to be equal.
fn contribution(Contribution { rank, chunk }: Contribution) -> u64 {
    let mut x = (u64::from(rank.0) << 32 | u64::from(chunk)).wrapping_add(0x9e37_79b9_7f4a_7c15);
    for shift in [30, 27, 31] {
        x = (x ^ (x >> shift)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    }
    x
}

/// Runs the operations one after the other; what an output chunk should hold and does not.
pub(crate) fn wrong(program: &Program) -> Vec<String> {
    let shape = &program.shape;
    let ranks = || (0..shape.ranks).map(quadrille_compiler::program::ids::Rank);
    let mut values: HashMap<Location, u64> = HashMap::new();
    for &buffer in shape.buffers() {
        for rank in ranks() {
            for chunk in 0..shape.chunks(buffer, rank) {
                let at = Location { buffer, rank, chunk };
                if let Some(initial) = shape.initial(at) {
                    values.insert(at, contribution(initial));
                }
            }
        }
    }
    for op in &program.ops {
        let len = op.dests[0].len;
        let results: Vec<Option<u64>> = (0..len)
            .map(|i| {
                op.sources
                    .iter()
                    .map(|source| values.get(&source.at(i)).copied())
                    .try_fold(0u64, |sum, value| Some(sum.wrapping_add(value?)))
            })
            .collect();
        for dest in &op.dests {
            for (i, result) in results.iter().enumerate() {
                match result {
                    Some(result) => values.insert(dest.at(i as u32), *result),
                    None => values.remove(&dest.at(i as u32)),
                };
            }
        }
    }
    let mut wrong = Vec::new();
    let sum = |inputs: &mut dyn Iterator<Item = Contribution>| {
        inputs.map(contribution).fold(0u64, u64::wrapping_add)
    };
    for (rank, chunk) in shape.outputs() {
        let expected = match program.expected(rank, chunk) {
            Expected::Copied(from) => contribution(from),
            Expected::Reduced { chunk } => sum(&mut ranks().map(|rank| Contribution { rank, chunk })),
            Expected::Combined(inputs) => sum(&mut inputs.iter().copied()),
            Expected::Unspecified => continue,
        };
        let at = shape.output_location(rank, chunk);
        if values.get(&at) != Some(&expected) {
            wrong.push(format!("{at} with {shape}"));
        }
    }
    wrong
}
