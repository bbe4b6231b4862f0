//! The statement is given to a rank that there is not.

use quadrille::collective;

#[collective(all_reduce, ranks = [2, 4], chunks = RANKS)]
fn two_shot() {
    for c in 0..RANKS {
        #[on(c + 1)]
        output[..][c] = reduce(input[..][c]);
    }
}

fn main() {}
