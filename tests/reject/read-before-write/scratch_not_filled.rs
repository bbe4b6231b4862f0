//! What is read from scratch at the end was put there for one rank alone.

use quadrille::collective;

#[collective(all_reduce, ranks = [2], scratch = 1)]
fn through_scratch() {
    scratch[1][0] = input[0][0];
    for r in 0..RANKS {
        output[r][0] = input[r][0] + scratch[r][0];
    }
}

fn main() {}
