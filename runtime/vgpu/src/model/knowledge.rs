//! Knowledge of what has happened: happens-before in two levels, blocks and the warps inside them.
//!
//! The work of a warp is cut into *times*, that of a block into *phases* (full barriers). Knowledge of a block says "all
//! phases before q", and, for warps of later phases, "all times before t", of all lanes or of some. So a barrier costs
//! one number instead of one a thread, and what a single warp publishes without a barrier stays its own.

use crate::observe::BlockInfo;
use crate::registers::LANES;

/// A stretch of a warp's work that nothing of the same warp divides: no release, no synchronization of lanes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Moment {
    /// The block's number in the model.
    pub(crate) block: u32,
    pub(crate) phase: u32,
    /// The warp's number in its block; asynchronous operations are warps of their own, with high numbers.
    pub(crate) warp: u32,
    pub(crate) time: u32,
}

/// The rank and the number of a launch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LaunchId {
    pub(crate) rank: u32,
    pub(crate) launch: u32,
}

impl LaunchId {
    pub(crate) fn of(block: &BlockInfo) -> LaunchId {
        LaunchId { rank: block.rank as u32, launch: block.launch as u32 }
    }
}

/// Of one warp: the times before `all`, and of `lanes` those before other bounds.
#[derive(Clone, PartialEq, Eq, Debug)]
struct WarpKnown {
    warp: u32,
    /// The phase in which it was learnt; later bounds of phases make it superfluous.
    phase: u32,
    all: u32,
    lanes: Vec<(u32, u32)>,
}

impl WarpKnown {
    fn covers(&self, time: u32, lanes: u32) -> bool {
        let missing =
            |rest: u32, &(mask, before): &(u32, u32)| if time < before { rest & !mask } else { rest };
        time < self.all || self.lanes.iter().fold(lanes, missing) == 0
    }

    fn join(&mut self, other: &WarpKnown) {
        self.all = self.all.max(other.all);
        self.phase = self.phase.max(other.phase);
        for &(mask, before) in &other.lanes {
            self.add(mask, before);
        }
        let all = self.all;
        self.lanes.retain(|&(_, before)| before > all);
    }

    fn add(&mut self, mask: u32, before: u32) {
        if before <= self.all || self.lanes.iter().any(|&(m, b)| b >= before && mask & !m == 0) {
            return;
        }
        self.lanes.retain(|&(m, b)| b > before || m & !mask != 0);
        match self.lanes.iter_mut().find(|(_, b)| *b == before) {
            Some((m, _)) => *m |= mask,
            None => self.lanes.push((mask, before)),
        }
    }
}

/// Of one block: all phases before `before`, and what is known of warps beyond.
#[derive(Clone, PartialEq, Eq, Debug)]
struct BlockKnown {
    block: u32,
    before: u32,
    warps: Vec<WarpKnown>,
}

impl BlockKnown {
    fn join(&mut self, other: &BlockKnown) {
        self.before = self.before.max(other.before);
        for theirs in &other.warps {
            match self.warps.iter_mut().find(|w| w.warp == theirs.warp) {
                Some(own) => own.join(theirs),
                None => self.warps.push(theirs.clone()),
            }
        }
        let before = self.before;
        self.warps.retain(|w| w.phase >= before);
    }

    /// Returns true if joining `other` would change nothing.
    fn includes(&self, other: &BlockKnown) -> bool {
        let included = |theirs: &WarpKnown| {
            theirs.phase < self.before
                || self.warps.iter().any(|own| {
                    own.warp == theirs.warp
                        && own.all >= theirs.all
                        && theirs.lanes.iter().all(|&(mask, before)| own.covers(before - 1, mask))
                })
        };
        self.before >= other.before && other.warps.iter().all(included)
    }
}

/// A set of moments that is closed under what came before each.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Knowledge {
    /// By rank: its launches with numbers below this.
    launches: Vec<u32>,
    /// By ascending block.
    blocks: Vec<BlockKnown>,
}

