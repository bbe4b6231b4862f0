//! The chunks of all ranks are stored to one, with nothing to combine them.

use quadrille::collective;

#[collective(all_reduce, ranks = [2, 4])]
fn one_shot() {
    for r in 0..RANKS {
        output[r][0] = input[..][0];
    }
}

fn main() {}
