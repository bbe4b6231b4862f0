//! The loop forgets to double what it has.

use quadrille::collective;

#[collective(broadcast, ranks = [2], in_place)]
fn binomial_broadcast() {
    let mut have = 1;
    while have < RANKS {
        have *= 1;
    }
    data[1][0] = data[0][0];
}

fn main() {}
