//! The sums of the ring are kept in the inputs, which are the callers'.

use quadrille::collective;

#[collective(all_reduce, ranks = [2, 4], chunks = RANKS)]
fn ring_all_reduce() {
    for c in 0..RANKS {
        for hop in 1..RANKS {
            let (from, to) = ((c + hop) % RANKS, (c + hop + 1) % RANKS);
            input[to][c] += input[from][c];
        }
        output[..][c] = input[c][c];
    }
}

fn main() {}