impl Knowledge {
    /// Returns true if everything that `lanes` did at a moment is known.
    pub(crate) fn covers(&self, moment: Moment, lanes: u32, home: LaunchId) -> bool {
        if self.launches.get(home.rank as usize).is_some_and(|&before| home.launch < before) {
            return true;
        }
        let Ok(at) = self.blocks.binary_search_by_key(&moment.block, |b| b.block) else { return false };
        let block = &self.blocks[at];
        moment.phase < block.before
            || block.warps.iter().any(|w| w.warp == moment.warp && w.covers(moment.time, lanes))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.blocks.is_empty() && self.launches.is_empty()
    }

    /// Adds everything that `other` knows.
    pub(crate) fn join(&mut self, other: &Knowledge) {
        if self.launches.len() < other.launches.len() {
            self.launches.resize(other.launches.len(), 0);
        }
        for (own, theirs) in self.launches.iter_mut().zip(&other.launches) {
            *own = (*own).max(*theirs);
        }
        for theirs in &other.blocks {
            match self.blocks.binary_search_by_key(&theirs.block, |b| b.block) {
                Ok(at) if self.blocks[at].includes(theirs) => {}
                Ok(at) => self.blocks[at].join(theirs),
                Err(at) => self.blocks.insert(at, theirs.clone()),
            }
        }
    }

    /// Adds all phases of a block before `phase`.
    pub(crate) fn add_phases(&mut self, block: u32, phase: u32) {
        self.add(&BlockKnown { block, before: phase, warps: Vec::new() });
    }

    /// Adds the times before `before` of lanes of a warp, learnt in `phase`.
    pub(crate) fn add_lanes(&mut self, (block, phase, warp): (u32, u32, u32), lanes: u32, before: u32) {
        let known = if lanes == u32::MAX {
            WarpKnown { warp, phase, all: before, lanes: Vec::new() }
        } else {
            WarpKnown { warp, phase, all: 0, lanes: vec![(lanes, before)] }
        };
        self.add(&BlockKnown { block, before: 0, warps: vec![known] });
    }

    fn add(&mut self, known: &BlockKnown) {
        match self.blocks.binary_search_by_key(&known.block, |b| b.block) {
            Ok(at) => self.blocks[at].join(known),
            Err(at) => self.blocks.insert(at, known.clone()),
        }
    }

    /// Adds a rank's launches with numbers below `before`, and drops what that makes superfluous.
    pub(crate) fn add_launches(&mut self, rank: u32, before: u32, home: impl Fn(u32) -> LaunchId) {
        let rank = rank as usize;
        if self.launches.len() <= rank {
            self.launches.resize(rank + 1, 0);
        }
        self.launches[rank] = self.launches[rank].max(before);
        let launches = &self.launches;
        self.blocks.retain(|b| {
            let home = home(b.block);
            launches.get(home.rank as usize).is_none_or(|&before| home.launch >= before)
        });
    }
}

/// Another way to the same bytes than by generic accesses to their own address: an order between both takes a fence
/// of its own besides happens-before (PTX ISA, "Proxies").
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Proxy {
    /// Bulk copies.
    Async,
    /// Another virtual address.
    Alias,
}

/// The knowledge of a thread, and the parts of it that fences of the proxies have put in order with their accesses.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct ThreadKnowledge {
    pub(crate) known: Knowledge,
    fenced: [Knowledge; 2],
}

impl ThreadKnowledge {
    pub(crate) fn join(&mut self, other: &ThreadKnowledge) {
        self.known.join(&other.known);
        for (own, theirs) in self.fenced.iter_mut().zip(&other.fenced) {
            if !theirs.is_empty() {
                own.join(theirs);
            }
        }
    }

    /// The part that a fence of this proxy has put in order.
    pub(crate) fn fenced(&self, proxy: Proxy) -> &Knowledge {
        &self.fenced[proxy as usize]
    }

    pub(crate) fn fenced_mut(&mut self, proxy: Proxy) -> &mut Knowledge {
        &mut self.fenced[proxy as usize]
    }
}

