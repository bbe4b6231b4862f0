//! The clocks of all blocks and warps, and what each thread has learnt.

use std::sync::Arc;

use super::clock::{Home, Knowledge, Lanes, Moment, Proxy, View};
use super::shadow::{Path, Relation, Stamp};
use crate::isa::Scope;

/// A warp: its block's number in the model and its own in the block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Who {
    pub(crate) block: u32,
    pub(crate) warp: u32,
}

/// What a release publishes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Message {
    pub(crate) view: View,
    /// The narrowest of the scopes that it went through.
    pub(crate) scope: Scope,
    /// Block of the thread that published it.
    pub(crate) from: u32,
}

/// What a release fence has made ready for later stores of lanes.
#[derive(Clone, Debug)]
struct Ready {
    lanes: u32,
    scope: Scope,
    /// Without the lane's own work.
    view: Arc<View>,
    time: u32,
}

#[derive(Clone, Debug)]
struct WarpClock {
    time: u32,
    /// Number of the current moment; 0 if it has none yet.
    epoch: u32,
    lanes: Lanes,
    /// What lanes have learnt since the block's last full barrier.
    learnt: Vec<(u32, View)>,
    ready: Vec<Ready>,
    /// What strong reads have seen, until a fence makes it known.
    seen: Vec<(u32, Scope, Arc<Message>)>,
}

#[derive(Clone, Debug)]
struct BlockClock {
    home: Home,
    phase: u32,
    view: Arc<View>,
    warps: Vec<WarpClock>,
    /// Arrivals at barriers since they last completed: barrier, warp, lanes, what was published, whether it waits.
    arrivals: Vec<Arrival>,
}

#[derive(Clone, Debug)]
struct Arrival {
    barrier: u32,
    warp: u32,
    lanes: u32,
    /// Of arrivals that do not wait.
    view: Option<View>,
}

/// All clocks of a machine since the host last waited for everything.
#[derive(Clone, Debug)]
pub(crate) struct Clocks {
    moments: Vec<Moment>,
    blocks: Vec<BlockClock>,
    /// By rank, what its next launch begins with.
    ends: Vec<View>,
    /// What fences in sequentially consistent order have published: scope, block, view.
    fences: Vec<(Scope, u32, View)>,
    asynchronous: u32,
}

const NOWHERE: Moment = Moment { block: 0, phase: 0, warp: 0, time: 0 };
/// Asynchronous operations are warps with numbers from here on.
const ASYNC_WARPS: u32 = 1 << 16;

impl Clocks {
    pub(crate) fn new(ranks: usize) -> Clocks {
        Clocks {
            moments: vec![NOWHERE],
            blocks: Vec::new(),
            ends: vec![View::default(); ranks],
            fences: Vec::new(),
            asynchronous: 0,
        }
    }

    /// The block of a moment, the moment being that of a stamp.
    pub(crate) fn moment(&self, epoch: u32) -> Moment {
        self.moments[epoch as usize]
    }

    pub(crate) fn start_block(&mut self, home: Home, warps: u32) -> u32 {
        let warp = WarpClock {
            time: 0,
            epoch: 0,
            lanes: Lanes::new(),
            learnt: Vec::new(),
            ready: Vec::new(),
            seen: Vec::new(),
        };
        self.blocks.push(BlockClock {
            home,
            phase: 0,
            view: Arc::new(self.ends[home.rank as usize].clone()),
            warps: vec![warp; warps as usize],
            arrivals: Vec::new(),
        });
        self.blocks.len() as u32 - 1
    }

    /// All blocks of a rank's launch have ended.
    pub(crate) fn end_launch(&mut self, home: Home) {
        let mut end = self.ends[home.rank as usize].clone();
        for block in self.blocks.iter_mut().filter(|b| b.home == home) {
            end.join(&block.view);
            for warp in std::mem::take(&mut block.warps) {
                warp.learnt.iter().for_each(|(_, view)| end.join(view));
            }
        }
        let homes: Vec<Home> = self.blocks.iter().map(|b| b.home).collect();
        let ended = |view: &mut Knowledge| {
            view.add_launches(home.rank, home.launch + 1, |block| homes[block as usize]);
        };
        ended(&mut end.known);
        self.ends[home.rank as usize] = end;
    }

    fn warp(&self, who: Who) -> &WarpClock {
        &self.blocks[who.block as usize].warps[who.warp as usize]
    }

