//! Binomial tree all-reduce: for small messages, where a rank reaches one other at a time, for every number of ranks.
//!
//! The sums go up a tree to rank 0, the result comes down it. Rank 0 has a part in every round: for larger messages see
//! the double binary tree.
//!
//! Bytes a rank: `ceil(log2 N)` of the message. Hops: `2 floor(log2 N)`, in two rounds more where N is no
//! power of two.

use quadrille::collective;

/// In each round every other rank that still takes part hands its sum on; then the same rounds backwards.
#[collective(all_reduce, ranks = [2, 3, 4, 8], in_place)]
pub fn binomial_tree_all_reduce() {
    let mut reach = 1;
    while reach < RANKS {
        for r in (0..RANKS - reach).step_by(2 * reach) {
            data[r][0] += data[r + reach][0];
        }
        reach *= 2;
    }
    while reach > 1 {
        reach /= 2;
        for r in (0..RANKS - reach).step_by(2 * reach) {
            data[r + reach][0] = data[r][0];
        }
    }
}

fn main() -> std::process::ExitCode {
    quadrille::example::run(binomial_tree_all_reduce())
}
