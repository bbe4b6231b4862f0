//! Direct scatter: for messages of every size, where the root reaches all ranks directly.
//!
//! Bytes a rank: `(N - 1) / N` of the message, the least there is. Hops: `1`.

use quadrille::collective;

/// The root puts every rank's unit to it.
#[collective(scatter, ranks = 2..=8)]
pub fn direct_scatter() {
    for r in 0..RANKS {
        output[r][0] = input[ROOT][r];
    }
}

fn main() -> std::process::ExitCode {
    quadrille::example::run(direct_scatter())
}
