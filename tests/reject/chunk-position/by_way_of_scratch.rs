//! A chunk of scratch is as long as what was stored there last.

use quadrille::collective;

#[collective(all_reduce, ranks = [2], chunks = 2, scratch = 1)]
fn through_scratch() {
    for r in 0..RANKS {
        scratch[r][0] = input[1 - r][0];
        output[r][1] = input[r][1] + scratch[r][0];
        output[r][0] = reduce(input[..][0]);
    }
}

fn main() {}
