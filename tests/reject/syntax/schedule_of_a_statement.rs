//! An option of the whole collective on one statement, and a misspelt protocol.

use quadrille::collective;

#[collective(broadcast, ranks = [2, 4])]
#[schedule(protocol = ll)]
fn broadcast() {
    #[schedule(instances = 2)]
    output[..][0] = input[ROOT][0];
}

fn main() {}
