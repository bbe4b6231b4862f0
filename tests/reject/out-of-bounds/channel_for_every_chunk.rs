//! More channels than there are.

use quadrille::collective;

#[collective(all_gather, ranks = [2, 4], chunks = 32)]
fn direct() {
    for r in 0..RANKS {
        for c in 0..32 {
            #[channel(32 * r + c)]
            output[..][32 * r + c] = input[r][c];
        }
    }
}

fn main() {}
