//! Units of two chunks, indexed with a stride of one.

use quadrille::collective;

#[collective(all_gather, ranks = [2, 4], chunks = 2)]
fn direct_all_gather() {
    for r in 0..RANKS {
        for k in 0..2 {
            output[..][r + k] = input[r][k];
        }
    }
}

fn main() {}
