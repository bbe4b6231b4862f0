//! Binomial broadcast: for small messages, where a rank reaches one other at a time.
//!
//! The ranks that have the message double with every hop; the root sends in every round.
//!
//! Bytes a rank: `ceil(log2 N)` of the message. Hops: `floor(log2 N)`, in one round more where N is no power of two.

use quadrille::collective;

/// In each round every rank that has the message sends it `have` ranks further on.
#[collective(broadcast, ranks = 2..=8)]
pub fn binomial_broadcast() {
    output[ROOT][0] = input[ROOT][0];
    let mut have = 1;
    while have < RANKS {
        for r in 0..have.min(RANKS - have) {
            output[(ROOT + r + have) % RANKS][0] = output[(ROOT + r) % RANKS][0];
        }
        have *= 2;
    }
}

fn main() -> std::process::ExitCode {
    quadrille::example::run(binomial_broadcast())
}
