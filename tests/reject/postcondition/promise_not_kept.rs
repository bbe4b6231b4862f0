//! All-to-next, which promises what rank 0 does not get.

use quadrille::collective;

#[collective(custom, ranks = [2, 4])]
fn all_to_next() {
    for r in 0..RANKS {
        expect!(output[r][0] == input[(r + RANKS - 1) % RANKS][0]);
    }
    output[0][0] = input[0][0];
    for r in 1..RANKS {
        output[r][0] = input[r - 1][0];
    }
}

fn main() {}
