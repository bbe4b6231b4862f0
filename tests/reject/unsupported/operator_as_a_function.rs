//! The operator is the call's, not the program's.

use quadrille::collective;

#[collective(all_reduce, ranks = [2])]
fn maximum() {
    output[0][0] = max(input[0][0], input[1][0]);
    output[1][0] = input[0][0].max(input[1][0]);
}

fn main() {}
