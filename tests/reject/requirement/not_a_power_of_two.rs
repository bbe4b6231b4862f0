//! The collective asks for a power of two and lists six.

use quadrille::collective;

#[collective(all_reduce, ranks = [4, 6], in_place)]
fn tree_all_reduce() {
    assert!(RANKS.is_power_of_two(), "the tree needs a power of two");
    for level in 0..RANKS.ilog2() {
        let reach = 2.pow(level);
        for r in (0..RANKS).step_by(2 * reach) {
            data[r][0] += data[r + reach][0];
        }
    }
    for r in 1..RANKS {
        data[r][0] = data[0][0];
    }
}

fn main() {}
