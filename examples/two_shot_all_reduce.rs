//! Two-shot all-reduce: for middle-sized and large messages, where all ranks reach each other directly.
//!
//! Every rank combines one chunk of everybody's input, which it gets, and puts the sum to all.
//!
//! Bytes a rank: `2 (N - 1) / N` of the message, the least there is. Hops: `2`.

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
