//! All-to-next: for pipelines over several nodes, where one rank's network link would be the bottleneck.
//!
//! A collective of its own: every rank sends to the next one, the last to nobody. Between nodes the message goes over
//! the links of all ranks of the node, each carrying `1 / LOCAL_RANKS` of it.
//!
//! Bytes a rank: `1 + min(NODES - 1, LOCAL_RANKS - 1, 2) / LOCAL_RANKS` of the message. Hops:
//! `1 + min(NODES - 1, 1) min(LOCAL_RANKS - 1, 2)`.
//!
//! Source: M. Cowan et al., "MSCCLang: Microsoft Collective Communication Language", 2023.

use quadrille::collective;

/// In the node directly; to the next node through rank c of both nodes for chunk c.
#[collective(custom, ranks = [4, 8], params(nodes = [2, 1, 4]), nodes = nodes, chunks = LOCAL_RANKS, scratch = 2)]
pub fn all_to_next() {
    unspecified!(output[0][0..LOCAL_RANKS]);
    for r in 0..RANKS - 1 {
        expect!(output[r + 1][0..LOCAL_RANKS] == input[r][0..LOCAL_RANKS]);
    }
    let last = LOCAL_RANKS - 1;
    for r in 0..RANKS - 1 {
        for c in 0..LOCAL_RANKS {
            let (here, there) = (r - last + c, r + 1 + c);
            if r % LOCAL_RANKS < last || last == 0 {
                output[r + 1][c] = input[r][c];
            } else if c == last {
                scratch[there][1] = input[r][c];
                output[r + 1][c] = scratch[there][1];
            } else if c == 0 {
                scratch[here][0] = input[r][c];
                output[r + 1][c] = scratch[here][0];
            } else {
                scratch[here][0] = input[r][c];
                scratch[there][1] = scratch[here][0];
                output[r + 1][c] = scratch[there][1];
            }
        }
    }
}

fn main() -> std::process::ExitCode {
    quadrille::example::run(all_to_next())
}
