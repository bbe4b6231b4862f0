//! Direct gather: for messages of every size, where the root is reached directly.
//!
//! Bytes a rank: `(N - 1) / N` of the message, the least there is. Hops: `1`.

use quadrille::collective;

/// Every rank puts its input to the root.
#[collective(gather, ranks = 2..=8)]
pub fn direct_gather() {
    for r in 0..RANKS {
        output[ROOT][r] = input[r][0];
    }
}

fn main() -> std::process::ExitCode {
    quadrille::example::run(direct_gather())
}
