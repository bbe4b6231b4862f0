//! Every rank sends to the one before it.

use quadrille::collective;

#[collective(send_recv, ranks = [3, 4])]
fn shift() {
    for r in 0..RANKS {
        output[(r + RANKS - 1) % RANKS][0] = input[r][0];
    }
}

fn main() {}
