//! A construct of Rust that the language lacks.

use quadrille::collective;

#[collective(broadcast, ranks = [2, 4], in_place)]
fn broadcast() {
    for r in 1..RANKS {
        match r % 2 {
            0 => data[r][0] = data[r - 2][0],
            _ => data[r][0] = data[0][0],
        }
    }
}

fn main() {}
