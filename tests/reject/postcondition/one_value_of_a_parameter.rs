//! Steps of k ranks reach all of four ranks for k = 1, and not for k = 2.

use quadrille::collective;

#[collective(broadcast, ranks = [4], params(k = [1, 2]), in_place)]
fn chain() {
    for r in (k..RANKS).step_by(k) {
        data[r][0] = data[r - k][0];
    }
    if k == 2 {
        data[1][0] = data[0][0];
    }
}

fn main() {}
