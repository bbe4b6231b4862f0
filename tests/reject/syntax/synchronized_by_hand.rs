//! Calls for what the compiler does by itself.

use quadrille::collective;

#[collective(all_reduce, ranks = [2, 4], chunks = RANKS)]
fn two_shot() {
    for c in 0..RANKS {
        output[c][c] = reduce(input[..][c]);
    }
    barrier();
    for c in 0..RANKS {
        for r in 0..RANKS {
            if r != c {
                output[r][c] = output[c][c];
            }
        }
    }
    sync(RANKS);
}

fn main() {}
