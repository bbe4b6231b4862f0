//! Every rank reduces chunk 0, where rank r is due chunk r.

use quadrille::collective;

#[collective(reduce_scatter, ranks = [2, 4])]
fn direct_reduce_scatter() {
    for r in 0..RANKS {
        output[r][0] = reduce(input[..][0]);
    }
}

fn main() {}
