//! Powers of a rank leave 64 bits.

use quadrille::collective;

#[collective(all_reduce, ranks = [4], in_place)]
fn powers() {
    for r in 0..RANKS {
        let peer = (r + 1).pow(40) % RANKS;
        data[peer][0] += data[r][0];
    }
}

fn main() {}
