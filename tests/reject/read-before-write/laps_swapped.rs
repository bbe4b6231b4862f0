//! The lap that hands out comes before the lap that sums.

use quadrille::collective;

#[collective(all_reduce, ranks = [2, 4], chunks = RANKS)]
fn two_shot_all_reduce() {
    for c in 0..RANKS {
        for hop in 1..RANKS {
            output[(c + hop) % RANKS][c] = output[c][c];
        }
    }
    for c in 0..RANKS {
        output[c][c] = reduce(input[..][c]);
    }
}

fn main() {}
