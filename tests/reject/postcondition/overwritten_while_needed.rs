//! A transposition in place, in which each chunk overwrites one that is still to be sent.

use quadrille::collective;

#[collective(all_to_all, ranks = [2, 4], in_place)]
fn exchange() {
    for r in 0..RANKS {
        for peer in 0..RANKS {
            data[peer][r] = data[r][peer];
        }
    }
}

fn main() {}
