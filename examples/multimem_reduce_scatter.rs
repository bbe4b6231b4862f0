//! Multimem reduce-scatter: for messages of every size behind an NVSwitch that combines (NVLS).
//!
//! Every rank lets the switch combine its unit of everybody's input, and receives `1 / N` of the message. The switch
//! chooses the order of combination.
//!
//! Bytes a rank: `1` message sent. Hops: `1`.

use quadrille::collective;

/// Every rank has its unit of everybody's input combined.
#[collective(reduce_scatter, ranks = 2..=8)]
pub fn multimem_reduce_scatter() {
    for r in 0..RANKS {
        #[multimem]
        output[r][0] = reduce(input[..][r]);
    }
}

fn main() -> std::process::ExitCode {
    quadrille::example::run(multimem_reduce_scatter())
}
