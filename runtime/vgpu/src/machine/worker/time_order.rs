//! The order of warps in a run with a clock: the one that can go on first goes on.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Worker;
use crate::clock::Picoseconds;
use crate::machine::Policy;
use crate::observe::Observer;

/// Warps by the time at which they can go on; a seed decides among equals.
#[derive(Debug, Default)]
pub(crate) struct DueWarps {
    due: BinaryHeap<Reverse<(Picoseconds, u64, usize)>>,
    /// By warp: whether it is listed.
    listed: Vec<bool>,
}

impl Worker {
    /// Lists all warps anew: they have other numbers, or have just been started.
    pub(crate) fn list_warps(
        &mut self,
        policy: Policy,
        observer: &mut Option<&mut (dyn Observer + 'static)>,
    ) {
        self.agenda.due.clear();
        self.agenda.listed = vec![false; self.warps.len()];
        (0..self.warps.len()).for_each(|w| self.list(w, policy, observer));
    }

    fn list(&mut self, w: usize, policy: Policy, observer: &mut Option<&mut (dyn Observer + 'static)>) {
        let (warp, Some(clock)) = (&self.warps[w], observer) else { return };
        let Some(Some(block)) = self.blocks.get(warp.block) else { return };
        if warp.live != 0 && !std::mem::replace(&mut self.agenda.listed[w], true) {
            let due = clock.due(block.info.number, warp.index);
            let tie = if policy == Policy::Random { self.random.below(1 << 32) } else { 0 };
            self.agenda.due.push(Reverse((due, tie, w)));
        }
    }

    /// The warp that goes on next.
    pub(crate) fn next_due(&mut self, observer: &mut Option<&mut (dyn Observer + 'static)>) -> Option<usize> {
        let Reverse((now, _, w)) = self.agenda.due.pop()?;
        self.agenda.listed[w] = false;
        let until = self.agenda.due.peek().map_or(Picoseconds::MAX, |Reverse((due, ..))| *due);
        observer.as_mut()?.turn(now, until);
        Some(w)
    }

    /// A warp has had its turn: it goes on later, and so do those that it has ended a wait of. One that could do
    /// nothing waits for such.
    pub(crate) fn had_turn(
        &mut self,
        w: usize,
        ran: u32,
        policy: Policy,
        observer: &mut Option<&mut (dyn Observer + 'static)>,
    ) {
        if ran > 0 {
            self.list(w, policy, observer);
        }
        let slot = self.warps[w].block;
        let Some(Some(block)) = self.blocks.get(slot) else { return };
        if block.wakes.is_empty() {
            return;
        }
        let woken: Vec<usize> = (0..self.warps.len())
            .filter(|&other| {
                let warp = &self.warps[other];
                warp.block == slot && block.wakes.iter().any(|wake| wake.warp == warp.index)
            })
            .collect();
        woken.into_iter().for_each(|other| self.list(other, policy, observer));
    }
}
