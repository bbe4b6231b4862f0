//! All-pairs reduce-scatter: for messages of every size, where all ranks reach each other directly.
//!
//! Every rank reads its unit of everybody's input and combines it, in rank order and rounded once.
//!
//! Bytes a rank: `(N - 1) / N` of the message, the least there is. Hops: `1`.

use quadrille::collective;

/// Every rank combines its unit of everybody's input.
#[collective(reduce_scatter, ranks = 2..=8)]
pub fn all_pairs_reduce_scatter() {
    for r in 0..RANKS {
        output[r][0] = reduce(input[..][r]);
    }
}

fn main() -> std::process::ExitCode {
    quadrille::example::run(all_pairs_reduce_scatter())
}
