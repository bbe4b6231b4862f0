//! All-to-next, which says nothing of rank 0's output.

use quadrille::collective;

#[collective(custom, ranks = [2, 4])]
fn all_to_next() {
    for r in 0..RANKS - 1 {
        expect!(output[r + 1][0] == input[r][0]);
        output[r + 1][0] = input[r][0];
    }
}

fn main() {}
