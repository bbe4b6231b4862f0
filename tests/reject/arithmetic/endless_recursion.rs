//! The fn calls itself whatever is left.

use quadrille::collective;

#[collective(broadcast, ranks = [2, 4], in_place)]
fn chain() {
    fn send(r: i64) {
        data[(r + 1) % RANKS][0] = data[r][0];
        send((r + 1) % RANKS);
    }
    send(ROOT);
}

fn main() {}
