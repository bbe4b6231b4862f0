//! The unit is counted from the root, where it is the rank's.

use quadrille::collective;

#[collective(gather, ranks = [2, 4], chunks = 2, root = 1)]
fn direct_gather() {
    for r in 0..RANKS {
        let unit = (r - ROOT).rem_euclid(RANKS);
        output[ROOT][2 * unit..2 * unit + 2] = input[r][0..2];
    }
}

fn main() {}
