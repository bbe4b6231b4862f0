//! Placement by hand, and copies moved to their destinations.

use quadrille::collective;

/// Odd chunks on another channel than even ones.
#[collective(reduce, ranks = [2, 3, 4, 8], chunks = 4, in_place)]
#[schedule(transport = get, blocks = 4, up_to = "64KiB")]
#[schedule(blocks = 8, threads = 256, unroll = 4)]
pub fn channelled_reduce() {
    for c in 0..4 {
        #[channel(c % 2)]
        {
            for hop in 1..RANKS {
                let (from, to) = ((ROOT + hop) % RANKS, ROOT);
                data[to][c] += data[from][c];
            }
        }
    }
}
