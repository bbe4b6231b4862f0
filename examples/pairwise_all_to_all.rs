//! Pairwise all-to-all: for messages of every size, where all ranks reach each other directly.
//!
//! In step s rank r sends to the rank that is s further on, so that every rank sends to one rank and receives from one
//! rank at a time.
//!
//! Bytes a rank: `(N - 1) / N` of the message, the least there is. Hops: `1`.

use quadrille::collective;

/// Step by step, every rank sends to the rank that is `shift` further on.
#[collective(all_to_all, ranks = 2..=8)]
pub fn pairwise_all_to_all() {
    for shift in 0..RANKS {
        for r in 0..RANKS {
            let peer = (r + shift) % RANKS;
            output[peer][r] = input[r][peer];
        }
    }
}

fn main() -> std::process::ExitCode {
    quadrille::example::run(pairwise_all_to_all())
}
