//! The root collects in its input.

use quadrille::collective;

#[collective(reduce_scatter, ranks = [2, 4])]
fn star() {
    for c in 0..RANKS {
        input[0][c] = reduce(input[..][c]);
        output[c][0] = input[0][c];
    }
}

fn main() {}
