//! All ranks add rank 0's chunk, which rank 0 changes meanwhile.

use quadrille::collective;

#[collective(all_reduce, ranks = [2], in_place)]
fn star() {
    data[..][0] += data[0][0];
}

fn main() {}
