//! `data` is the buffer of a collective that is in place.

use quadrille::collective;

#[collective(all_reduce, ranks = [2, 4])]
fn star() {
    for r in 1..RANKS {
        data[0][0] += data[r][0];
    }
    output[..][0] = data[0][0];
}

fn main() {}
