//! A variable is assigned to twice without being `mut`.

use quadrille::collective;

#[collective(broadcast, ranks = [2, 4], in_place)]
fn binomial_broadcast() {
    let have = 1;
    while have < RANKS {
        for r in 0..have.min(RANKS - have) {
            data[r + have][0] = data[r][0];
        }
        have *= 2;
    }
}

fn main() {}
