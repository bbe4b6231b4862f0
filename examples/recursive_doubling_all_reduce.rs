//! Recursive doubling all-reduce: for small messages, where a rank reaches one other at a time.
//!
//! In each round two ranks exchange all they have, and what they have covers twice as many ranks. Ranks beyond the
//! largest power of two P let a partner take part for them. All ranks get the same bits.
//!
//! Bytes a rank: `log2 P + min(N - P, 1)` of the message, P being the largest power of two up to N. Hops:
//! `log2 P + ceil(2 (N - P) / P)`.
//!
//! Source: R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of collective communication operations in MPICH", 2005.

use quadrille::collective;

/// Round by round, ranks that differ in one bit of their number exchange their sums.
#[collective(all_reduce, ranks = [2, 3, 4, 8], in_place)]
pub fn recursive_doubling_all_reduce() {
    let power = 1 << RANKS.ilog2();
    for r in power..RANKS {
        data[r - power][0] += data[r][0];
    }
    let mut distance = 1;
    while distance < power {
        for r in 0..power {
            let peer = r ^ distance;
            if r < peer {
                (data[r][0], data[peer][0]) = (data[r][0] + data[peer][0], data[r][0] + data[peer][0]);
            }
        }
        distance *= 2;
    }
    for r in power..RANKS {
        data[r][0] = data[r - power][0];
    }
}

fn main() -> std::process::ExitCode {
    quadrille::example::run(recursive_doubling_all_reduce())
}
