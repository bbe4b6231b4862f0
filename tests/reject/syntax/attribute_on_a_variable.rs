//! What says how stands where nothing moves.

use quadrille::collective;

#[collective(broadcast, ranks = [2, 4])]
fn broadcast() {
    #[on(0)]
    let root = ROOT;
    output[..][0] = #[multimem]
    input[root][0];
}

fn main() {}
