//! Recursive halving reduce-scatter: for small and middle-sized messages, where a rank reaches one other at a time, on
//! a power of two of ranks.
//!
//! Bytes a rank: `(N - 1) / N` of the message, the least there is. Hops: `log2 N`.
//!
//! Source: R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of collective communication operations in MPICH", 2005.

use quadrille::collective;

/// Ranks that differ in one bit halve between them the units that both still sum, the highest bit first.
#[collective(reduce_scatter, ranks = [2, 4, 8], in_place)]
pub fn recursive_halving_reduce_scatter() {
    assert!(RANKS.is_power_of_two(), "{RANKS} ranks are not a power of two");
    let mut half = RANKS / 2;
    while half > 0 {
        for r in 0..RANKS {
            let first = r / half * half;
            data[r][first..first + half] += data[r ^ half][first..first + half];
        }
        half /= 2;
    }
}

fn main() -> std::process::ExitCode {
    quadrille::example::run(recursive_halving_reduce_scatter())
}
