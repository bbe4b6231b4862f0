//! One-shot all-reduce: for small messages, where the time goes into hops and not into bytes.
//!
//! Every rank reads everybody's input and combines it itself, in the same order.
//!
//! Bytes a rank: `N - 1` of the message. Hops: `1`.

use quadrille::collective;

/// Every rank combines everybody's input, in the same order.
#[collective(all_reduce, ranks = 2..=8)]
pub fn one_shot_all_reduce() {
    for r in 0..RANKS {
        output[r][0] = reduce(input[..][0]);
    }
}

fn main() -> std::process::ExitCode {
    quadrille::example::run(one_shot_all_reduce())
}
