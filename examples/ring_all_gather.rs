//! Ring all-gather: for large messages, and for links that reach only the next rank.
//!
//! Bytes a rank: `(N - 1) / N` of the message, the least there is. Hops: `N - 1`.

use quadrille::collective;

/// Every rank's input travels once around the ring.
#[collective(all_gather, ranks = 2..=8)]
pub fn ring_all_gather() {
    for r in 0..RANKS {
        output[r][r] = input[r][0];
        for hop in 0..RANKS - 1 {
            let (from, to) = ((r + hop) % RANKS, (r + hop + 1) % RANKS);
            output[to][r] = output[from][r];
        }
    }
}

fn main() -> std::process::ExitCode {
    quadrille::example::run(ring_all_gather())
}
