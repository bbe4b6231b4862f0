//! `entry-exit`: a peer's buffer touched before that peer's kernel is known to have begun with an equal call, or after
//! it may have ended.

use super::happens_before::{Clock, Ended, Observe, Stamp};
use super::site::Sites;
use crate::diagnostic::{Check, Diagnostic, Loc};
use crate::ids::{Rank, Slice};
use crate::schedule::{Action, Step};
use std::collections::{BTreeMap, HashMap};

/// Watches every access to a peer's buffer.
pub(super) struct EntryExit<'a> {
    sites: &'a Sites<'a>,
    /// Touches of a rank that was not known to have begun.
    early: Vec<(Rank, Stamp, Slice)>,
    /// For each rank and block of another rank the last touch (a block's touches are in order).
    last: HashMap<(Rank, u32), (Stamp, Slice)>,
}

impl<'a> EntryExit<'a> {
    pub(super) fn new(sites: &'a Sites<'a>) -> EntryExit<'a> {
        EntryExit { sites, early: Vec::new(), last: HashMap::new() }
    }

    /// One finding a statement and direction, given how the walk ended.
    pub(super) fn findings(self, ended: &Ended) -> Vec<Diagnostic> {
        let mut late: Vec<_> = self
            .last
            .iter()
            .filter(|((rank, _), (stamp, _))| {
                !self.sites.blocks.of_rank(*rank).any(|block| ended.clocks[block].covers(*stamp))
            })
            .map(|(&(rank, _), &(stamp, slice))| (rank, stamp, slice))
            .collect();
        late.sort_unstable_by_key(|&(rank, stamp, _)| (rank, stamp.block, stamp.step));
        let mut findings = self.group(&self.early, |rank, at| {
            (
                format!("is touched before {rank}'s kernel is known to have begun with the same call"),
                format!("missing: a wait of {at} for the start of {rank}, or for somebody who compared hashes with it"),
            )
        });
        findings.extend(self.group(&late, |rank, at| {
            (
                format!("is touched after {rank}'s kernel may have ended"),
                format!("missing: a wait of a block of {rank} for {at} before the kernel ends"),
            )
        }));
        findings
    }

    fn group(
        &self,
        touches: &[(Rank, Stamp, Slice)],
        words: impl Fn(Rank, String) -> (String, String),
    ) -> Vec<Diagnostic> {
        let mut groups: BTreeMap<Loc, (&(Rank, Stamp, Slice), usize)> = BTreeMap::new();
        for touch in touches {
            groups.entry(self.sites.loc(touch.1)).and_modify(|(_, more)| *more += 1).or_insert((touch, 0));
        }
        let describe = |(loc, (&(rank, stamp, slice), more)): (Loc, (&(Rank, Stamp, Slice), usize))| {
            let (what, missing) = words(rank, self.sites.blocks.place(stamp.block as usize).to_string());
            let finding = Diagnostic::new(Check::EntryExit, loc, format!("{slice} {what}"))
                .note(format!("by {}", self.sites.name(stamp)))
                .note(missing);
            if more == 0 { finding } else { finding.note(format!("{more} more likewise")) }
        };
        groups.into_iter().map(describe).collect()
    }
}

impl Observe for EntryExit<'_> {
    fn moved(&mut self, at: Stamp, step: &Step, clock: &Clock) {
        let own = self.sites.blocks.place(at.block as usize).rank;
        let Action::Move { sources, dests } = &step.action else { return };
        for &slice in sources.iter().chain(dests).filter(|s| s.rank != own) {
            if !clock.agreed.contains(slice.rank) {
                self.early.push((slice.rank, at, slice));
            }
            self.last.insert((slice.rank, at.block), (at, slice));
        }
    }
}
