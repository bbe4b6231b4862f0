//! The root adds to its own input.

use quadrille::collective;

#[collective(reduce, ranks = [2, 4])]
fn star_reduce() {
    for r in 0..RANKS {
        if r != ROOT {
            input[ROOT][0] += input[r][0];
        }
    }
    output[ROOT][0] = input[ROOT][0];
}

fn main() {}
