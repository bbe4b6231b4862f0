//! Every rank begins with its own input, then adds that of all ranks, its own among them.

use quadrille::collective;

#[collective(all_reduce, ranks = [2, 4])]
fn one_shot_all_reduce() {
    for r in 0..RANKS {
        output[r][0] = input[r][0];
        for s in 0..RANKS {
            output[r][0] += input[s][0];
        }
    }
}

fn main() {}
