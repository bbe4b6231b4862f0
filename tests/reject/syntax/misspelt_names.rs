//! Several wrong names at once: all are reported.

use quadrille::collective;

#[collective(all_reduce, ranks = [2, 4])]
fn one_shot() {
    for r in 0..RANK {
        output[r][0] = reduce(inputs[..][0]);
        output[s][0] = output[r][0];
    }
}

fn main() {}
