//! Chain reduce: for large messages, and for links that reach only the next rank.
//!
//! Piece follows piece along the ranks to the root: with enough pieces, every link carries data all the time. Inputs
//! stay as they are; sums on their way lie in scratch.
//!
//! Bytes a rank: `1` message, the least there is. Hops: `N - 1`.

use quadrille::collective;

/// Every piece is summed up from the rank behind the root, through all ranks, to the root.
#[collective(reduce, ranks = [2, 4, 8], params(pieces = [4, 1, 8]), chunks = pieces, scratch = pieces)]
pub fn chain_reduce() {
    /// The rank that is `hops` behind the root.
    fn behind(hops: i64) -> i64 {
        (ROOT + hops) % RANKS
    }

    for c in 0..pieces {
        if RANKS == 1 {
            output[ROOT][c] = input[ROOT][c];
        } else if RANKS == 2 {
            output[ROOT][c] = input[ROOT][c] + input[behind(1)][c];
        } else {
            scratch[behind(RANKS - 2)][c] = input[behind(RANKS - 2)][c] + input[behind(RANKS - 1)][c];
            for hops in (1..RANKS - 2).rev() {
                scratch[behind(hops)][c] = input[behind(hops)][c] + scratch[behind(hops + 1)][c];
            }
            output[ROOT][c] = input[ROOT][c] + scratch[behind(1)][c];
        }
    }
}

fn main() -> std::process::ExitCode {
    quadrille::example::run(chain_reduce())
}
