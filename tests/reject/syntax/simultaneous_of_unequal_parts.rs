//! Three chunks are stored at once, and two given.

use quadrille::collective;

#[collective(all_reduce, ranks = [3], in_place)]
fn rotate() {
    (data[0][0], data[1][0], data[2][0]) = (data[1][0], data[2][0]);
}

fn main() {}
