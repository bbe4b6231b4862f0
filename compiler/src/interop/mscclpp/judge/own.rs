//! Calls in a row, as MSCCL++ runs them: kernels begin and end, and what runs on a GPU between them uses the buffers.
//!
//! A kernel begins when what its GPU ran before is over. So whoever knows that a kernel has begun, by a signal that may be
//! relaxed or by a packet, knows that. When it ends, the GPU goes on with what uses `input` and `output`: all accesses of
//! peers have to be known to be over to some thread of it by then. Accesses by the switch are strong ones at system scope: a
//! relaxed signal after them, as MSCCL++'s own plans have it, tells of them. Scratch is used by the next call alone, or with two halves by
//! the one after it. Puts by port go on until a flush, or until a thread hears of their end from the peer.

use super::clock::{Clock, Known, Stamp};
use super::race::Access;
use super::{CellKey, Judge};
use crate::diagnostic::Diagnostic;
use crate::interop::mscclpp::plan::{At, Plan};
use crate::interop::mscclpp::run::PlanOrder;
use crate::program::ids::{Buffer, Location, Rank};

/// Judges calls in a row.
pub(in crate::interop::mscclpp) fn own(
    plan: &Plan,
    order: &PlanOrder,
    locate: impl Fn(At) -> Location,
) -> OwnJudgement {
    let gpus = plan.document.gpus.len();
    let clocks = clocks(plan);
    let double = plan.document.double;
    let begun = vec![Clock::new(clocks); gpus];
    let mut judge = Judge::new(plan, order, clocks);
    judge.calls = Some(Calls { call: 0, double, strong: plan.blocks.len() + gpus, begun });
    for call in 0..if double { 3 } else { 2 } {
        judge.begin(call);
        judge.call(&locate);
        judge.end();
    }
    OwnJudgement { trailing: judge.trailing, findings: judge.races.into_findings() }
}

/// The judgement of calls in a row.
pub(in crate::interop::mscclpp) struct OwnJudgement {
    pub(in crate::interop::mscclpp) findings: Vec<Diagnostic>,
    /// Puts by port may still read a GPU's own buffer when its kernel ends.
    pub(in crate::interop::mscclpp) trailing: bool,
}

/// The calls that are judged.
pub(super) struct Calls {
    /// The one that runs.
    pub(super) call: u32,
    /// Scratch has two halves.
    double: bool,
    /// The first clock of accesses by the switch.
    strong: usize,
    /// The knowledge of each GPU when its kernel begins.
    begun: Vec<Clock>,
}

/// A clock for each block, for the begin of each kernel, for each block's accesses by the switch, and one that never advances.
fn clocks(plan: &Plan) -> usize {
    2 * plan.blocks.len() + plan.document.gpus.len() + 1
}

impl Calls {
    /// The clock of a block's accesses by the switch.
    pub(super) fn strong(&self, block: usize) -> usize {
        self.strong + block
    }

    /// The knowledge of whoever knows that the kernel of a block has begun.
    pub(super) fn begun(&self, plan: &Plan, block: usize) -> Clock {
        self.begun[plan.blocks[block].0.rank.0 as usize].clone()
    }

    /// The half of a buffer that the call uses.
    pub(super) fn half(&self, buffer: Buffer) -> u32 {
        if self.double && buffer == Buffer::Scratch { self.call % 2 } else { 0 }
    }

    /// Returns true if a peer's buffer is touched that what ran before its kernel may still use.
    pub(super) fn before_begin(
        &self,
        plan: &Plan,
        key: CellKey,
        at: &Stamp,
        clock: &Clock,
        heard: Option<&Known>,
    ) -> bool {
        let Location { buffer, rank, .. } = key.location;
        if buffer == Buffer::Scratch || rank == plan.blocks[at.block].0.rank {
            return false;
        }
        let begin = plan.blocks.len() + rank.0 as usize;
        let knows = |known: &Known| known.phases[begin] > self.call;
        !(knows(&clock.done) || knows(&clock.read) || heard.is_some_and(knows))
    }
}

impl Judge<'_> {
    /// All kernels of a call begin.
    fn begin(&mut self, call: u32) {
        let blocks = self.plan.blocks.len();
        for gpu in 0..self.plan.document.gpus.len() {
            let mut clock = self.joined(Rank(gpu as u32));
            clock.reach(blocks + gpu, call + 1);
            let own = self.plan.blocks.iter().enumerate().filter(|(_, (at, _))| at.rank.0 as usize == gpu);
            for (block, _) in own {
                self.blocks[block].clock = clock.clone();
            }
            if let Some(calls) = &mut self.calls {
                calls.call = call;
                calls.begun[gpu] = clock;
            }
        }
    }

    /// The knowledge of all blocks of a GPU.
    fn joined(&self, gpu: Rank) -> Clock {
        let mut clock = Clock::new(clocks(self.plan));
        let own = self.blocks.iter().zip(&self.plan.blocks).filter(|(_, (at, _))| at.rank == gpu);
        own.for_each(|(block, _)| clock.join(&block.clock));
        clock
    }

    /// All kernels of a call end, and what runs on their GPUs next uses their buffers.
    fn end(&mut self) {
        for block in 0..self.blocks.len() {
            self.sync(block);
        }
        let clocks: Vec<Clock> =
            (0..self.plan.document.gpus.len()).map(|gpu| self.joined(Rank(gpu as u32))).collect();
        let mut cells: Vec<_> = std::mem::take(&mut self.cells).into_iter().collect();
        cells.sort_unstable_by_key(|(key, _)| *key);
        for (key, cell) in cells {
            let Location { buffer, rank, .. } = key.location;
            if buffer == Buffer::Scratch {
                self.cells.insert(key, cell);
                continue;
            }
            let Some(clock) = clocks.get(rank.0 as usize) else { continue };
            let over = |stamp: &Stamp| clock.done.covers(stamp) || clock.read.covers(stamp);
            let store = cell.store.filter(|stamp| !clock.done.covers(stamp));
            // A GPU's own put goes on reading what it puts; that is a remark.
            let foreign =
                |stamp: &Stamp| stamp.clock == stamp.block || self.plan.blocks[stamp.block].0.rank != rank;
            let read = cell.reads.iter().copied().find(|stamp| !over(stamp) && foreign(stamp));
            self.trailing |= cell.reads.iter().any(|stamp| !over(stamp) && !foreign(stamp));
            let late = store.map(|stamp| Access { stamp, stores: true });
            if let Some(access) = late.or(read.map(|stamp| Access { stamp, stores: false })) {
                self.too_late(key.location, access);
            }
        }
    }
}
