//! Pairwise all-to-all: where all ranks reach each other directly, for messages of every size.
//!
//! Every rank sends (N-1)/N of its input, the least there is, in one hop. In step s rank r sends to rank r + s, so that
//! every rank sends to one rank and receives from one rank at a time.

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
