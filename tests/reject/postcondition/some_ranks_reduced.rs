//! A list of ranks written for two ranks, run on four.

use quadrille::collective;

#[collective(all_reduce, ranks = [2, 4], chunks = 2)]
fn one_shot_all_reduce() {
    for c in 0..2 {
        for r in 0..RANKS {
            output[r][c] = reduce(input[[0, 1]][c]);
        }
    }
}

fn main() {}
