//! Chunks of both units of a rank by way of scratch on its neighbour; the ranges pass the end of a unit.

use quadrille::collective;

/// Every unit goes to the next rank's scratch first.
#[collective(scatter, ranks = [2, 3, 4, 8], chunks = 2, scratch = 3, root = 1)]
pub fn detouring_scatter() {
    for r in 0..RANKS {
        let detour = (r + 1) % RANKS;
        scratch[detour][1..3] = input[ROOT][2 * r..2 * r + 2];
        output[r][0..2] = scratch[detour][1..3];
    }
}
