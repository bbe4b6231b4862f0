//! Programs with one operation dropped, doubled, postponed, or one of its operands moved.

use quadrille_compiler::program::Program;
use quadrille_compiler::program::ids::{Rank, Slice};

/// The slice on the next rank, and a chunk further; the same one where it would leave its buffer.
fn moved(program: &Program, slice: Slice, ranks: u32, chunks: u32) -> Slice {
    let rank = Rank((slice.rank.0 + ranks) % program.shape.ranks);
    let start = slice.start + chunks;
    let there = Slice { rank, start, ..slice };
    if there.end() <= program.shape.chunks(slice.buffer, rank) { there } else { slice }
}

/// Every program with one operation dropped, duplicated, postponed, or one of its operands moved.
pub(crate) fn mutants(program: &Program) -> Vec<Program> {
    let mut mutants = Vec::new();
    for i in 0..program.ops.len() {
        let mut push = |change: &dyn Fn(&mut Program)| {
            let mut mutant = program.clone();
            change(&mut mutant);
            mutants.push(mutant);
        };
        push(&|p| drop(p.ops.remove(i)));
        push(&|p| p.ops.insert(i, p.ops[i].clone()));
        push(&|p| p.ops.push(p.ops[i].clone()));
        push(&|p| {
            let op = p.ops.remove(i);
            p.ops.insert((i + 1).min(p.ops.len()), op);
        });
        for (ranks, chunks) in [(1, 0), (0, 1), (0, program.shape.chunks)] {
            for k in 0..program.ops[i].dests.len() {
                push(&|p| p.ops[i].dests[k] = moved(p, p.ops[i].dests[k], ranks, chunks));
            }
            for k in 0..program.ops[i].sources.len() {
                push(&|p| p.ops[i].sources[k] = moved(p, p.ops[i].sources[k], ranks, chunks));
            }
        }
    }
    mutants
}
