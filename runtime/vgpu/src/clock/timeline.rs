//! The timeline of a run, in virtual time.

use super::topology::Picoseconds;

/// The times at which a run's blocks ran, by the virtual clock: a prediction, not a measurement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timing {
    /// When the last block of the run ended, counted from its begin.
    pub end: Picoseconds,
    /// When the last block of each rank ended.
    pub ranks: Vec<Picoseconds>,
    /// The timeline, if it was asked for.
    pub timeline: Option<ClockTimeline>,
}

/// The events of a run, by the virtual clock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClockTimeline {
    /// Every block, in the order in which they started.
    pub blocks: Vec<BlockTimes>,
    /// Flags that a block stored and another one saw.
    pub messages: Vec<FlagMessage>,
    /// The use of each directed link that was used.
    pub links: Vec<LinkUse>,
}

/// The times of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlockTimes {
    /// Its rank.
    pub rank: usize,
    /// Number of its launch in the machine.
    pub launch: usize,
    /// Its coordinates x, y, z.
    pub block: [u32; 3],
    /// When it started.
    pub start: Picoseconds,
    /// When its last warp ended.
    pub end: Picoseconds,
    /// When its warps were at labelled lines ([`crate::Machine::label_lines`]), by their begin.
    pub spans: Vec<Span>,
}

/// Warps of a block were at lines with one label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The label.
    pub label: u32,
    /// When the last of the warps that came there did.
    pub start: Picoseconds,
    /// When the last warp left.
    pub end: Picoseconds,
}

/// A strong store and the load of another block that saw it first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlagMessage {
    /// The storing block, as index into [`ClockTimeline::blocks`].
    pub from: usize,
    /// When it stored.
    pub sent: Picoseconds,
    /// The loading block.
    pub to: usize,
    /// When it had the value.
    pub seen: Picoseconds,
    /// Address of the flag.
    pub address: u64,
}

/// The bytes that crossed a directed link over time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkUse {
    /// The rank that the bytes left.
    pub from: usize,
    /// The rank at which they arrived.
    pub to: usize,
    /// The length of an interval.
    pub interval: Picoseconds,
    /// Bytes of each interval from 0 on, without what goes with packets.
    pub bytes: Vec<u64>,
}
