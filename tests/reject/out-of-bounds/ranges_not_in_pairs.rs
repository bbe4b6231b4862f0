//! A shift by one rank, whose two ranges are not equally long.

use quadrille::collective;

#[collective(send_recv, ranks = [4])]
fn shift() {
    output[1..][0] = input[..][0];
    output[0][0] = input[RANKS - 1][0];
}

fn main() {}
