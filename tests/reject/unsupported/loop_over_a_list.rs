//! A `for` over an iterator of a list.

use quadrille::collective;

#[collective(all_reduce, ranks = [2, 4], in_place)]
fn star() {
    for r in [1, 2, 3].iter().rev() {
        data[0][0] += data[r][0];
    }
    data[1][0] = data[0][0];
}

fn main() {}
