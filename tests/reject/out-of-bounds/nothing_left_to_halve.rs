//! Ranges that are empty for the smallest worlds.

use quadrille::collective;

#[collective(all_reduce, ranks = [2], chunks = RANKS, in_place)]
fn quarters() {
    let quarter = RANKS / 4;
    data[0][0..quarter] += data[1][0..quarter];
}

fn main() {}
