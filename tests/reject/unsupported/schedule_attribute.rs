//! An attribute that says how, which is still to come.

use quadrille::collective;

#[collective(broadcast, ranks = [2, 4], in_place)]
#[schedule(protocol = LL)]
fn broadcast() {
    for r in 1..RANKS {
        data[r][0] = data[r - 1][0];
    }
}

fn main() {}
