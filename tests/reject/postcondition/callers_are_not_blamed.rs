//! The collective is wrong, what calls it is not: rustc reports the one error.

use quadrille::collective;

#[collective(all_gather, ranks = [2, 4])]
fn direct_all_gather() {
    for r in 0..RANKS {
        output[..][(r + 1) % RANKS] = input[r][0];
    }
}

pub fn caller() -> quadrille::Collective {
    direct_all_gather()
}

fn main() {}
