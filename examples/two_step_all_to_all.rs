//! Two-step all-to-all: for small and middle-sized messages on several nodes, whose network wants few large transfers.
//!
//! What a node's ranks have for rank l of another node is collected on rank l of their own node, and crosses in one
//! transfer: NODES - 1 transfers of LOCAL_RANKS units a rank, instead of N - LOCAL_RANKS of one unit.
//!
//! Bytes a rank: `(2 N - NODES - LOCAL_RANKS) / N` of the message. Hops: `min(LOCAL_RANKS - 1, 1) + min(NODES - 1, 1)`.
//!
//! Source: M. Cowan et al., "MSCCLang: Microsoft Collective Communication Language", 2023.

use quadrille::collective;

/// Units for other nodes lie in scratch by destination node, then by source. A unit is one chunk: every count divides.
#[collective(all_to_all, ranks = [4, 8], params(nodes = [2, 1, 4]), nodes = nodes, scratch = RANKS, divisible)]
pub fn two_step_all_to_all() {
    for shift in 0..LOCAL_RANKS {
        for r in 0..RANKS {
            let (node, l) = (r / LOCAL_RANKS, r % LOCAL_RANKS);
            let local = (l + shift) % LOCAL_RANKS;
            let through = node * LOCAL_RANKS + local;
            for hop in 1..NODES {
                let other = (node + hop) % NODES;
                scratch[through][other * LOCAL_RANKS + l] = input[r][other * LOCAL_RANKS + local];
            }
            output[through][r] = input[r][through];
        }
    }
    for hop in 1..NODES {
        for r in 0..RANKS {
            let (node, local) = (r / LOCAL_RANKS, r % LOCAL_RANKS);
            let (here, there) = (node * LOCAL_RANKS, (node + hop) % NODES * LOCAL_RANKS);
            output[there + local][here..here + LOCAL_RANKS] = scratch[r][there..there + LOCAL_RANKS];
        }
    }
}

fn main() -> std::process::ExitCode {
    quadrille::example::run(two_step_all_to_all())
}
