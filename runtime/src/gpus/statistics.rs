//! Statistics of calls.

use super::timeline::Timeline;
use quadrille_compiler::program::ids::Rank;
use quadrille_vgpu::{ClassCount, InstructionClass, LinkStatistics, Waits};
use std::time::Duration;

/// Statistics of calls. All but `elapsed` is told by virtual GPUs only.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Statistics {
    /// PTX instructions, counted once a warp that executes them.
    pub instructions: u64,
    /// PTX instructions, counted once a lane that executes them.
    pub lane_instructions: u64,
    /// Accesses of ranks to peers' memory, by accessing rank and peer; pairs without any are left out.
    pub links: Vec<Link>,
    /// Instructions by class, of all classes.
    pub classes: Vec<(InstructionClass, ClassCount)>,
    /// Barriers and polls.
    pub waits: Waits,
    /// The times of the calls, if the GPUs have a clock.
    pub timeline: Option<Timeline>,
    /// From the first call's start to the last one's end by the GPUs' own clocks, on the rank that took longest; `None` on
    /// virtual GPUs.
    pub elapsed: Option<Duration>,
}

/// The accesses of one rank's kernels to a peer's memory. Signals and polls count as well.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Link {
    /// The rank whose kernels loaded and stored.
    pub rank: Rank,
    /// The rank whose memory it was.
    pub peer: Rank,
    /// Bytes loaded by get: they cross the link from `peer` to `rank`.
    pub bytes_loaded: u64,
    /// Bytes stored by put: they cross the link from `rank` to `peer`.
    pub bytes_stored: u64,
    /// The same by kind, width, and whether it is a flag or data.
    pub counts: LinkStatistics,
}

impl Statistics {
    /// Bytes that crossed the directed link `from` -> `to`: loaded by `to`, or stored by `from`.
    pub fn bytes(&self, from: Rank, to: Rank) -> u64 {
        let crossed = |link: &Link| match (link.rank, link.peer) {
            ends if ends == (to, from) => link.bytes_loaded,
            ends if ends == (from, to) => link.bytes_stored,
            _ => 0,
        };
        self.links.iter().map(crossed).sum()
    }
}
