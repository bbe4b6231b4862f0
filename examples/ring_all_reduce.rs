//! Ring all-reduce: for large messages, and for links that reach only the next rank.
//!
//! Bytes a rank: `2 (N - 1) / N` of the message, the least there is. Hops: `2 (N - 1)`.
//!
//! Source: P. Patarasuk, X. Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", 2009.

use quadrille::collective;

/// One lap sums every chunk around the ring, a second lap hands the sums out.
#[collective(all_reduce, ranks = [2, 4, 8], chunks = RANKS, in_place)]
pub fn ring_all_reduce() {
    for c in 0..RANKS {
        for hop in 1..RANKS {
            let (from, to) = ((c + hop) % RANKS, (c + hop + 1) % RANKS);
            data[to][c] += data[from][c];
        }
        for hop in 0..RANKS - 1 {
            let (from, to) = ((c + hop) % RANKS, (c + hop + 1) % RANKS);
            data[to][c] = data[from][c];
        }
    }
}

fn main() -> std::process::ExitCode {
    quadrille::example::run(ring_all_reduce())
}
