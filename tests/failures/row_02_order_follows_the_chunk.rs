// Row: 2
// There: each rank begins its chunk's sum with its own data, so that bits change with the message's size and the kernel
// Here: chunk c is summed from rank c on, in a collective that promises to be `reproducible`

use quadrille::collective;

#[collective(all_reduce, ranks = [2, 4], chunks = RANKS, reproducible)]
fn two_stages() {
    for c in 0..RANKS {
        output[c][c] = input[c][c];
        for hop in 1..RANKS {
            output[c][c] += input[(c + hop) % RANKS][c];
        }
        for r in 0..RANKS {
            if r != c {
                output[r][c] = output[c][c];
            }
        }
    }
}

fn main() {}
