//! Bidirectional ring all-reduce: for large messages on rings whose links carry data both ways at once.
//!
//! The sum of a chunk comes together at its rank from both sides, and goes out to both sides: half of the ring's hops,
//! and half of its bytes over each direction of a link. Where the ring cannot be halved, every other chunk takes its
//! longer way on the other side.
//!
//! Bytes a rank: `2 (N - 1) / N` of the message, the least there is. Hops: `2 floor(N / 2)`.

use quadrille::collective;

/// Chunk c is summed up towards rank c from the left and from the right, and handed out the same ways.
#[collective(all_reduce, ranks = [2, 4, 8], chunks = RANKS, in_place)]
pub fn bidirectional_ring_all_reduce() {
    /// The rank that is `hops` further on than `c`; before it, where `hops` is negative.
    fn beside(c: i64, hops: i64) -> i64 {
        (c + hops).rem_euclid(RANKS)
    }

    for c in 0..RANKS {
        let right = (RANKS - 1 + c % 2) / 2;
        let left = RANKS - 1 - right;
        for hop in (0..right).rev() {
            data[beside(c, hop)][c] += data[beside(c, hop + 1)][c];
        }
        for hop in (0..left).rev() {
            data[beside(c, -hop)][c] += data[beside(c, -hop - 1)][c];
        }
        for hop in 0..right {
            data[beside(c, hop + 1)][c] = data[beside(c, hop)][c];
        }
        for hop in 0..left {
            data[beside(c, -hop - 1)][c] = data[beside(c, -hop)][c];
        }
    }
}

fn main() -> std::process::ExitCode {
    quadrille::example::run(bidirectional_ring_all_reduce())
}
