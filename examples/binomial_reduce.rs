//! Binomial reduce: for small messages, where a rank reaches one other at a time.
//!
//! In place: the sums on their way take the place of inputs.
//!
//! Bytes a rank: `ceil(log2 N)` of the message. Hops: `floor(log2 N)`, in one round more where N is no power of two.

use quadrille::collective;

/// In each round every other rank that still takes part hands its sum on.
#[collective(reduce, ranks = 2..=8, in_place)]
pub fn binomial_reduce() {
    let mut reach = 1;
    while reach < RANKS {
        for r in (0..RANKS - reach).step_by(2 * reach) {
            data[(ROOT + r) % RANKS][0] += data[(ROOT + r + reach) % RANKS][0];
        }
        reach *= 2;
    }
}

fn main() -> std::process::ExitCode {
    quadrille::example::run(binomial_reduce())
}
