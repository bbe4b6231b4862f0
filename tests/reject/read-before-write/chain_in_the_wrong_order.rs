//! The chain runs from its end: every rank but the first hands on what it has not got.

use quadrille::collective;

#[collective(broadcast, ranks = [2, 4])]
fn chain_broadcast() {
    output[0][0] = input[0][0];
    for r in (1..RANKS).rev() {
        output[r][0] = output[r - 1][0];
    }
}

fn main() {}
