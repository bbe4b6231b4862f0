//! Scatter and all-gather broadcast: for large messages, where all ranks reach each other directly.
//!
//! The root cuts the message among the other ranks, who hand their chunks to each other: nobody sends or receives more
//! than the message once.
//!
//! Bytes a rank: `1` message, the least there is. Hops: `min(N - 1, 2)`.
//!
//! Source: the scheme of M. Barnett et al., "Interprocessor collective communication library (InterCom)", 1994.

use quadrille::collective;

/// Chunk c goes to the rank that is c + 1 behind the root, and from there to all who are no root.
#[collective(broadcast, ranks = [2, 4, 8], chunks = (RANKS - 1).max(1), in_place)]
pub fn scatter_all_gather_broadcast() {
    for c in 0..RANKS - 1 {
        data[(ROOT + 1 + c) % RANKS][c] = data[ROOT][c];
    }
    for shift in 1..RANKS - 1 {
        for c in 0..RANKS - 1 {
            let to = (c + shift) % (RANKS - 1);
            data[(ROOT + 1 + to) % RANKS][c] = data[(ROOT + 1 + c) % RANKS][c];
        }
    }
}

fn main() -> std::process::ExitCode {
    quadrille::example::run(scatter_all_gather_broadcast())
}
