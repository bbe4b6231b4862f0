//! Chunks of different position are combined.

use quadrille::collective;

#[collective(all_reduce, ranks = [2, 4], chunks = RANKS, in_place)]
fn ring() {
    for c in 0..RANKS {
        data[c][c] += data[(c + 1) % RANKS][(c + 1) % RANKS];
    }
}

fn main() {}
