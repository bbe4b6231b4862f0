//! Hangs: when nothing can change any more.
//!
//! Criterion. A warp *repeats* when, at a backward branch, its whole state (registers, program counters, who waits
//! where) equals its state at an earlier backward branch, and in between no value in any memory has changed and
//! nobody has read a clock. Such a warp goes round for ever unless another warp changes memory. When every live
//! warp repeats or waits at a barrier, nothing changes ever more: that is a hang. A loop that counts, or computes
//! anything, has another state each time, so finite loops are never taken for hangs; a loop that counts for ever, or
//! waits for a clock, is left to the instruction limit.
//!
//! States are compared with Brent's cycle detection, and only while memory has not changed for several rounds.

use crate::execute::progress::{Somewhere, WarpProgress};
use crate::fault::Space;
use crate::registers::LANES;

/// A read noted while a warp is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WatchedRead {
    pub(crate) function: u32,
    pub(crate) pc: u32,
    pub(crate) lane: u32,
    pub(crate) space: Space,
    pub(crate) address: u64,
    pub(crate) bytes: u64,
}

const MAX_READS: usize = 64;

/// The search for the repetition of one warp.
#[derive(Clone, Debug, Default)]
pub(crate) struct RepetitionWatcher {
    snapshot: Option<Box<WarpProgress>>,
    epoch: u64,
    visits: u32,
    power: u32,
    repeats: bool,
    /// The register in which the state last differed from the snapshot.
    differed: Option<Somewhere>,
    pub(crate) reads: Vec<WatchedRead>,
    /// The last poll of each lane.
    polls: Vec<Option<Poll>>,
}

/// A strong load of a lane, and its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Poll {
    pub(crate) function: u32,
    pub(crate) pc: u32,
    pub(crate) address: u64,
    /// Of all elements.
    pub(crate) value: u64,
}

impl RepetitionWatcher {
    /// Notes a backward branch in a state, at a time when memory has seen `epoch` changes.
    pub(crate) fn observe(&mut self, progress: &WarpProgress, epoch: u64) {
        match &self.snapshot {
            Some(snapshot) if self.epoch == epoch => {
                if self.repeats {
                    return;
                }
                self.visits += 1;
                if !progress.differs(snapshot, &mut self.differed) {
                    self.repeats = true;
                } else if self.visits >= self.power {
                    let power = self.power.saturating_mul(2);
                    self.restart(progress, epoch, power);
                }
            }
            _ => self.restart(progress, epoch, 1),
        }
    }

    fn restart(&mut self, progress: &WarpProgress, epoch: u64, power: u32) {
        self.snapshot = Some(Box::new(progress.clone()));
        (self.epoch, self.visits, self.power, self.repeats) = (epoch, 0, power, false);
        self.reads.clear();
    }

    /// Forgets everything: memory changes.
    pub(crate) fn reset(&mut self) {
        *self = RepetitionWatcher { polls: std::mem::take(&mut self.polls), ..RepetitionWatcher::default() };
    }

    /// Notes a lane's poll; returns true if it equals the one before.
    pub(crate) fn poll(&mut self, lane: usize, poll: Poll) -> bool {
        if self.polls.is_empty() {
            self.polls = vec![None; LANES];
        }
        self.polls[lane].replace(poll) == Some(poll)
    }

    pub(crate) fn repeats(&self, epoch: u64) -> bool {
        self.repeats && self.epoch == epoch
    }

    #[inline]
    pub(crate) fn note(&mut self, read: WatchedRead) {
        if !self.repeats && self.reads.len() < MAX_READS && !self.reads.contains(&read) {
            self.reads.push(read);
        }
    }
}
