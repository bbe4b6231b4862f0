//! Recursive halving-doubling all-reduce: for middle-sized and large messages, with few hops and, for powers of two,
//! the fewest bytes.
//!
//! In each round of the first half, two ranks halve between them the chunks that both still sum; the second half gives
//! back what they have summed. Ranks beyond the largest power of two P are folded in before and out after.
//!
//! Bytes a rank: `2 (P - 1) / P + min(N - P, 1)` of the message, P being the largest power of two up to N, which is the
//! least there is where P is N. Hops: `2 log2 P + 2 min(N - P, 1)`.
//!
//! Source: R. Rabenseifner, "Optimization of collective reduction operations", 2004.

use quadrille::collective;

/// Ranks that differ in one bit share the work, the highest bit first; rank r ends up with the sum of chunk r.
#[collective(all_reduce, ranks = [2, 3, 4, 8], chunks = 1 << RANKS.ilog2(), in_place)]
pub fn recursive_halving_doubling_all_reduce() {
    let power = 1 << RANKS.ilog2();
    for r in power..RANKS {
        data[r - power][0..power] += data[r][0..power];
    }
    let mut half = power / 2;
    while half > 0 {
        for r in 0..power {
            let first = r / half * half;
            data[r][first..first + half] += data[r ^ half][first..first + half];
        }
        half /= 2;
    }
    let mut have = 1;
    while have < power {
        for r in 0..power {
            let first = r / have * have;
            data[r ^ have][first..first + have] = data[r][first..first + have];
        }
        have *= 2;
    }
    for r in power..RANKS {
        data[r][0..power] = data[r - power][0..power];
    }
}

fn main() -> std::process::ExitCode {
    quadrille::example::run(recursive_halving_doubling_all_reduce())
}
