//! Bandwidths as nccl-tests defines them (its doc/PERFORMANCE.md). GB/s is 10^9 bytes a second.

use quadrille_compiler::program::kind::Kind;
use std::time::Duration;

/// The two bandwidths of one call, in GB/s.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Bandwidth {
    /// Bytes of the message over the time.
    pub algbw: f64,
    /// algbw times [`Kind::busbw_factor`]: what the busiest link carried in one direction, comparable between kinds
    /// and world sizes.
    pub busbw: f64,
}

impl Bandwidth {
    /// For a message of `bytes` (the larger of one rank's input and output, as [`Kind::bytes`] gives it) in `time`.
    /// 0 where there are no bytes, infinite where there is no time.
    pub fn new(kind: Kind, ranks: u32, bytes: u64, time: Duration) -> Bandwidth {
        let algbw = if bytes == 0 { 0.0 } else { bytes as f64 / time.as_secs_f64() / 1e9 };
        // One rank moves nothing: 0 and not 0 times infinity.
        let factor = kind.busbw_factor(ranks);
        Bandwidth { algbw, busbw: if factor == 0.0 { 0.0 } else { algbw * factor } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn busbw(kind: Kind, ranks: u32) -> f64 {
        Bandwidth::new(kind, ranks, 1 << 30, Duration::from_millis(10)).busbw
    }

    #[test]
    fn the_factors_are_those_of_nccl_tests() {
        let algbw = Bandwidth::new(Kind::AllReduce, 8, 1 << 30, Duration::from_millis(10)).algbw;
        assert!((algbw - 107.3741824).abs() < 1e-9);
        assert!((busbw(Kind::AllReduce, 8) - algbw * 1.75).abs() < 1e-9);
        for kind in [Kind::AllGather, Kind::ReduceScatter, Kind::AllToAll] {
            assert!((busbw(kind, 8) - algbw * 0.875).abs() < 1e-9);
        }
        assert!((busbw(Kind::Broadcast, 8) - algbw).abs() < 1e-9);
    }

    #[test]
    fn the_edges_are_numbers() {
        let none = Bandwidth::new(Kind::AllReduce, 8, 0, Duration::ZERO);
        assert_eq!(none, Bandwidth { algbw: 0.0, busbw: 0.0 });
        assert_eq!(Bandwidth::new(Kind::AllReduce, 1, 8, Duration::ZERO).busbw, 0.0);
    }
}
