//! A binomial tree over all ranks: sums go up to rank 0, results come down. `while`, `let mut` and ranges.

#[collective(all_reduce, ranks = 2..=8, chunks = 2, in_place)]
fn tree_all_reduce() {
    let mut reach = 1;
    while reach < RANKS {
        for r in (0..RANKS).step_by(2 * reach) {
            if r + reach < RANKS {
                data[r][0..2] += data[r + reach][0..2];
            }
        }
        reach *= 2;
    }
    while reach > 1 {
        reach /= 2;
        for r in (0..RANKS).step_by(2 * reach) {
            if r + reach < RANKS {
                data[r + reach][0..2] = data[r][0..2];
            }
        }
    }
}
