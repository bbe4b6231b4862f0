//! The names of buffers are misspelt, each in another way.

use quadrille::collective;

#[collective(all_gather, ranks = [2, 4])]
fn direct() {
    for r in 0..RANKS {
        ouput[r][r] = input[r][0];
        output[..][r] = inputs[r][0];
        result[0][0] += buffer[0][0];
    }
}

fn main() {}
