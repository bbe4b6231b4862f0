//! `expect!` where the kind says what holds.

use quadrille::collective;

#[collective(all_reduce, ranks = [2, 4])]
fn one_shot() {
    for r in 0..RANKS {
        expect!(output[r][0] == reduce(input[..][0]));
        output[r][0] = reduce(input[..][0]);
    }
}

fn main() {}
