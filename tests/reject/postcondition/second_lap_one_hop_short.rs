//! The lap that hands out stops before the last rank.

use quadrille::collective;

#[collective(all_reduce, ranks = [2, 4], chunks = RANKS, in_place)]
fn ring_all_reduce() {
    for c in 0..RANKS {
        for hop in 1..RANKS {
            let (from, to) = ((c + hop) % RANKS, (c + hop + 1) % RANKS);
            data[to][c] += data[from][c];
        }
        for hop in 0..RANKS - 2 {
            let (from, to) = ((c + hop) % RANKS, (c + hop + 1) % RANKS);
            data[to][c] = data[from][c];
        }
    }
}

fn main() {}
