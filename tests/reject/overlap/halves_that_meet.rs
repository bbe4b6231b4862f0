//! Two halves of five chunks share the middle one.

use quadrille::collective;

#[collective(all_reduce, ranks = [2], chunks = 5, divisible, in_place)]
fn halves() {
    for r in 0..RANKS {
        data[r][0..3] += data[r][2..5];
    }
}

fn main() {}
