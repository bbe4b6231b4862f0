//! The root sends to all others and leaves its own output as it was.

use quadrille::collective;

#[collective(broadcast, ranks = [2, 4], chunks = 2)]
fn flat_broadcast() {
    for r in 1..RANKS {
        output[r][0..2] = input[0][0..2];
    }
}

fn main() {}
