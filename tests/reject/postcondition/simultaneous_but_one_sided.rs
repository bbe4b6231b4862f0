//! Both ranks of a pair are stored at once, but one of them only copies.

use quadrille::collective;

#[collective(all_reduce, ranks = [2], in_place)]
fn pair() {
    (data[0][0], data[1][0]) = (data[0][0] + data[1][0], data[0][0]);
}

fn main() {}
