//! Two promises for one chunk.

use quadrille::collective;

#[collective(custom, ranks = [2, 4])]
fn all_to_next() {
    unspecified!(output[..][0]);
    for r in 1..RANKS {
        expect!(output[r][0] == input[r - 1][0]);
        output[r][0] = input[r - 1][0];
    }
}

fn main() {}
