//! Multimem broadcast: for messages of every size behind an NVSwitch that multicasts (NVLS).
//!
//! Bytes a rank: `1` message, the least there is. Hops: `1`.

use quadrille::collective;

/// The root's message is multicast.
#[collective(broadcast, ranks = 2..=8)]
pub fn multimem_broadcast() {
    #[multimem]
    {
        output[..][0] = input[ROOT][0];
    }
}

fn main() -> std::process::ExitCode {
    quadrille::example::run(multimem_broadcast())
}