    fn warp_mut(&mut self, who: Who) -> &mut WarpClock {
        &mut self.blocks[who.block as usize].warps[who.warp as usize]
    }

    /// The number of the warp's current moment.
    pub(crate) fn epoch(&mut self, who: Who) -> u32 {
        let phase = self.blocks[who.block as usize].phase;
        let next = self.moments.len() as u32;
        let warp = self.warp_mut(who);
        if warp.epoch == 0 {
            warp.epoch = next;
            let moment = Moment { block: who.block, phase, warp: who.warp, time: warp.time };
            self.moments.push(moment);
        }
        self.warp(who).epoch
    }

    /// The warp's later work is told apart from its earlier work.
    fn tick(&mut self, who: Who) {
        let warp = self.warp_mut(who);
        warp.time += 1;
        warp.epoch = 0;
    }

    /// A moment of its own for an asynchronous operation of a warp, and what its completion publishes.
    pub(crate) fn asynchronous(&mut self, who: Who, lane: usize) -> (u32, View) {
        self.asynchronous += 1;
        let warp = ASYNC_WARPS + self.asynchronous;
        let phase = self.blocks[who.block as usize].phase;
        let mut view = self.published(who, lane);
        view.known.add_lanes((who.block, phase, warp), u32::MAX, 1);
        self.moments.push(Moment { block: who.block, phase, warp, time: 0 });
        self.tick(who);
        (self.moments.len() as u32 - 1, view)
    }

    /// Whether a scope that a thread of block `a` names includes those of block `b`.
    pub(crate) fn reaches(&self, scope: Scope, a: u32, b: u32) -> bool {
        match scope {
            Scope::Cta => a == b,
            Scope::Gpu => self.blocks[a as usize].home.rank == self.blocks[b as usize].home.rank,
            Scope::Sys => true,
        }
    }

    /// What a lane knows, without its own work.
    fn base(&self, who: Who, lane: usize) -> View {
        let block = &self.blocks[who.block as usize];
        let mut view = (*block.view).clone();
        for (_, learnt) in block.warps[who.warp as usize].learnt.iter().filter(|(m, _)| m >> lane & 1 != 0) {
            view.join(learnt);
        }
        view.known.add_phases(who.block, block.phase);
        view
    }

    /// What a release of a lane publishes; the warp's time has to go on then.
    fn published(&self, who: Who, lane: usize) -> View {
        let mut view = self.base(who, lane);
        let block = &self.blocks[who.block as usize];
        let warp = &block.warps[who.warp as usize];
        warp.lanes.publish((who.block, block.phase, who.warp), lane, warp.time, &mut view.known);
        view
    }

    /// A release: what `lanes` publish, each for itself. Later work of the warp is not part of it.
    pub(crate) fn release(&mut self, who: Who, lanes: u32) -> Vec<(usize, View)> {
        let views = crate::access::lanes(lanes).map(|lane| (lane, self.published(who, lane))).collect();
        self.tick(who);
        views
    }

    /// A lane learns what others published.
    pub(crate) fn acquire(&mut self, who: Who, lane: usize, view: &View) {
        let learnt = &mut self.warp_mut(who).learnt;
        match learnt.iter_mut().find(|(mask, _)| *mask == 1 << lane) {
            Some((_, known)) => known.join(view),
            None => learnt.push((1 << lane, view.clone())),
        }
    }

    /// What a relaxed or releasing store of a lane publishes by fences before it.
    pub(crate) fn ready(&self, who: Who, lane: usize, scope: Scope) -> Vec<Message> {
        let phase = self.blocks[who.block as usize].phase;
        let of_lane = self.warp(who).ready.iter().filter(|ready| ready.lanes >> lane & 1 != 0);
        of_lane
            .map(|ready| {
                let mut view = (*ready.view).clone();
                view.known.add_lanes((who.block, phase, who.warp), 1 << lane, ready.time + 1);
                Message { view, scope: ready.scope.min(scope), from: who.block }
            })
            .collect()
    }

    /// A strong read of a lane saw what others published.
    pub(crate) fn see(&mut self, who: Who, lane: usize, scope: Scope, message: &Arc<Message>) {
        let seen = &mut self.warp_mut(who).seen;
        let same = |(_, s, m): &&mut (u32, Scope, Arc<Message>)| *s == scope && Arc::ptr_eq(m, message);
        match seen.iter_mut().find(same) {
            Some((lanes, ..)) => *lanes |= 1 << lane,
            None => seen.push((1 << lane, scope, message.clone())),
        }
    }

