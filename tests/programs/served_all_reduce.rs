//! Two ranks do everything for the others: each reads all inputs of its chunk and stores all outputs.

#[collective(all_reduce, ranks = 2..=8, chunks = 2)]
fn served_all_reduce() {
    for c in 0..2 {
        #[on(c)]
        {
            output[..][c] = reduce(input[..][c]);
        }
    }
}
