//! A range begins one chunk late on one side.

use quadrille::collective;

#[collective(all_reduce, ranks = [2, 4], chunks = 4, in_place)]
fn ranges() {
    for r in 1..RANKS {
        data[r][0..3] = data[0][1..4];
    }
}

fn main() {}
