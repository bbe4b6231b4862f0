//! One chunk a unit, indexed as if there were one a rank.

use quadrille::collective;

#[collective(all_reduce, ranks = [2, 4])]
fn one_shot() {
    for c in 0..RANKS {
        output[c][c] = reduce(input[..][c]);
    }
}

fn main() {}
