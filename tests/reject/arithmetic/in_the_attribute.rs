//! Chunks that the attribute cannot count for two ranks.

use quadrille::collective;

#[collective(all_reduce, ranks = [2], chunks = 8 / (RANKS - 2))]
fn one_shot() {
    output[..][0] = reduce(input[..][0]);
}

fn main() {}
