//! Rank 0 has no neighbour below; what is no `usize` is not wrapped.

use quadrille::collective;

#[collective(all_gather, ranks = [2, 4])]
fn neighbours() {
    for r in 0..RANKS {
        let left = (r - 1) as usize % RANKS;
        output[left][r] = input[r][0];
    }
}

fn main() {}
