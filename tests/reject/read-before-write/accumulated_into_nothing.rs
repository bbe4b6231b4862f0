//! `+=` into an output that holds nothing yet.

use quadrille::collective;

#[collective(all_reduce, ranks = [2, 4])]
fn one_shot() {
    for r in 0..RANKS {
        for s in 0..RANKS {
            output[r][0] += input[s][0];
        }
    }
}

fn main() {}