/// The knowledge that the lanes of a warp have of each other's work.
#[derive(Clone, Debug)]
pub(crate) struct LaneClocks {
    /// All lanes know the times before this of all lanes but those in `gone`.
    converged: u32,
    /// Lanes that had exited when the others last met, and the times before which they are known.
    gone: Vec<(u32, u32)>,
    /// By knowing lane, then known lane: the times before this. Only after synchronizations of parts of the warp.
    rows: Option<Box<[[u32; LANES]; LANES]>>,
}

impl LaneClocks {
    pub(crate) fn new() -> LaneClocks {
        LaneClocks { converged: 0, gone: Vec::new(), rows: None }
    }

    /// Returns true if `lane` knows what `lanes` did at `time`; its own work it knows.
    pub(crate) fn knows(&self, lane: usize, lanes: u32, time: u32) -> bool {
        let others = lanes & !(1 << lane);
        if others == 0 {
            return true;
        }
        if time < self.converged {
            return self.gone.iter().all(|&(gone, before)| gone & others == 0 || time < before);
        }
        let Some(rows) = &self.rows else { return false };
        crate::registers::lanes(others).all(|other| time < rows[lane][other])
    }

    /// Returns true if all lanes know what all did at `time`.
    pub(crate) fn all_know(&self, time: u32) -> bool {
        time < self.converged && self.gone.is_empty()
    }

    /// All lanes of `live` have synchronized: their times before `time` are known to all.
    pub(crate) fn converge(&mut self, time: u32, live: u32) {
        let newly = self.gone.iter().fold(!live, |rest, (gone, _)| rest & !gone);
        if newly != 0 {
            self.gone.push((newly, self.converged));
        }
        (self.converged, self.rows) = (time, None);
    }

    /// Before which times all lanes know each.
    fn known(&self) -> [u32; LANES] {
        let mut known = [self.converged; LANES];
        for &(gone, before) in &self.gone {
            crate::registers::lanes(gone).for_each(|lane| known[lane] = before);
        }
        known
    }

    /// The lanes of `mask` have synchronized, and know of each other the times before `time`.
    pub(crate) fn meet(&mut self, mask: u32, time: u32) {
        let known = self.known();
        let rows = self.rows.get_or_insert_with(|| Box::new([known; LANES]));
        let mut together = known;
        for lane in crate::registers::lanes(mask) {
            for (all, own) in together.iter_mut().zip(&rows[lane]) {
                *all = (*all).max(*own);
            }
        }
        for lane in crate::registers::lanes(mask) {
            together[lane] = time;
        }
        for lane in crate::registers::lanes(mask) {
            rows[lane] = together;
        }
    }

    /// Returns true if lanes differ in what they know of each other.
    pub(crate) fn divided(&self) -> bool {
        self.rows.is_some()
    }

    /// Adds what `lane` knows of its warp (block, phase, number), without its own work since it last met others.
    pub(crate) fn publish_others(&self, warp: (u32, u32, u32), lane: usize, to: &mut Knowledge) {
        let here = self.gone.iter().fold(u32::MAX, |rest, (gone, _)| rest & !gone);
        for &(lanes, before) in self.gone.iter().chain(&[(here, self.converged)]) {
            if before > 0 {
                to.add_lanes(warp, lanes, before);
            }
        }
        if let Some(rows) = &self.rows {
            for (other, &before) in rows[lane].iter().enumerate() {
                if before > self.converged {
                    to.add_lanes(warp, 1 << other, before);
                }
            }
        }
    }

