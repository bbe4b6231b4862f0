//! A requirement without words of its own.

use quadrille::collective;

#[collective(all_reduce, ranks = [2, 4])]
fn one_shot() {
    assert!(RANKS < 4 && RANKS > 0);
    for r in 0..RANKS {
        output[r][0] = reduce(input[..][0]);
    }
}

fn main() {}
