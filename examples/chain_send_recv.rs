//! Chain send-recv: for messages of every size that go one rank further on.
//!
//! The pieces of a message go at the same time, each by a thread block of its own.
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
