//! A root other than 0 and scratch chunks, which are still to come.

use quadrille::collective;

#[collective(broadcast, ranks = [2, 4], root = 1, scratch = 2)]
fn broadcast() {
    scratch[0][0] = input[1][0];
    output[..][0] = scratch[0][0];
}

fn main() {}
