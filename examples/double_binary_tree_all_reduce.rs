//! Double binary tree all-reduce: for middle-sized and large messages on many ranks, with few hops.
//!
//! Two binary trees over all ranks, each for half of the chunks; who is a leaf in one is an inner rank in the other, so
//! that no rank has much more to do than another. The chunks follow each other through the trees.
//!
//! Bytes a rank: `min(N / 2, 2)` of the message. Hops: `2 ceil(log2 N)`.
//!
//! Source: P. Sanders, J. Speck, J. L. Traff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan",
//! 2009; NCCL's trees.

use quadrille::collective;

/// Up and down both trees. Node v is rank v in the first tree and rank v + 1 in the second.
#[collective(all_reduce, ranks = [2, 3, 4, 8], params(pieces = [2, 1, 4]), chunks = 2 * pieces, in_place)]
pub fn double_binary_tree_all_reduce() {
    fn rank(v: i64, c: i64) -> i64 {
        (v + c % 2) % RANKS
    }

    /// Below v, whose lowest bit is `2 * reach`, is v - reach, and this one; v where there is none.
    fn second(v: i64, reach: i64) -> i64 {
        let mut step = reach;
        while v + step >= RANKS {
            step /= 2;
        }
        v + step
    }

    for c in 0..2 * pieces {
        let mut reach = 1;
        while 2 * reach < RANKS {
            for v in (2 * reach..RANKS).step_by(4 * reach) {
                let (to, a, b) = (rank(v, c), rank(v - reach, c), rank(second(v, reach), c));
                if b == to {
                    data[to][c] += data[a][c];
                } else {
                    data[to][c] = data[to][c] + data[a][c] + data[b][c];
                }
            }
            reach *= 2;
        }
        if RANKS > 1 {
            data[rank(0, c)][c] += data[rank(reach, c)][c];
            data[rank(reach, c)][c] = data[rank(0, c)][c];
        }
        while reach > 1 {
            reach /= 2;
            for v in (2 * reach..RANKS).step_by(4 * reach) {
                let (from, a, b) = (rank(v, c), rank(v - reach, c), rank(second(v, reach), c));
                if b == from {
                    data[a][c] = data[from][c];
                } else {
                    data[[a, b]][c] = data[from][c];
                }
            }
        }
    }
}

fn main() -> std::process::ExitCode {
    quadrille::example::run(double_binary_tree_all_reduce())
}
