//! `scratch` is used, but the attribute does not say how much of it there is.

use quadrille::collective;

#[collective(all_to_all, ranks = [2])]
fn through_scratch() {
    for r in 0..RANKS {
        scratch[1 - r][0] = input[r][1 - r];
        output[r][r] = input[r][r];
    }
    for r in 0..RANKS {
        output[r][1 - r] = scratch[r][0];
    }
}

fn main() {}
