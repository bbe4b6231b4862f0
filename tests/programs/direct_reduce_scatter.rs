//! Every rank reads its share from everybody; three chunks, so that counts are cut unevenly.

#[collective(reduce_scatter, ranks = 2..=8, chunks = 3)]
fn direct_reduce_scatter() {
    for r in 0..RANKS {
        for c in 0..3 {
            output[r][c] = reduce(input[..][3 * r + c]);
        }
    }
}
