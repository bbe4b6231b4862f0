//! Two-shot all-reduce: for middle-sized messages, where all ranks reach each other directly.
//!
//! Every rank combines one chunk of everybody's input and stores the sum to all: 2(N-1)/N of the message over every
//! rank's links, the least there is, in two hops.

use quadrille::collective;

/// Rank c combines chunk c and hands the sum out.
#[collective(all_reduce, ranks = 2..=8, chunks = RANKS)]
pub fn two_shot_all_reduce() {
    for c in 0..RANKS {
        #[on(c)]
        output[..][c] = reduce(input[..][c]);
    }
}

fn main() -> std::process::ExitCode {
    quadrille::example::run(two_shot_all_reduce())
}
