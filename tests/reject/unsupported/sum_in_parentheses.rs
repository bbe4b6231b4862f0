//! Chunks are combined from left to right.

use quadrille::collective;

#[collective(all_reduce, ranks = [4])]
fn pairs() {
    for r in 0..RANKS {
        output[r][0] = input[0][0] + input[1][0] + (input[2][0] + input[3][0]);
    }
}

fn main() {}
