//! Two-dimensional torus all-reduce: for large messages on grids whose links reach the neighbours in a row and in a
//! column, wrapping around.
//!
//! Half of the chunks: a ring reduce-scatter along the rows, a ring all-reduce along the columns, a ring all-gather
//! along the rows. The other half goes along columns first, so that both dimensions' links carry data all the time.
//!
//! Bytes a rank: `2 (N - 1) / N` of the message, the least there is. Hops: `2 (rows - 1) + 2 (N / rows - 1)`.
//!
//! Source: C. Ying et al., "Image classification at supercomputer scale", 2018.

use quadrille::collective;

/// `rows` rows; rank `row * columns + column`. Half h takes its first steps along rows (h = 0) or columns (h = 1).
#[collective(all_reduce, ranks = [4, 8], params(rows = [2, 1, 4]), chunks = 2 * RANKS, in_place)]
pub fn torus_all_reduce() {
    assert!(rows > 0 && RANKS % rows == 0, "{rows} rows of equal length");

    /// The rank at the places `a` and `b` of the first and of the second dimension of half h.
    fn at(h: i64, a: i64, b: i64) -> i64 {
        let columns = RANKS / rows;
        if h == 0 { b % rows * columns + a % columns } else { a % rows * columns + b % columns }
    }

    for h in 0..2 {
        let first = if h == 0 { RANKS / rows } else { rows };
        let second = RANKS / first;
        for a in 0..first {
            let begin = h * RANKS + a * second;
            let end = begin + second;
            for hop in 1..first {
                for b in 0..second {
                    data[at(h, a + hop + 1, b)][begin..end] += data[at(h, a + hop, b)][begin..end];
                }
            }
            for b in 0..second {
                let c = begin + b;
                for hop in 1..second {
                    data[at(h, a, b + hop + 1)][c] += data[at(h, a, b + hop)][c];
                }
                for hop in 0..second - 1 {
                    data[at(h, a, b + hop + 1)][c] = data[at(h, a, b + hop)][c];
                }
            }
            for hop in 0..first - 1 {
                for b in 0..second {
                    data[at(h, a + hop + 1, b)][begin..end] = data[at(h, a + hop, b)][begin..end];
                }
            }
        }
    }
}

fn main() -> std::process::ExitCode {
    quadrille::example::run(torus_all_reduce())
}
