//! All ranks but the root, as a range that goes one too far.

use quadrille::collective;

#[collective(broadcast, ranks = [4], in_place)]
fn broadcast() {
    data[1..=RANKS][0] = data[ROOT][0];
}

fn main() {}
