//! Recursive doubling all-gather: for small and middle-sized messages, where a rank reaches one other at a time, on
//! a power of two of ranks.
//!
//! For other numbers of ranks see Bruck's.
//!
//! Bytes a rank: `(N - 1) / N` of the message, the least there is. Hops: `log2 N`.
//!
//! Source: R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of collective communication operations in MPICH", 2005.

use quadrille::collective;

/// Ranks that differ in one bit exchange all they have, the lowest bit first, so that it is a range.
#[collective(all_gather, ranks = [2, 4, 8], in_place)]
pub fn recursive_doubling_all_gather() {
    assert!(RANKS.is_power_of_two(), "{RANKS} ranks are not a power of two");
    let mut have = 1;
    while have < RANKS {
        for r in 0..RANKS {
            let first = r / have * have;
            data[r ^ have][first..first + have] = data[r][first..first + have];
        }
        have *= 2;
    }
}

fn main() -> std::process::ExitCode {
    quadrille::example::run(recursive_doubling_all_gather())
}
