//! A prefix sum: promises and sums over ranges of ranks that the loop computes, and a loop over an array of pairs.

use quadrille::collective;

/// Rank r gets the sum of ranks 0 to r in chunk 0. In chunk 1 the members of each half get the input of its first rank.
#[collective(custom, ranks = [2, 4, 6, 8], chunks = 2)]
pub fn inclusive_scan() {
    assert!(RANKS % 2 == 0, "two halves");
    for r in 0..RANKS {
        expect!(output[r][0] == reduce(input[..=r][0]));
        output[r][0] = reduce(input[..=r][0]);
    }
    let half = RANKS / 2;
    for (first, end) in [(0, half), (half, RANKS)] {
        expect!(output[first..end][1] == input[first][1]);
        output[first..end][1] = input[first][1];
    }
}
