//! The root is counted from 1.

use quadrille::collective;

#[collective(broadcast, ranks = [2, 4, 8], root = 4)]
fn broadcast() {
    output[..][0] = input[ROOT][0];
}

fn main() {}
