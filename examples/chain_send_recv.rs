//! Chain send-recv: every rank sends to the next one, around the ring; the message in pieces, each with a thread block.
//!
//! Bytes a rank: `1` message, the least there is. Hops: `1`.

use quadrille::collective;

/// Every piece goes one rank further on.
#[collective(send_recv, ranks = [2, 4, 8], params(pieces = [4, 1]), chunks = pieces)]
pub fn chain_send_recv() {
    for c in 0..pieces {
        for r in 0..RANKS {
            output[(r + 1) % RANKS][c] = input[r][c];
        }
    }
}

fn main() -> std::process::ExitCode {
    quadrille::example::run(chain_send_recv())
}
