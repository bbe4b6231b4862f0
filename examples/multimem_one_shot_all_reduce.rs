//! Multimem one-shot all-reduce: for small messages behind an NVSwitch that combines (NVLS).
//!
//! Every rank lets the switch read and combine everybody's input: as the one-shot, with one chunk received instead of
//! N - 1. The switch chooses the order of combination.
//!
//! Bytes a rank: `N` of the message. Hops: `1`.

use quadrille::collective;

/// Every rank has everybody's input combined for itself.
#[collective(all_reduce, ranks = 2..=8)]
pub fn multimem_one_shot_all_reduce() {
    for r in 0..RANKS {
        #[multimem]
        output[r][0] = reduce(input[..][0]);
    }
}

fn main() -> std::process::ExitCode {
    quadrille::example::run(multimem_one_shot_all_reduce())
}
