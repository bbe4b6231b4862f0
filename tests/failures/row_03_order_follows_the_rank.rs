// Row: 3
// There: every rank of a one-shot begins with its own data: results differ over the ranks, which later diverge and hang
// Here: rank r sums from rank r on, in a collective that promises to be `reproducible`

use quadrille::collective;

#[collective(all_reduce, ranks = [4], reproducible)]
fn one_stage() {
    for r in 0..RANKS {
        output[r][0] = input[r][0];
        for hop in 1..RANKS {
            output[r][0] += input[(r + hop) % RANKS][0];
        }
    }
}

fn main() {}
