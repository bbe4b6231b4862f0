//! The message is at rank 1, the root; rank 0 has none to hand out.

use quadrille::collective;

#[collective(broadcast, ranks = [2, 4], root = 1, in_place)]
fn flat_broadcast() {
    for r in 1..RANKS {
        data[r][0] = data[0][0];
    }
}

fn main() {}
