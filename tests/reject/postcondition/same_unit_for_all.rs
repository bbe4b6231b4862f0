//! Every rank gets the first unit of the root.

use quadrille::collective;

#[collective(scatter, ranks = [2, 4])]
fn direct_scatter() {
    output[..][0] = input[ROOT][0];
}

fn main() {}
