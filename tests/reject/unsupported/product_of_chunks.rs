//! Chunks are combined by the operator of the call, which is written `+`.

use quadrille::collective;

#[collective(all_reduce, ranks = [2, 4])]
fn product() {
    for r in 0..RANKS {
        output[r][0] = input[0][0] * input[1][0];
    }
}

fn main() {}
