//! A chain: chunk after chunk runs from the root around to the rank before it.

#[collective(broadcast, ranks = 2..=8, chunks = 3)]
fn chain_broadcast() {
    for c in 0..3 {
        output[ROOT][c] = input[ROOT][c];
        for hop in 1..RANKS {
            output[(ROOT + hop) % RANKS][c] = output[(ROOT + hop - 1) % RANKS][c];
        }
    }
}
