//! Two ranks leave a unit without chunks.

use quadrille::collective;

#[collective(all_reduce, ranks = [2, 4], chunks = RANKS / 4)]
fn one_shot() {
    for r in 0..RANKS {
        output[r][0] = reduce(input[..][0]);
    }
}

fn main() {}
