//! Ring all-reduce over several channels: for large messages, where one ring does not fill all links.
//!
//! Every channel is a ring over a part of the message, with thread blocks of its own. The rings step by different
//! strides that have no divisor in common with N, so that they share no link where there are enough such strides.
//!
//! Bytes a rank: `2 (N - 1) / N` of the message, the least there is. Hops: `2 (N - 1)`.
//!
//! Source: the channels of NCCL's rings, written as a program as in M. Cowan et al., "MSCCLang", 2023.

use quadrille::collective;

/// On each channel, one lap sums every chunk around the channel's ring, a second lap hands the sums out.
#[collective(all_reduce, ranks = [2, 4, 8], params(channels = [2, 4]), chunks = channels * RANKS, in_place)]
pub fn multi_channel_ring_all_reduce() {
    /// Whether steps of `stride` come around to every rank.
    fn reaches_all(stride: i64) -> bool {
        let (mut a, mut b) = (RANKS, stride);
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a == 1
    }

    let mut stride = 1;
    for channel in 0..channels {
        for home in 0..RANKS {
            let c = channel * RANKS + home;
            #[channel(channel)]
            {
                for hop in 1..RANKS {
                    let (from, to) = ((home + stride * hop) % RANKS, (home + stride * (hop + 1)) % RANKS);
                    data[to][c] += data[from][c];
                }
                for hop in 0..RANKS - 1 {
                    let (from, to) = ((home + stride * hop) % RANKS, (home + stride * (hop + 1)) % RANKS);
                    data[to][c] = data[from][c];
                }
            }
        }
        stride = stride % RANKS + 1;
        while !reaches_all(stride) {
            stride = stride % RANKS + 1;
        }
    }
}

fn main() -> std::process::ExitCode {
    quadrille::example::run(multi_channel_ring_all_reduce())
}
