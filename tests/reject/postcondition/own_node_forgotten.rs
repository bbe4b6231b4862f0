//! What comes from another node is handed on; what the node has itself is not.

use quadrille::collective;

#[collective(all_gather, ranks = [4], nodes = 2)]
fn hierarchical_all_gather() {
    for r in 0..RANKS {
        let l = r % LOCAL_RANKS;
        for node in 0..NODES {
            let relay = node * LOCAL_RANKS + l;
            output[relay][r] = input[r][0];
            if relay != r {
                for near in 0..LOCAL_RANKS {
                    output[node * LOCAL_RANKS + near][r] = output[relay][r];
                }
            }
        }
    }
}

fn main() {}
