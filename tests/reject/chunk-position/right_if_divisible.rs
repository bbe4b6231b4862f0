//! The middle of a chain keeps chunk 1 where chunk 0 belongs: right, where all chunks are equally long.

use quadrille::collective;

#[collective(broadcast, ranks = [2, 4], chunks = 2)]
fn swapped_on_the_way() {
    output[0][0] = input[0][1];
    output[0][1] = input[0][0];
    for r in 1..RANKS {
        output[r][0] = output[0][1];
        output[r][1] = output[0][0];
    }
    output[0][0..2] = input[0][0..2];
}

fn main() {}
