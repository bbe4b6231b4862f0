//! The two parts of an assignment store to the same rank when there are only two.

use quadrille::collective;

#[collective(broadcast, ranks = [2, 3], in_place)]
fn ends() {
    (data[1][0], data[RANKS - 1][0]) = (data[0][0], data[0][0]);
}

fn main() {}
