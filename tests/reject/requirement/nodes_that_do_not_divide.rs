//! Two nodes of a world of 3 ranks.

use quadrille::collective;

#[collective(all_gather, ranks = 2..=4, nodes = 2)]
fn direct() {
    for r in 0..RANKS {
        output[..][r] = input[r][0];
    }
}

fn main() {}
