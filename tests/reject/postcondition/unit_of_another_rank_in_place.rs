//! Rank r keeps the sum of unit r + 1.

use quadrille::collective;

#[collective(reduce_scatter, ranks = [2, 4], in_place)]
fn direct_reduce_scatter() {
    for r in 0..RANKS {
        let unit = (r + 1) % RANKS;
        data[r][unit] = reduce(data[..][unit]);
    }
}

fn main() {}
