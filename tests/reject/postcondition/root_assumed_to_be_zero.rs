//! The sum leaves out rank 0, as if it were the root, which is rank 1.

use quadrille::collective;

#[collective(reduce, ranks = [3, 4], root = 1)]
fn star_reduce() {
    output[ROOT][0] = input[ROOT][0];
    for r in 1..RANKS {
        output[ROOT][0] += input[r][0];
    }
}

fn main() {}
