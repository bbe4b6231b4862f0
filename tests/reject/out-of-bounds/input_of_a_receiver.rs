//! In a broadcast only the root has an input.

use quadrille::collective;

#[collective(broadcast, ranks = [2, 4])]
fn chain_broadcast() {
    output[0][0] = input[0][0];
    for r in 1..RANKS {
        output[r][0] = input[r - 1][0];
    }
}

fn main() {}
