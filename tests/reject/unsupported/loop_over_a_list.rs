//! A `for` over anything but a range.

use quadrille::collective;

#[collective(all_reduce, ranks = [2, 4], in_place)]
fn star() {
    for r in [1, 2, 3] {
        data[0][0] += data[r][0];
    }
    data[1][0] = data[0][0];
}

fn main() {}
