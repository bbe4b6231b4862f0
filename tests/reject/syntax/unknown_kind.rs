//! The kind is misspelt.

use quadrille::collective;

#[collective(allreduce, ranks = [2, 4])]
fn one_shot() {
    for r in 0..RANKS {
        output[r][0] = reduce(input[..][0]);
    }
}

fn main() {}
