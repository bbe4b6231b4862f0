//! Constructs that the language lacks, all reported at once.

use quadrille::collective;

#[collective(broadcast, ranks = [2, 4], in_place)]
fn broadcast() {
    const FIRST: i64 = 1;
    let peers = vec![1, 2];
    let next = |r| r + 1;
    let Pair { peer } = (1, 2) else {
        return;
    };
    loop {
        break;
    }
    println!("{peer}");
    data[..][0] = data[&ROOT][0];
}

fn main() {}
