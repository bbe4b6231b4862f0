//! A requirement inside a loop names the values that break it.

use quadrille::collective;

#[collective(all_gather, ranks = [5])]
fn paired() {
    for pair in 0..RANKS / 2 {
        let partner = RANKS / 2 + pair;
        assert!(2 * partner - RANKS == 2 * pair, "rank {pair} has no partner");
        output[partner][pair] = input[pair][0];
    }
}

fn main() {}
