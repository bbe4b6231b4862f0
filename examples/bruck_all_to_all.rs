//! Bruck's all-to-all: for very small messages on many ranks, where a rank reaches one other at a time.
//!
//! A unit goes the way to its destination in steps of powers of two, one for each bit of the distance; in each round a
//! rank sends to one other all units whose distance has the round's bit.
//!
//! Bytes a rank: `ones(N) / N` of the message, ones(N) being the ones in the binary numbers 1 to N - 1: half of log2 N
//! messages for a power of two. Hops: `floor(log2 N)`, in one round more where N is no power of two.
//!
//! Source: J. Bruck et al., "Efficient algorithms for all-to-all communications in multiport message-passing
//! systems", 1997.

use quadrille::collective;

/// A unit on its way lies in one of two chunks of scratch for its distance, in turn, as in every round a rank sends
/// one and receives another.
#[collective(all_to_all, ranks = [2, 3, 4, 8], scratch = 2 * RANKS)]
pub fn bruck_all_to_all() {
    for r in 0..RANKS {
        output[r][r] = input[r][r];
    }
    let mut bit = 1;
    while bit < RANKS {
        for distance in 1..RANKS {
            if distance & bit != 0 {
                let gone = distance % bit;
                let (first, last) = (gone == 0, gone + bit == distance);
                let turn = ones(gone) % 2 * RANKS + distance;
                let next = (ones(gone) + 1) % 2 * RANKS + distance;
                for r in 0..RANKS {
                    let (dest, from, to) =
                        ((r + distance) % RANKS, (r + gone) % RANKS, (r + gone + bit) % RANKS);
                    if first && last {
                        output[to][r] = input[r][dest];
                    } else if first {
                        scratch[to][next] = input[r][dest];
                    } else if last {
                        output[to][r] = scratch[from][turn];
                    } else {
                        scratch[to][next] = scratch[from][turn];
                    }
                }
            }
        }
        bit *= 2;
    }

    /// The ones in a binary number.
    fn ones(number: i64) -> i64 {
        let (mut rest, mut ones) = (number, 0);
        while rest > 0 {
            ones += rest % 2;
            rest /= 2;
        }
        ones
    }
}

fn main() -> std::process::ExitCode {
    quadrille::example::run(bruck_all_to_all())
}
