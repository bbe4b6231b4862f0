//! A chain: chunk after chunk runs from the root to the last rank.

#[collective(broadcast, ranks = 2..=8, chunks = 3)]
fn chain_broadcast() {
    for c in 0..3 {
        output[0][c] = input[0][c];
        for r in 1..RANKS {
            output[r][c] = output[r - 1][c];
        }
    }
}
