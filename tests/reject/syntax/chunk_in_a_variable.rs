//! A chunk is no number, and no variable holds one.

use quadrille::collective;

#[collective(all_reduce, ranks = [2, 4])]
fn star() {
    let sum = reduce(input[..][0]);
    output[..][0] = sum;
}

fn main() {}
