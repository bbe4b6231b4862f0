//! A value of a parameter that no listed world size admits.

use quadrille::collective;

#[collective(all_reduce, ranks = [4, 8], params(k = 2..=3))]
fn grouped() {
    assert!(RANKS % k == 0, "groups of {k} do not fill {RANKS} ranks");
    output[..][0] = reduce(input[..][0]);
}

fn main() {}
