//! An option that is still to come.

use quadrille::collective;

#[collective(broadcast, ranks = [2, 4], aot(sm_90))]
fn broadcast() {
    output[..][0] = input[ROOT][0];
}

fn main() {}
