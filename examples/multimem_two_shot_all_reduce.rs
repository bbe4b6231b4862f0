//! Multimem two-shot all-reduce: for large messages behind an NVSwitch that combines and multicasts (NVLS).
//!
//! Every rank lets the switch combine one chunk of everybody's input, and hand the sum to all: about half of the bytes
//! of an all-reduce without it. The switch chooses the order of combination; all ranks get the same bits.
//!
//! Bytes a rank: `(N + 1) / N` of the message, the least there is with such a switch. Hops: `2`.

use quadrille::collective;

/// Rank c has chunk c combined and handed out, in place.
#[collective(all_reduce, ranks = 2..=8, chunks = RANKS, in_place)]
pub fn multimem_two_shot_all_reduce() {
    for c in 0..RANKS {
        #[on(c)]
        #[multimem]
        {
            data[..][c] = reduce(data[..][c]);
        }
    }
}

fn main() -> std::process::ExitCode {
    quadrille::example::run(multimem_two_shot_all_reduce())
}
