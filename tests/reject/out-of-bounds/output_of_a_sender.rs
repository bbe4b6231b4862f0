//! In a gather only the root has an output.

use quadrille::collective;

#[collective(gather, ranks = [2, 4])]
fn ring_gather() {
    for r in 0..RANKS {
        for hop in 0..RANKS {
            output[(r + hop) % RANKS][r] = input[r][0];
        }
    }
}

fn main() {}
