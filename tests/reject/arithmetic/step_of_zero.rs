//! A stride that is zero for two ranks.

use quadrille::collective;

#[collective(all_gather, ranks = [2, 4])]
fn strided() {
    for r in (0..RANKS).step_by(RANKS / 4) {
        output[..][r] = input[r][0];
    }
}

fn main() {}
