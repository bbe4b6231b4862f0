//! A tree of log2(RANKS) levels, which leaves ranks 4 and 5 of six out.

use quadrille::collective;

#[collective(all_reduce, ranks = [4, 6, 8], in_place)]
fn tree_all_reduce() {
    for level in 0..RANKS.ilog2() {
        let reach = 2.pow(level);
        for r in (0..RANKS - reach).step_by(2 * reach) {
            data[r][0] += data[r + reach][0];
        }
    }
    for r in 1..RANKS {
        data[r][0] = data[0][0];
    }
}

fn main() {}
