//! The ring hands on a unit that its rank has not put into its output.

use quadrille::collective;

#[collective(all_gather, ranks = [2, 4])]
fn ring_all_gather() {
    for hop in 0..RANKS - 1 {
        for r in 0..RANKS {
            let unit = (r + RANKS - hop) % RANKS;
            output[(r + 1) % RANKS][unit] = output[r][unit];
        }
    }
}

fn main() {}
