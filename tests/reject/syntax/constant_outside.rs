//! Constants of the file are not seen in the body.

use quadrille::collective;

const GROUP: i64 = 2;

#[collective(all_reduce, ranks = [2, 4], in_place)]
fn star() {
    for r in 1..RANKS / GROUP * 2 {
        data[0][0] += data[r][0];
    }
    for r in 1..RANKS / GROUP * 2 {
        data[r][0] = data[0][0];
    }
}

fn main() {}