    /// A fence: it makes known what lanes have seen, and makes ready what they have done.
    pub(crate) fn fence(&mut self, who: Who, lanes: u32, scope: Scope, acquires: bool, releases: bool) {
        if acquires {
            let seen = std::mem::take(&mut self.warp_mut(who).seen);
            for (mask, read, message) in &seen {
                let scope = scope.min(*read);
                let mutual = self.reaches(message.scope, message.from, who.block)
                    && self.reaches(scope, who.block, message.from);
                if mutual {
                    crate::access::lanes(mask & lanes)
                        .for_each(|lane| self.acquire(who, lane, &message.view));
                }
            }
            // A later fence of a wider scope may make known what this one could not.
            let kept = |(mask, read, message): (u32, Scope, Arc<Message>)| {
                let reached = self.reaches(scope.min(read), who.block, message.from);
                let left = if reached { mask & !lanes } else { mask };
                (left != 0).then_some((left, read, message))
            };
            let kept = seen.into_iter().filter_map(kept).collect();
            self.warp_mut(who).seen = kept;
        }
        if releases {
            let mut rest = lanes;
            while rest != 0 {
                let lane = rest.trailing_zeros() as usize;
                let like = self.alike(who, lane) & rest;
                rest &= !like;
                let view = Arc::new(self.without_own(who, lane));
                let warp = self.warp_mut(who);
                for ready in &mut warp.ready {
                    // Wider fences stay: a later narrow one does not take their reach away.
                    if ready.scope <= scope {
                        ready.lanes &= !like;
                    }
                }
                warp.ready.retain(|ready| ready.lanes != 0);
                let time = warp.time;
                warp.ready.push(Ready { lanes: like, scope, view, time });
            }
            self.tick(who);
        }
    }

    /// Lanes that know the same as `lane`, but for their own work.
    fn alike(&self, who: Who, lane: usize) -> u32 {
        let warp = self.warp(who);
        let mut like = if warp.lanes.divided() { 1 << lane } else { u32::MAX };
        for (mask, _) in &warp.learnt {
            like &= if mask >> lane & 1 != 0 { *mask } else { !mask };
        }
        like
    }

    fn without_own(&self, who: Who, lane: usize) -> View {
        let mut view = self.base(who, lane);
        let block = &self.blocks[who.block as usize];
        let warp = &block.warps[who.warp as usize];
        warp.lanes.publish_others((who.block, block.phase, who.warp), lane, &mut view.known);
        view
    }

    /// A fence in sequentially consistent order: it knows what all those before it knew whose scopes and its own
    /// include each other (PTX ISA, "Fence-SC order").
    pub(crate) fn order_fence(&mut self, who: Who, lanes: u32, scope: Scope) {
        let mut before = View::default();
        for (theirs, block, view) in &self.fences {
            if self.reaches(*theirs, *block, who.block) && self.reaches(scope, who.block, *block) {
                before.join(view);
            }
        }
        crate::access::lanes(lanes).for_each(|lane| self.acquire(who, lane, &before));
        let mut after = View::default();
        self.release(who, lanes).iter().for_each(|(_, view)| after.join(view));
        match self.fences.iter_mut().find(|(s, block, _)| *s == scope && *block == who.block) {
            Some((.., view)) => view.join(&after),
            None => self.fences.push((scope, who.block, after)),
        }
    }

    /// A fence of a proxy: what the lanes know is in order with later accesses of the proxy.
    pub(crate) fn fence_proxy(&mut self, who: Who, lanes: u32, proxy: Proxy) {
        for (lane, view) in self.release(who, lanes) {
            let mut fenced = View::default();
            *fenced.fenced_mut(proxy) = view.known;
            self.acquire(who, lane, &fenced);
        }
    }

