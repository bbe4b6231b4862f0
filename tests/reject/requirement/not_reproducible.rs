//! Every rank begins with its own input: the order of addition is each rank's own.

use quadrille::collective;

#[collective(all_reduce, ranks = [2, 4], reproducible)]
fn one_shot() {
    for r in 0..RANKS {
        output[r][0] = input[r][0];
        for hop in 1..RANKS {
            output[r][0] += input[(r + hop) % RANKS][0];
        }
    }
}

fn main() {}
