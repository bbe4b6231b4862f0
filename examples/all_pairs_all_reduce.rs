//! All-pairs all-reduce: for small and middle-sized messages, where all ranks reach each other directly.
//!
//! As the two-shot, but nothing is read from another rank: every rank puts its chunks into their owners' scratch, where
//! they are combined as they come, and the owners put the sums to all. A put crosses a link once, a get twice (there
//! as a request, back as data).
//!
//! Bytes a rank: `2 (N - 1) / N` of the message, the least there is. Hops: `2`.
//!
//! Source: M. Cowan et al., "MSCCLang: Microsoft Collective Communication Language", 2023.

use quadrille::collective;

/// Rank c gets all chunks c put, combines them, and puts the sum to all. In step s rank r puts to rank r + s.
#[collective(all_reduce, ranks = [2, 4, 8], chunks = RANKS, scratch = RANKS, in_place)]
pub fn all_pairs_all_reduce() {
    for shift in 1..RANKS {
        for r in 0..RANKS {
            let owner = (r + shift) % RANKS;
            scratch[owner][r] = data[r][owner];
        }
    }
    for owner in 0..RANKS {
        for shift in 1..RANKS {
            data[owner][owner] += scratch[owner][(owner + RANKS - shift) % RANKS];
        }
    }
    for shift in 1..RANKS {
        for owner in 0..RANKS {
            data[(owner + shift) % RANKS][owner] = data[owner][owner];
        }
    }
}

fn main() -> std::process::ExitCode {
    quadrille::example::run(all_pairs_all_reduce())
}
