//! Half of one chunk is no chunk.

use quadrille::collective;

#[collective(all_reduce, ranks = [2, 4], chunks = 1, in_place)]
fn halves() {
    for r in 1..RANKS {
        data[r][0..1 / 2] = data[0][0..1 / 2];
    }
}

fn main() {}