    /// Lanes of a warp synchronize (`bar.warp.sync`); `live` are those that have not exited.
    pub(crate) fn meet(&mut self, who: Who, lanes: u32, live: u32) {
        self.tick(who);
        let warp = self.warp_mut(who);
        let time = warp.time;
        let all = live & !lanes == 0;
        if all {
            warp.lanes.converge(time);
        } else {
            warp.lanes.meet(lanes, time);
        }
        let mut learnt: Vec<(u32, View)> = Vec::new();
        for (mask, view) in std::mem::take(&mut warp.learnt) {
            let mask = match (mask & lanes != 0, all) {
                (false, _) => mask,
                (true, false) => mask | lanes,
                (true, true) => u32::MAX,
            };
            match learnt.iter_mut().find(|(m, _)| *m == mask) {
                Some((_, known)) => known.join(&view),
                None => learnt.push((mask, view)),
            }
        }
        warp.learnt = learnt;
    }

    /// Lanes of a warp arrive at a barrier of the block; those that wait go on when it is complete.
    pub(crate) fn arrive(&mut self, who: Who, barrier: u32, lanes: u32, waits: bool) {
        let view = (!waits).then(|| {
            let mut view = View::default();
            self.release(who, lanes).iter().for_each(|(_, published)| view.join(published));
            view
        });
        let arrival = Arrival { barrier, warp: who.warp, lanes, view };
        self.blocks[who.block as usize].arrivals.push(arrival);
    }

    /// A barrier of a block is complete. `threads`: those of the block that have not exited.
    pub(crate) fn complete(&mut self, block: u32, barrier: u32, threads: u32) {
        let clock = &mut self.blocks[block as usize];
        let (arrived, others): (Vec<Arrival>, Vec<Arrival>) =
            std::mem::take(&mut clock.arrivals).into_iter().partition(|a| a.barrier == barrier);
        clock.arrivals = others;
        let waiting: u32 = arrived.iter().filter(|a| a.view.is_none()).map(|a| a.lanes.count_ones()).sum();
        if waiting == threads {
            let mut view = (*clock.view).clone();
            for warp in &mut clock.warps {
                warp.learnt.drain(..).for_each(|(_, learnt)| view.join(&learnt));
                warp.time += 1;
                warp.epoch = 0;
                warp.lanes.converge(warp.time);
            }
            clock.view = Arc::new(view);
            clock.phase += 1;
            return;
        }
        let mut all = View::default();
        for arrival in &arrived {
            match &arrival.view {
                Some(view) => all.join(view),
                None => {
                    let who = Who { block, warp: arrival.warp };
                    self.release(who, arrival.lanes).iter().for_each(|(_, view)| all.join(view));
                }
            }
        }
        for arrival in arrived.iter().filter(|a| a.view.is_none()) {
            let who = Who { block, warp: arrival.warp };
            let learnt = &mut self.warp_mut(who).learnt;
            match learnt.iter_mut().find(|(mask, _)| *mask == arrival.lanes) {
                Some((_, known)) => known.join(&all),
                None => learnt.push((arrival.lanes, all.clone())),
            }
            // The lanes know each other's work, too: they took part in what they have learnt.
        }
    }

    /// Whether a lane knows what `lanes` did at a moment.
    pub(crate) fn knows(&self, who: Who, lane: usize, moment: Moment, lanes: u32) -> bool {
        let block = &self.blocks[who.block as usize];
        let warp = &block.warps[who.warp as usize];
        if moment.block == who.block {
            if moment.phase < block.phase {
                return true;
            }
            if moment.warp == who.warp && warp.lanes.knows(lane, lanes, moment.time) {
                return true;
            }
        }
        let home = self.blocks[moment.block as usize].home;
        // What it did itself it knows.
        let lanes =
            if (moment.block, moment.warp) == (who.block, who.warp) { lanes & !(1 << lane) } else { lanes };
        block.view.known.covers(moment, lanes, home)
            || warp.learnt.iter().any(|(m, v)| m >> lane & 1 != 0 && v.known.covers(moment, lanes, home))
    }

    /// Whether all lanes know of all lanes of a moment, whoever they are.
    pub(crate) fn all_know(&self, who: Who, moment: Moment) -> bool {
        let block = &self.blocks[who.block as usize];
        if moment.block == who.block {
            let converged = block.warps[who.warp as usize].lanes.converged;
            return moment.phase < block.phase || moment.warp == who.warp && moment.time < converged;
        }
        block.view.known.covers(moment, u32::MAX, self.blocks[moment.block as usize].home)
    }

