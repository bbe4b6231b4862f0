//! Groups of one rank less than half of them: none at two ranks.

use quadrille::collective;

#[collective(all_gather, ranks = [2])]
fn grouped() {
    for r in 0..RANKS {
        let group = r / (RANKS / 2 - 1);
        output[group][r] = input[r][0];
    }
}

fn main() {}
