//! Two statements are no exchange: rank 1 adds what rank 0 has already made of both.

use quadrille::collective;

#[collective(all_reduce, ranks = [2, 4], in_place)]
fn recursive_doubling() {
    let mut distance = 1;
    while distance < RANKS {
        for r in 0..RANKS {
            data[r][0] += data[r ^ distance][0];
        }
        distance *= 2;
    }
}

fn main() {}
