//! Pipelined chain broadcast: for large messages, and for links that reach only the next rank.
//!
//! Piece follows piece along the ranks: with enough pieces, every link carries data all the time.
//!
//! Bytes a rank: `1` message, the least there is. Hops: `N - 1`.

use quadrille::collective;

/// Every piece runs from the root through all ranks.
#[collective(broadcast, ranks = [2, 4, 8], params(pieces = [4, 1, 8]), chunks = pieces, in_place)]
pub fn pipelined_chain_broadcast() {
    for c in 0..pieces {
        for hop in 0..RANKS - 1 {
            data[(ROOT + hop + 1) % RANKS][c] = data[(ROOT + hop) % RANKS][c];
        }
    }
}

fn main() -> std::process::ExitCode {
    quadrille::example::run(pipelined_chain_broadcast())
}
