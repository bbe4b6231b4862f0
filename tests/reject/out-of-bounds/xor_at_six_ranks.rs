//! The partner of recursive doubling exists only for powers of two.

use quadrille::collective;

#[collective(all_reduce, ranks = [6])]
fn doubling() {
    for r in 0..RANKS {
        output[r][0] = input[r][0] + input[r ^ 2][0];
    }
}

fn main() {}
