//! A list of ranks that coincide for two ranks.

use quadrille::collective;

#[collective(broadcast, ranks = [2, 3], in_place)]
fn ends() {
    data[[1, RANKS - 1]][0] = data[0][0];
}

fn main() {}