    /// Whether a fence of the proxy stands between what `lanes` did at a moment and the lane's next access.
    fn fenced(&self, who: Who, lane: usize, moment: Moment, lanes: u32, proxy: Proxy) -> bool {
        let block = &self.blocks[who.block as usize];
        let home = self.blocks[moment.block as usize].home;
        block.view.fenced(proxy).covers(moment, lanes, home)
            || block.warps[who.warp as usize]
                .learnt
                .iter()
                .any(|(m, v)| m >> lane & 1 != 0 && v.fenced(proxy).covers(moment, lanes, home))
    }

    /// How an earlier access stands to a new one by `who`, whose stamp names one lane.
    pub(crate) fn relation(&self, who: Who, old: &Stamp, new: &Stamp) -> Relation {
        let lane = new.lanes.trailing_zeros() as usize;
        let moment = self.moment(old.epoch);
        let ordered = match between(old.path, new.path) {
            None => self.knows(who, lane, moment, old.lanes),
            Some(proxy) => self.fenced(who, lane, moment, old.lanes, proxy),
        };
        if ordered {
            return Relation::Before;
        }
        if !old.how.writes() && !new.how.writes() {
            return Relation::Apart;
        }
        let strong = old.how.strong()
            && new.how.strong()
            && old.path == new.path
            && old.how.same_element(old.bytes, new.how, new.bytes)
            && self.reaches(scope_of(old), moment.block, who.block)
            && self.reaches(scope_of(new), who.block, moment.block);
        if strong { Relation::Apart } else { Relation::Race }
    }

    /// The home of a block.
    pub(crate) fn home(&self, block: u32) -> Home {
        self.blocks[block as usize].home
    }
}

/// The proxy whose fence has to stand between accesses on two ways, if they differ.
pub(crate) fn between(a: Path, b: Path) -> Option<Proxy> {
    match (a == b, a.is_async() || b.is_async()) {
        (true, _) => None,
        (false, true) => Some(Proxy::Async),
        (false, false) => Some(Proxy::Alias),
    }
}

