//! The chain begins at rank 1, so that what it hands on is nobody's message.

use quadrille::collective;

#[collective(broadcast, ranks = [2, 4], in_place)]
fn chain_broadcast() {
    for r in 2..RANKS {
        data[r][0] = data[r - 1][0];
    }
}

fn main() {}
