//! Pairs are to be summed; the second of each pair adds to a sum that is complete.

use quadrille::collective;

#[collective(custom, ranks = [2, 4], in_place)]
fn sum_of_pairs() {
    for r in (0..RANKS).step_by(2) {
        expect!(output[[r, r + 1]][0] == input[r][0] + input[r + 1][0]);
        data[r][0] += data[r + 1][0];
        data[r + 1][0] += data[r][0];
    }
}

fn main() {}
