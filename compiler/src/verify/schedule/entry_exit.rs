//! `entry-exit`: a peer's buffer touched before that peer's kernel is known to have begun with an equal call, or after
//! it may have ended.

use super::happens_before::{BlockKnowledge, Ended, StepStamp, WalkObserver};
use super::site::Sites;
use crate::diagnostic::{Check, Diagnostic, Loc};
use crate::program::ids::{Rank, Slice};
use crate::schedule::{Action, Operand, Step};
use std::collections::{BTreeMap, HashMap};

/// A block's access to a peer's buffer.
#[derive(Clone, Copy)]
struct PeerAccess {
    at: StepStamp,
    slice: Slice,
    stores: bool,
}

/// Watches every access to a peer's buffer.
pub(super) struct EntryExit<'a> {
    sites: &'a Sites<'a>,
    /// Touches of a rank that was not known to have begun.
    early: Vec<PeerAccess>,
    /// For each rank and block of another rank the last touch (a block's touches are in order).
    last: HashMap<(Rank, u32), PeerAccess>,
}

impl<'a> EntryExit<'a> {
    pub(super) fn new(sites: &'a Sites<'a>) -> EntryExit<'a> {
        EntryExit { sites, early: Vec::new(), last: HashMap::new() }
    }

    /// One finding a statement and direction, given how the walk ended.
    pub(super) fn findings(self, ended: &Ended) -> Vec<Diagnostic> {
        let over = |touch: &PeerAccess| {
            self.sites.blocks.of_rank(touch.slice.rank).any(|block| ended.clocks[block].covers(touch.at))
        };
        let mut late: Vec<PeerAccess> = self.last.values().copied().filter(|touch| !over(touch)).collect();
        late.sort_unstable_by_key(|touch| (touch.slice.rank, touch.at.block, touch.at.step));
        let mut findings = self.group(&self.early, |touch| {
            let (place, rank) = (self.sites.place(touch.at), touch.slice.rank);
            (
                format!("before {rank} is known to have begun the same call"),
                format!(
                    "a wait of {place} for the start of {rank} before step {}, itself or by way of a rank that is \
                     known to be in the same call",
                    touch.at.step
                ),
            )
        });
        findings.extend(self.group(&late, |touch| {
            let (place, rank) = (self.sites.place(touch.at), touch.slice.rank);
            let missing = match self.sites.hasty_signal(touch.at, |waiter| waiter.rank == rank) {
                Some(signal) => {
                    format!(
                        "a `sync` of {place} between step {} and its signal at step {signal}",
                        touch.at.step
                    )
                }
                None => format!(
                    "a signal of {place} after its step {}, for which {rank} waits before it ends",
                    touch.at.step
                ),
            };
            (format!("when {rank}'s kernel may have ended"), missing)
        }));
        findings
    }

    fn group(
        &self,
        touches: &[PeerAccess],
        when_and_missing: impl Fn(&PeerAccess) -> (String, String),
    ) -> Vec<Diagnostic> {
        let mut groups: BTreeMap<Loc, (&PeerAccess, u64)> = BTreeMap::new();
        for touch in touches {
            groups.entry(self.sites.loc(touch.at)).and_modify(|(_, more)| *more += 1).or_insert((touch, 0));
        }
        let describe = |(loc, (touch, more)): (Loc, (&PeerAccess, u64))| {
            let (when, missing) = when_and_missing(touch);
            let (place, slice) = (self.sites.place(touch.at), touch.slice);
            let verb = if touch.stores { "stores" } else { "reads" };
            let finding = Diagnostic::new(Check::EntryExit, loc, format!("{place} {verb} {slice} {when}"))
                .note(format!("{} {verb} it", self.sites.name(touch.at)))
                .note(format!("missing: {missing}"));
            if more == 0 {
                finding
            } else {
                let accesses = if more == 1 { "access" } else { "accesses" };
                finding.note(format!("{more} more {accesses} likewise"))
            }
        };
        groups.into_iter().map(describe).collect()
    }
}

impl WalkObserver for EntryExit<'_> {
    fn moved(&mut self, at: StepStamp, step: &Step, clock: &BlockKnowledge) {
        let own = self.sites.place(at).rank;
        let Action::Move { sources, dests, .. } = &step.action else { return };
        // Slots are the communicator's, and outlive calls.
        let reads =
            sources.iter().flat_map(Operand::slices).map(|slice| PeerAccess { at, slice, stores: false });
        let stores =
            dests.iter().flat_map(Operand::slices).map(|slice| PeerAccess { at, slice, stores: true });
        for touch in reads.chain(stores).filter(|touch| touch.slice.rank != own) {
            if !clock.agreed.contains(touch.slice.rank) {
                self.early.push(touch);
            }
            self.last.insert((touch.slice.rank, at.block), touch);
        }
    }
}
