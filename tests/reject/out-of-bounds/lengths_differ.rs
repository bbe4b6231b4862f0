//! A range of three chunks into one of two.

use quadrille::collective;

#[collective(all_reduce, ranks = [2, 4], chunks = 4)]
fn ranges() {
    for r in 0..RANKS {
        output[r][0..2] = input[0][0..3];
    }
}

fn main() {}
