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

use std::fmt::Write;
use std::sync::Arc;

use crate::error::{Near, Place, Space};
use crate::execute::warp::{Progress, Somewhere};
use crate::registers::LANES;

/// An address that a waiting warp reads again and again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Polled {
    /// First address of the access.
    pub address: u64,
    /// Bytes of the access.
    pub bytes: u64,
    /// State space: global or shared.
    pub space: Space,
    /// The value that lies there.
    pub value: Vec<u8>,
    /// The allocation, for global memory.
    pub near: Option<Near>,
    /// The reading instruction and its thread of the lowest lane.
    pub place: Place,
}

/// What a warp waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitsFor {
    /// Threads have arrived at a barrier of the block.
    Barrier {
        /// Number of the barrier.
        barrier: u32,
        /// Threads that have arrived.
        arrived: u32,
        /// Threads that it waits for.
        expected: u32,
        /// Threads of the block that have exited and so will not come.
        exited: u32,
        /// The barrier instruction and its thread of the lowest lane.
        place: Place,
    },
    /// Lanes of the warp wait for others of it.
    Lanes {
        /// Lanes that wait.
        waiting: u32,
        /// The instruction and its thread of the lowest lane.
        place: Place,
    },
    /// Memory that others would have to change.
    Memory(Vec<Polled>),
}

/// A live warp of a machine that hangs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Rank.
    pub rank: usize,
    /// Kernel.
    pub kernel: Arc<str>,
    /// Block coordinates x, y, z.
    pub block: [u32; 3],
    /// Number of the warp in its block.
    pub warp: u32,
    /// What its lanes wait for.
    pub for_what: Vec<WaitsFor>,
}

const MAX_RENDERED: usize = 64;

/// One line a wait; long lists are cut.
pub(crate) fn render(waiting: &[Waiting]) -> String {
    let mut out = String::new();
    let source = |place: &Place| match &place.source {
        Some(source) => format!("PTX line {} ({source})", place.ptx_line),
        None => format!("PTX line {}", place.ptx_line),
    };
    for w in waiting.iter().take(MAX_RENDERED) {
        let [x, y, z] = w.block;
        for what in &w.for_what {
            let _ = write!(
                out,
                "  rank {}, kernel {}, block ({x}, {y}, {z}), warp {}: ",
                w.rank, w.kernel, w.warp
            );
            match what {
                WaitsFor::Barrier { barrier, arrived, expected, exited, place } => {
                    let _ = write!(out, "barrier {barrier}, {arrived} of {expected} threads have arrived");
                    if *exited > 0 {
                        let _ = write!(out, ", {exited} threads of the block have exited");
                    }
                    let _ = writeln!(out, ", {}", source(place));
                }
                WaitsFor::Lanes { waiting, place } => {
                    let _ =
                        writeln!(out, "lanes {waiting:#010x} wait for others of the warp, {}", source(place));
                }
                WaitsFor::Memory(polled) => {
                    let _ = write!(out, "memory");
                    for p in polled {
                        let value: String = p.value.iter().rev().map(|b| format!("{b:02x}")).collect();
                        let _ = write!(out, " {:#x}", p.address);
                        match &p.near {
                            Some(near) => {
                                let _ = write!(out, " ({near})");
                            }
                            None => {
                                let _ = write!(out, " ({})", p.space);
                            }
                        }
                        let _ = write!(out, " = 0x{value}, {};", source(&p.place));
                    }
                    out.push('\n');
                }
            }
        }
    }
    if waiting.len() > MAX_RENDERED {
        let _ = writeln!(out, "  and {} more warps", waiting.len() - MAX_RENDERED);
    }
    out
}

/// A read noted while a warp is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Read {
    pub(crate) function: u32,
    pub(crate) pc: u32,
    pub(crate) lane: u32,
    pub(crate) space: Space,
    pub(crate) address: u64,
    pub(crate) bytes: u64,
}

const MAX_READS: usize = 64;

/// What is known about one warp's repetition.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watcher {
    snapshot: Option<Box<Progress>>,
    epoch: u64,
    visits: u32,
    power: u32,
    repeats: bool,
    /// Where the state last differed from the snapshot.
    differed: Option<Somewhere>,
    pub(crate) reads: Vec<Read>,
    /// What each lane polled last.
    polls: Vec<Option<Poll>>,
}

/// What a strong load of a lane gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Poll {
    pub(crate) function: u32,
    pub(crate) pc: u32,
    pub(crate) address: u64,
    /// Of all elements.
    pub(crate) value: u64,
}

impl Watcher {
    /// Notes a backward branch in a state, at a time when memory has seen `epoch` changes.
    pub(crate) fn observe(&mut self, progress: &Progress, epoch: u64) {
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

    fn restart(&mut self, progress: &Progress, epoch: u64, power: u32) {
        self.snapshot = Some(Box::new(progress.clone()));
        (self.epoch, self.visits, self.power, self.repeats) = (epoch, 0, power, false);
        self.reads.clear();
    }

    /// Forgets everything: memory changes.
    pub(crate) fn reset(&mut self) {
        *self = Watcher { polls: std::mem::take(&mut self.polls), ..Watcher::default() };
    }

    /// Takes note of what a lane polled; says whether it is what it polled before.
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
    pub(crate) fn note(&mut self, read: Read) {
        if !self.repeats && self.reads.len() < MAX_READS && !self.reads.contains(&read) {
            self.reads.push(read);
        }
    }
}
