//! Neither a kind nor world sizes to verify it for.

use quadrille::collective;

#[collective(in_place)]
fn chain() {
    for r in 1..RANKS {
        data[r][0] = data[r - 1][0];
    }
}

fn main() {}
