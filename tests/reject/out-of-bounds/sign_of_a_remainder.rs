//! The neighbour below rank 0 comes out as -1: `%` keeps the sign.

use quadrille::collective;

#[collective(all_gather, ranks = [2, 4])]
fn neighbours() {
    for r in 0..RANKS {
        output[(r - 1) % RANKS][r] = input[r][0];
    }
}

fn main() {}
