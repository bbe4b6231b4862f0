//! Every rank stores the sum where the others are still to read.

use quadrille::collective;

#[collective(all_reduce, ranks = [2, 4], in_place)]
fn one_shot() {
    data[..][0] = reduce(data[..][0]);
}

fn main() {}