pub(crate) fn scope_of(stamp: &Stamp) -> Scope {
    match stamp.how.scope() {
        0 => Scope::Cta,
        1 => Scope::Gpu,
        _ => Scope::Sys,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: u32 = u32::MAX;

    /// Two ranks with a block of two warps each.
    fn two() -> (Clocks, [Who; 4]) {
        let mut clocks = Clocks::new(2);
        let warps = [0, 1].map(|rank| {
            let block = clocks.start_block(Home { rank, launch: rank }, 2);
            [0, 1].map(|warp| Who { block, warp })
        });
        let [[a, b], [c, d]] = warps;
        (clocks, [a, b, c, d])
    }

    fn now(clocks: &mut Clocks, who: Who) -> Moment {
        let epoch = clocks.epoch(who);
        clocks.moment(epoch)
    }

    #[test]
    fn a_release_publishes_the_lane_alone_unless_lanes_have_met() {
        let (mut clocks, [a, _, c, _]) = two();
        let done = now(&mut clocks, a);
        let (_, view) = clocks.release(a, 1).remove(0);
        clocks.acquire(c, 5, &view);
        assert!(clocks.knows(c, 5, done, 1) && !clocks.knows(c, 5, done, 2) && !clocks.knows(c, 4, done, 1));
        let later = now(&mut clocks, a);
        clocks.meet(a, ALL, ALL);
        let (_, view) = clocks.release(a, 1).remove(0);
        clocks.acquire(c, 5, &view);
        assert!(clocks.knows(c, 5, later, ALL));
        // What comes after a release is not part of it.
        let after = now(&mut clocks, a);
        assert!(!clocks.knows(c, 5, after, 1));
        clocks.meet(c, ALL, ALL);
        assert!(clocks.knows(c, 0, later, ALL) && !clocks.knows(c, 0, after, 1));
    }

    #[test]
    fn a_warp_that_releases_says_nothing_of_others_before_a_barrier() {
        let (mut clocks, [a, b, c, _]) = two();
        let of_b = now(&mut clocks, b);
        let (_, early) = clocks.release(a, 1).remove(0);
        for who in [a, b] {
            clocks.arrive(who, 0, ALL, true);
        }
        clocks.complete(a.block, 0, 64);
        assert!(clocks.knows(a, 7, of_b, ALL) && clocks.all_know(a, of_b));
        let (_, late) = clocks.release(a, 1).remove(0);
        clocks.acquire(c, 0, &early);
        assert!(!clocks.knows(c, 0, of_b, ALL));
        clocks.acquire(c, 0, &late);
        assert!(clocks.knows(c, 0, of_b, ALL));
    }

    #[test]
    fn a_barrier_of_some_warps_tells_them_alone() {
        let mut clocks = Clocks::new(1);
        let block = clocks.start_block(Home { rank: 0, launch: 0 }, 3);
        let [a, b, c] = [0, 1, 2].map(|warp| Who { block, warp });
        let moments = [a, b, c].map(|who| now(&mut clocks, who));
        clocks.arrive(a, 1, ALL, false);
        clocks.arrive(b, 1, ALL, true);
        clocks.complete(block, 1, 96);
        assert!(clocks.knows(b, 3, moments[0], ALL));
        assert!(!clocks.knows(a, 3, moments[1], ALL) && !clocks.knows(c, 3, moments[0], ALL));
        let after = now(&mut clocks, a);
        assert!(!clocks.knows(b, 3, after, ALL));
    }

    #[test]
    fn fences_make_ready_what_stores_publish_and_known_what_reads_have_seen() {
        let (mut clocks, [a, _, c, _]) = two();
        let done = now(&mut clocks, a);
        assert!(clocks.ready(a, 0, Scope::Sys).is_empty());
        clocks.fence(a, ALL, Scope::Sys, false, true);
        let after = now(&mut clocks, a);
        let message = Arc::new(clocks.ready(a, 3, Scope::Sys).remove(0));
        clocks.see(c, 2, Scope::Sys, &message);
        assert!(!clocks.knows(c, 2, done, 1 << 3));
        // A fence that does not reach the other rank makes nothing known, and takes nothing away.
        clocks.fence(c, ALL, Scope::Gpu, true, false);
        assert!(!clocks.knows(c, 2, done, 1 << 3));
        clocks.fence(c, ALL, Scope::Sys, true, false);
        assert!(clocks.knows(c, 2, done, 1 << 3) && !clocks.knows(c, 2, done, 1 << 4));
        assert!(!clocks.knows(c, 2, after, 1 << 3) && !clocks.knows(c, 1, done, 1 << 3));
    }

    #[test]
    fn ordered_fences_know_of_each_other_within_their_scopes() {
        let (mut clocks, [a, b, c, _]) = two();
        let done = now(&mut clocks, a);
        clocks.order_fence(a, 1, Scope::Gpu);
        clocks.order_fence(c, 1, Scope::Sys);
        clocks.order_fence(b, 1, Scope::Sys);
        assert!(!clocks.knows(c, 0, done, 1) && clocks.knows(b, 0, done, 1));
    }

    #[test]
    fn a_launch_knows_all_earlier_ones_of_its_rank_and_what_they_knew() {
        let (mut clocks, [a, b, c, _]) = two();
        let moments = [a, b, c].map(|who| now(&mut clocks, who));
        let (_, view) = clocks.release(c, 1).remove(0);
        clocks.acquire(b, 0, &view);
        clocks.end_launch(clocks.home(a.block));
        let block = clocks.start_block(Home { rank: 0, launch: 9 }, 1);
        let next = Who { block, warp: 0 };
        assert!(clocks.knows(next, 0, moments[0], ALL) && clocks.knows(next, 0, moments[1], ALL));
        assert!(clocks.knows(next, 0, moments[2], 1) && !clocks.knows(next, 0, moments[2], 2));
    }

    #[test]
    fn a_proxy_takes_a_fence_of_its_own() {
        let (mut clocks, [a, _, c, _]) = two();
        let done = now(&mut clocks, a);
        let (_, plain) = clocks.release(a, 1).remove(0);
        clocks.acquire(c, 0, &plain);
        assert!(clocks.knows(c, 0, done, 1) && !clocks.fenced(c, 0, done, 1, Proxy::Async));
        clocks.fence_proxy(c, 1, Proxy::Async);
        assert!(clocks.fenced(c, 0, done, 1, Proxy::Async) && !clocks.fenced(c, 0, done, 1, Proxy::Alias));
        // The writer's fence serves as well.
        clocks.fence_proxy(a, 1, Proxy::Alias);
        let (_, fenced) = clocks.release(a, 1).remove(0);
        clocks.acquire(c, 0, &fenced);
        assert!(clocks.fenced(c, 0, done, 1, Proxy::Alias));
    }
}
