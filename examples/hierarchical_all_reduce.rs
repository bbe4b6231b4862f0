//! Hierarchical all-reduce: for large messages on several nodes, whose network is slower than the links inside.
//!
//! A reduce-scatter in every node, then an all-reduce across the nodes along rails (ranks of the same number in their
//! nodes), each of which carries its share only, then an all-gather in every node. Across nodes go
//! 2 (NODES - 1) / N of the message a rank, the least there is.
//!
//! Bytes a rank: `2 (N - 1) / N` of the message, the least there is. Hops:
//! `2 min(LOCAL_RANKS - 1, 1) + 2 min(NODES - 1, 1)`.

use quadrille::collective;

/// Share l of the message is summed on rank l of every node, then along rail l, and goes back to everybody.
#[collective(all_reduce, ranks = [4, 8], params(nodes = [2, 1, 4]), nodes = nodes, chunks = RANKS, in_place)]
pub fn hierarchical_all_reduce() {
    /// Rank l of a node.
    fn rank(node: i64, l: i64) -> i64 {
        node * LOCAL_RANKS + l % LOCAL_RANKS
    }

    for node in 0..NODES {
        for l in 0..LOCAL_RANKS {
            for shift in 1..LOCAL_RANKS {
                let (from, to) = (rank(node, l + shift), rank(node, l));
                data[to][l * NODES..(l + 1) * NODES] += data[from][l * NODES..(l + 1) * NODES];
            }
        }
    }
    for l in 0..LOCAL_RANKS {
        for node in 0..NODES {
            let (c, home) = (l * NODES + node, rank(node, l));
            for shift in 1..NODES {
                data[home][c] += data[rank((node + shift) % NODES, l)][c];
            }
            for shift in 1..NODES {
                data[rank((node + shift) % NODES, l)][c] = data[home][c];
            }
        }
    }
    for node in 0..NODES {
        for shift in 1..LOCAL_RANKS {
            for l in 0..LOCAL_RANKS {
                let (from, to) = (rank(node, l), rank(node, l + shift));
                data[to][l * NODES..(l + 1) * NODES] = data[from][l * NODES..(l + 1) * NODES];
            }
        }
    }
}

fn main() -> std::process::ExitCode {
    quadrille::example::run(hierarchical_all_reduce())
}
