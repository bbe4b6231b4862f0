//! A range is moved by one chunk onto itself.

use quadrille::collective;

#[collective(all_to_all, ranks = [4], in_place)]
fn shift() {
    for r in 0..RANKS {
        data[r][0..3] = data[r][1..4];
    }
}

fn main() {}
