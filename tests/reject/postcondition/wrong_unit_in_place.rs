//! In place rank r's input is unit r of `data`, and not unit 0.

use quadrille::collective;

#[collective(all_gather, ranks = [2, 4], chunks = 2, in_place)]
fn direct_all_gather() {
    for r in 0..RANKS {
        for c in 0..2 {
            for to in 0..RANKS {
                if to != r {
                    data[to][c] = data[r][2 * r + c];
                }
            }
        }
    }
}

fn main() {}
