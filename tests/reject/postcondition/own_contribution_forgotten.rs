//! Every rank sums what the others have for it and forgets its own.

use quadrille::collective;

#[collective(reduce_scatter, ranks = [3, 4])]
fn direct_reduce_scatter() {
    for r in 0..RANKS {
        output[r][0] = input[(r + 1) % RANKS][r];
        for hop in 2..RANKS {
            output[r][0] += input[(r + hop) % RANKS][r];
        }
    }
}

fn main() {}
