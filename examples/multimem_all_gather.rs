//! Multimem all-gather: for messages of every size behind an NVSwitch that multicasts (NVLS).
//!
//! Every rank sends its input once, `1 / N` of the message, and the switch hands it to all.
//!
//! Bytes a rank: `1` message received. Hops: `1`.

use quadrille::collective;

/// Every rank's input is multicast.
#[collective(all_gather, ranks = 2..=8)]
pub fn multimem_all_gather() {
    for r in 0..RANKS {
        #[multimem]
        {
            output[..][r] = input[r][0];
        }
    }
}

fn main() -> std::process::ExitCode {
    quadrille::example::run(multimem_all_gather())
}
