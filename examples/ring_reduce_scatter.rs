//! Ring reduce-scatter: for large messages, and for links that reach only the next rank.
//!
//! It works in place: the sums on their way take the place of inputs, and a rank's own unit of `data` is its output.
//!
//! Bytes a rank: `(N - 1) / N` of the message, the least there is. Hops: `N - 1`.

use quadrille::collective;

/// The sum of unit c starts behind rank c and comes home to it after one lap.
#[collective(reduce_scatter, ranks = 2..=8, in_place)]
pub fn ring_reduce_scatter() {
    for c in 0..RANKS {
        for hop in 1..RANKS {
            let (from, to) = ((c + hop) % RANKS, (c + hop + 1) % RANKS);
            data[to][c] += data[from][c];
        }
    }
}

fn main() -> std::process::ExitCode {
    quadrille::example::run(ring_reduce_scatter())
}
