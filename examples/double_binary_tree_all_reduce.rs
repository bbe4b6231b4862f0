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

/// Up and down both trees. Node v of the second tree is rank v + 1.
#[collective(all_reduce, ranks = [2, 3, 4, 8], params(pieces = [2, 1, 4]), chunks = 2 * pieces, in_place)]
pub fn double_binary_tree_all_reduce() {
    /// The node above v, whose lowest bit is `bit`: that bit one place up, or gone where there is no such node.
    fn above(v: i64, bit: i64) -> i64 {
        let up = (v ^ bit) | 2 * bit;
        if up < RANKS { up } else { v ^ bit }
    }

    for c in 0..2 * pieces {
        let tree = c % 2;
        let mut bit = 1;
        while bit < RANKS {
            for v in (bit..RANKS).step_by(2 * bit) {
                data[(above(v, bit) + tree) % RANKS][c] += data[(v + tree) % RANKS][c];
            }
            bit *= 2;
        }
        while bit > 1 {
            bit /= 2;
            for v in (bit..RANKS).step_by(2 * bit) {
                data[(v + tree) % RANKS][c] = data[(above(v, bit) + tree) % RANKS][c];
            }
        }
    }
}

fn main() -> std::process::ExitCode {
    quadrille::example::run(double_binary_tree_all_reduce())
}
