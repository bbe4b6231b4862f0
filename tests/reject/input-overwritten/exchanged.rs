//! Inputs are exchanged, at once, before they are copied.

use quadrille::collective;

#[collective(send_recv, ranks = [2])]
fn exchange() {
    (input[0][0], input[1][0]) = (input[1][0], input[0][0]);
    output[..][0] = input[..][0];
}

fn main() {}
