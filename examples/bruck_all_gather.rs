//! Bruck's all-gather: for small messages, where a rank reaches one other at a time, for every number of ranks.
//!
//! In each round every rank passes all it has, the units of itself and of the ranks after it, to the rank that is so
//! many before it. As every unit goes to its place at once, no rotation is needed at the end.
//!
//! Bytes a rank: `(N - 1) / N` of the message, the least there is. Hops: `floor(log2 N)`, in one round more where N is
//! no power of two.
//!
//! Source: J. Bruck et al., "Efficient algorithms for all-to-all communications in multiport message-passing
//! systems", 1997.

use quadrille::collective;

/// Rank r has the units r to r + have - 1, and passes as many as rank r - have lacks.
#[collective(all_gather, ranks = [2, 3, 4, 8], in_place)]
pub fn bruck_all_gather() {
    let mut have = 1;
    while have < RANKS {
        for r in 0..RANKS {
            let to = (r + RANKS - have) % RANKS;
            let end = r + have.min(RANKS - have);
            data[to][r..end.min(RANKS)] = data[r][r..end.min(RANKS)];
            if end > RANKS {
                data[to][0..end - RANKS] = data[r][0..end - RANKS];
            }
        }
        have *= 2;
    }
}

fn main() -> std::process::ExitCode {
    quadrille::example::run(bruck_all_gather())
}
