//! All-pairs all-gather: for messages of every size, where all ranks reach each other directly.
//!
//! Every rank puts its input to all others, in step s to the rank that is s further on, so that every rank sends to
//! one rank and receives from one rank at a time.
//!
//! Bytes a rank: `(N - 1) / N` of the message, the least there is. Hops: `1`.

use quadrille::collective;

/// Step by step, every rank's input goes to the rank that is `shift` further on.
#[collective(all_gather, ranks = 2..=8)]
pub fn all_pairs_all_gather() {
    for shift in 0..RANKS {
        for r in 0..RANKS {
            output[(r + shift) % RANKS][r] = input[r][0];
        }
    }
}

fn main() -> std::process::ExitCode {
    quadrille::example::run(all_pairs_all_gather())
}