    /// Adds what `lane` knows of its warp at `time`, its own work up to now included.
    pub(crate) fn publish(&self, warp: (u32, u32, u32), lane: usize, time: u32, to: &mut Knowledge) {
        self.publish_others(warp, lane, to);
        to.add_lanes(warp, 1 << lane, time + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOME: LaunchId = LaunchId { rank: 0, launch: 0 };

    fn at(block: u32, phase: u32, warp: u32, time: u32) -> Moment {
        Moment { block, phase, warp, time }
    }

    #[test]
    fn phases_cover_all_warps_and_lanes_only_themselves() {
        let mut known = Knowledge::default();
        known.add_phases(3, 2);
        known.add_lanes((3, 2, 1), 0b10, 7);
        assert!(known.covers(at(3, 1, 5, 99), u32::MAX, HOME));
        assert!(!known.covers(at(3, 2, 5, 0), 1, HOME));
        assert!(known.covers(at(3, 2, 1, 6), 0b10, HOME));
        assert!(!known.covers(at(3, 2, 1, 7), 0b10, HOME));
        assert!(!known.covers(at(3, 2, 1, 6), 0b11, HOME));
        assert!(!known.covers(at(4, 0, 0, 0), 1, HOME));
    }

    #[test]
    fn joining_is_a_union() {
        let mut a = Knowledge::default();
        a.add_lanes((1, 0, 0), 0b01, 5);
        a.add_lanes((1, 0, 0), 0b10, 3);
        let mut b = Knowledge::default();
        b.add_lanes((1, 0, 0), u32::MAX, 2);
        b.add_lanes((1, 0, 0), 0b10, 9);
        b.add_phases(0, 1);
        let mut both = a.clone();
        both.join(&b);
        let mut other = b.clone();
        other.join(&a);
        for lane in 0..3 {
            for time in 0..10 {
                let moment = at(1, 0, 0, time);
                let either = a.covers(moment, 1 << lane, HOME) || b.covers(moment, 1 << lane, HOME);
                assert_eq!(both.covers(moment, 1 << lane, HOME), either, "lane {lane}, time {time}");
                assert_eq!(other.covers(moment, 1 << lane, HOME), either);
            }
        }
        assert!(both.covers(at(0, 0, 9, 9), u32::MAX, HOME));
        let before = both.clone();
        both.join(&a);
        assert_eq!(both, before);
    }

    #[test]
    fn a_launch_that_has_ended_needs_no_blocks() {
        let home = |block| LaunchId { rank: 2, launch: block };
        let mut known = Knowledge::default();
        known.add_phases(0, 4);
        known.add_phases(1, 1);
        known.add_launches(2, 1, home);
        assert!(known.covers(at(0, 9, 0, 0), 1, home(0)));
        assert!(known.covers(at(1, 0, 0, 0), 1, home(1)) && !known.covers(at(1, 1, 0, 0), 1, home(1)));
        assert_eq!(known.blocks.len(), 1);
    }

    #[test]
    fn lanes_learn_of_those_they_meet() {
        let mut lanes = LaneClocks::new();
        assert!(lanes.knows(4, 1 << 4, 0) && !lanes.knows(4, 1 << 5, 0));
        lanes.meet(0b0011, 1);
        lanes.meet(0b0110, 2);
        // Lane 2 has it from lane 1 what lane 0 did before they met, and not the other way round.
        assert!(lanes.knows(2, 0b0011, 0) && !lanes.knows(0, 0b0100, 0));
        assert!(!lanes.knows(2, 0b0001, 1) && lanes.knows(2, 0b0010, 1));
        let mut known = Knowledge::default();
        lanes.publish((0, 0, 0), 2, 6, &mut known);
        assert!(known.covers(at(0, 0, 0, 0), 0b0111, HOME) && known.covers(at(0, 0, 0, 6), 0b0100, HOME));
        assert!(!known.covers(at(0, 0, 0, 1), 0b0001, HOME));
        lanes.converge(3, u32::MAX);
        assert!(lanes.knows(31, u32::MAX, 2) && !lanes.knows(31, 1, 3));
        // Of a lane that exits, the others know no more.
        lanes.converge(7, !1);
        lanes.converge(9, !3);
        assert!(
            lanes.knows(31, 1, 2)
                && !lanes.knows(31, 1, 3)
                && lanes.knows(31, 2, 6)
                && !lanes.knows(31, 2, 7)
        );
        assert!(lanes.knows(31, !3, 8) && !lanes.all_know(8));
        let mut known = Knowledge::default();
        lanes.publish_others((0, 0, 0), 4, &mut known);
        assert!(known.covers(at(0, 0, 0, 8), !3, HOME) && !known.covers(at(0, 0, 0, 3), 1, HOME));
    }
}
