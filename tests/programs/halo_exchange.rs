//! A custom collective with sums, copies and a chunk that may hold anything.

use quadrille::collective;

/// Chunk 0 is the sum with the left neighbour, chunk 1 the right neighbour's, chunk 2 is nobody's.
#[collective(custom, ranks = [2, 3, 4, 8], chunks = 3)]
pub fn halo_exchange() {
    for r in 0..RANKS {
        let (left, right) = ((r + RANKS - 1) % RANKS, (r + 1) % RANKS);
        output[r][0] = input[left][0] + input[r][0];
        expect!(output[r][0] == input[r][0] + input[left][0]);
        output[r][1] = input[right][1];
        expect!(output[r][1] == input[right][1]);
        unspecified!(output[r][2]);
    }
}
