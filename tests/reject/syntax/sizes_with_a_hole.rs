//! No schedule for messages between the two.

use quadrille::collective;

#[collective(broadcast, ranks = [2, 4])]
#[schedule(up_to = "64KiB")]
#[schedule(from = "1MiB", blocks = 8)]
fn broadcast() {
    output[..][0] = input[ROOT][0];
}

fn main() {}
