//! Every input goes one unit too far in the outputs.

use quadrille::collective;

#[collective(all_gather, ranks = [2, 4], chunks = 2)]
fn direct_all_gather() {
    for r in 0..RANKS {
        let unit = (r + 1) % RANKS;
        output[..][2 * unit..2 * unit + 2] = input[r][0..2];
    }
}

fn main() {}
