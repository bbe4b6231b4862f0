//! The last chunk comes first: chunks are not equally long when the message is uneven.

use quadrille::collective;

#[collective(all_gather, ranks = [2, 4], chunks = 2)]
fn reversed() {
    for r in 0..RANKS {
        for k in 0..2 {
            output[..][2 * r + 1 - k] = input[r][k];
        }
    }
}

fn main() {}
