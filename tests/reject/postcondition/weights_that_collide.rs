//! As many inputs as are due, and not the due ones. The weights are a short vector of a lattice: of sums that count each
//! rank so often, polynomials at two points below 2^61 are equal.

use quadrille::collective;

#[collective(all_reduce, ranks = [96])]
pub fn weighted() {
    let weight = [
        0, 1, 0, 2, 1, 1, 1, 1, 3, 1, 0, 0, 1, 1, 0, 0, 0, 1, 0, 0, 2, 1, 0, 1, 1, 2, 1, 1, 2, 1, 2, 0, 2, 1,
        0, 1, 1, 2, 1, 1, 2, 1, 1, 0, 1, 1, 3, 0, 1, 2, 3, 0, 2, 0, 2, 1, 0, 2, 1, 1, 1, 3, 0, 1, 0, 0, 1, 2,
        1, 2, 2, 0, 1, 1, 1, 0, 1, 1, 2, 2, 2, 1, 0, 0, 1, 2, 1, 0, 1, 0, 0, 1, 0, 1, 1, 2,
    ];
    output[0][0] = input[1][0];
    for r in 2..RANKS {
        for _ in 0..weight[r] {
            output[0][0] += input[r][0];
        }
    }
    for r in 1..RANKS {
        output[r][0] = output[0][0];
    }
}

fn main() {}
