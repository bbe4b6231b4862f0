//! The clocks of all blocks and warps, and the knowledge of each thread.

mod order;

use std::sync::Arc;

use super::knowledge::{Knowledge, LaneClocks, LaunchId, Moment, Proxy, ThreadKnowledge};
use super::stamp::MemoryLocation;
use crate::isa::Scope;
pub(crate) use order::{between, compatible, scope_of};

/// A warp: its block's number in the model and its own in the block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct WarpId {
    pub(crate) block: u32,
    pub(crate) warp: u32,
}

/// The knowledge that a release publishes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ReleaseMessage {
    pub(crate) view: ThreadKnowledge,
    /// Of the release or fence.
    pub(crate) scope: Scope,
    /// Block of the thread that published it.
    pub(crate) from: u32,
}

/// A release fence, which later stores of lanes publish.
#[derive(Clone, Debug)]
struct ReadyFence {
    lanes: u32,
    scope: Scope,
    /// Without the lane's own work.
    view: Arc<ThreadKnowledge>,
    /// When it was.
    phase: u32,
    time: u32,
    /// The messages of lanes that have stored since.
    published: Vec<(usize, Arc<ReleaseMessage>)>,
}

/// A message that strong reads of lanes have seen.
#[derive(Clone, Debug)]
struct SeenMessage {
    lanes: u32,
    message: Arc<ReleaseMessage>,
    /// The location by which it came, unless there were very many.
    at: Option<MemoryLocation>,
}

/// Locations by which one message is remembered.
const SEEN_AT: usize = 16;

#[derive(Clone, Debug)]
struct WarpClock {
    time: u32,
    /// Number of the current moment; 0 if it has none yet.
    epoch: u32,
    /// The chain of calls that it is in: each has moments of its own.
    chain: u32,
    /// Moments of the same time in other chains of calls.
    others: Vec<(u32, u32)>,
    lanes: LaneClocks,
    /// The knowledge that lanes have gained since the block's last full barrier.
    learnt: Vec<(u32, ThreadKnowledge)>,
    ready: Vec<ReadyFence>,
    /// Messages that strong reads have seen, until a fence makes them known.
    seen: Vec<SeenMessage>,
}

impl WarpClock {
    fn tick(&mut self) {
        self.time += 1;
        self.epoch = 0;
        self.others.clear();
    }

    #[cold]
    fn enter(&mut self, chain: u32) {
        if self.epoch != 0 {
            self.others.push((self.chain, self.epoch));
        }
        let known = self.others.iter().position(|(other, _)| *other == chain);
        self.epoch = known.map_or(0, |at| self.others.swap_remove(at).1);
        self.chain = chain;
    }
}

#[derive(Clone, Debug)]
struct BlockClock {
    home: LaunchId,
    phase: u32,
    view: Arc<ThreadKnowledge>,
    warps: Vec<WarpClock>,
    /// Arrivals at barriers since they last completed: barrier, warp, lanes, what was published, whether it waits.
    arrivals: Vec<BarrierArrival>,
}

#[derive(Clone, Debug)]
struct BarrierArrival {
    barrier: u32,
    warp: u32,
    lanes: u32,
    /// Of arrivals that do not wait.
    view: Option<ThreadKnowledge>,
}

/// All clocks of a machine since the host last waited for everything.
#[derive(Clone, Debug)]
pub(crate) struct Clocks {
    /// Numbers up to this one are of moments before the host last waited for everything.
    settled: u32,
    /// By number, less `settled`.
    moments: Vec<Moment>,
    /// By the same numbers: the chains of calls.
    chains: Vec<u32>,
    blocks: Vec<BlockClock>,
    /// By rank, what its next launch begins with.
    ends: Vec<ThreadKnowledge>,
    /// The knowledge that fences in sequentially consistent order have published: scope, block, view.
    fences: Vec<(Scope, u32, ThreadKnowledge)>,
    asynchronous: u32,
}

const NOWHERE: Moment = Moment { block: 0, phase: 0, warp: 0, time: 0 };
/// Asynchronous operations are warps with numbers from here on.
const ASYNC_WARPS: u32 = 1 << 16;
/// The phase of what barriers of its block say nothing of.
const UNTOLD: u32 = u32::MAX;

impl Clocks {
    pub(crate) fn new(ranks: usize) -> Clocks {
        Clocks {
            settled: 0,
            moments: vec![NOWHERE],
            chains: vec![0],
            blocks: Vec::new(),
            ends: vec![ThreadKnowledge::default(); ranks],
            fences: Vec::new(),
            asynchronous: 0,
        }
    }

    /// The block of a moment, the moment being that of a stamp.
    pub(crate) fn moment(&self, epoch: u32) -> Moment {
        self.moments[(epoch - self.settled) as usize]
    }

    /// Notes that the host has waited for everything: all moments so far happened before those that follow. Returns true if
    /// there are numbers left for them.
    pub(crate) fn settle(&mut self) -> bool {
        let settled = self.next() - 1;
        *self = Clocks { settled, ..Clocks::new(self.ends.len()) };
        settled < u32::MAX / 2
    }

    pub(crate) fn ranks(&self) -> usize {
        self.ends.len()
    }

    /// Moments with numbers up to this one happened before everything else.
    pub(crate) fn settled(&self) -> u32 {
        self.settled
    }

    /// The number of the next moment.
    fn next(&self) -> u32 {
        self.settled + self.moments.len() as u32
    }

    pub(crate) fn start_block(&mut self, home: LaunchId, warps: u32) -> u32 {
        let warp = WarpClock {
            time: 0,
            epoch: 0,
            chain: 0,
            others: Vec::new(),
            lanes: LaneClocks::new(),
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
    pub(crate) fn end_launch(&mut self, home: LaunchId) {
        let mut end = self.ends[home.rank as usize].clone();
        for block in self.blocks.iter_mut().filter(|b| b.home == home) {
            end.join(&block.view);
            for warp in std::mem::take(&mut block.warps) {
                warp.learnt.iter().for_each(|(_, view)| end.join(view));
            }
        }
        let homes: Vec<LaunchId> = self.blocks.iter().map(|b| b.home).collect();
        let ended = |view: &mut Knowledge| {
            view.add_launches(home.rank, home.launch + 1, |block| homes[block as usize]);
        };
        // The end of a kernel stands for fences of all proxies.
        ended(&mut end.known);
        [Proxy::Async, Proxy::Alias].into_iter().for_each(|proxy| ended(end.fenced_mut(proxy)));
        self.ends[home.rank as usize] = end;
    }

    fn warp(&self, who: WarpId) -> &WarpClock {
        &self.blocks[who.block as usize].warps[who.warp as usize]
    }

    fn warp_mut(&mut self, who: WarpId) -> &mut WarpClock {
        &mut self.blocks[who.block as usize].warps[who.warp as usize]
    }

    /// The number of the warp's current moment.
    pub(crate) fn epoch(&mut self, who: WarpId) -> u32 {
        let phase = self.blocks[who.block as usize].phase;
        let next = self.next();
        let warp = self.warp_mut(who);
        if warp.epoch == 0 {
            warp.epoch = next;
            let moment = Moment { block: who.block, phase, warp: who.warp, time: warp.time };
            let chain = warp.chain;
            self.moments.push(moment);
            self.chains.push(chain);
        }
        self.warp(who).epoch
    }

    /// The warp's later work is told apart from its earlier work.
    fn tick(&mut self, who: WarpId) {
        self.warp_mut(who).tick();
    }

    /// The warp goes on in a chain of calls.
    #[inline(always)]
    pub(crate) fn enter(&mut self, who: WarpId, chain: u32) {
        let warp = self.warp_mut(who);
        if warp.chain != chain {
            warp.enter(chain);
        }
    }

    /// The chain of calls of a moment.
    pub(crate) fn chain(&self, epoch: u32) -> u32 {
        self.chains[(epoch - self.settled) as usize]
    }

    /// A moment of its own for an asynchronous operation of a warp, and what its completion publishes, also to generic
    /// accesses. No barrier of the block speaks of it.
    pub(crate) fn asynchronous(&mut self, who: WarpId) -> (u32, ThreadKnowledge) {
        self.asynchronous += 1;
        let (block, warp) = (who.block, ASYNC_WARPS + self.asynchronous);
        let mut view = ThreadKnowledge::default();
        view.known.add_lanes((block, UNTOLD, warp), u32::MAX, 1);
        *view.fenced_mut(Proxy::Async) = view.known.clone();
        self.moments.push(Moment { block, phase: UNTOLD, warp, time: 0 });
        self.chains.push(self.warp(who).chain);
        (self.next() - 1, view)
    }

    /// Returns true if a scope that a thread of block `a` names includes the threads of block `b`.
    pub(crate) fn reaches(&self, scope: Scope, a: u32, b: u32) -> bool {
        match scope {
            Scope::Cta => a == b,
            Scope::Gpu => self.blocks[a as usize].home.rank == self.blocks[b as usize].home.rank,
            Scope::Sys => true,
        }
    }

    /// A lane's knowledge, without its own work.
    fn base(&self, who: WarpId, lane: usize) -> ThreadKnowledge {
        let block = &self.blocks[who.block as usize];
        let mut view = (*block.view).clone();
        for (_, learnt) in block.warps[who.warp as usize].learnt.iter().filter(|(m, _)| m >> lane & 1 != 0) {
            view.join(learnt);
        }
        view.known.add_phases(who.block, block.phase);
        view
    }

    /// The knowledge that a release of a lane publishes; the warp's time must go on afterwards.
    fn published(&self, who: WarpId, lane: usize) -> ThreadKnowledge {
        let mut view = self.base(who, lane);
        let block = &self.blocks[who.block as usize];
        let warp = &block.warps[who.warp as usize];
        warp.lanes.publish((who.block, block.phase, who.warp), lane, warp.time, &mut view.known);
        view
    }

    /// A release: what `lanes` publish, each for itself. Later work of the warp is not part of it.
    pub(crate) fn release(&mut self, who: WarpId, lanes: u32) -> Vec<(usize, ThreadKnowledge)> {
        let views = crate::registers::lanes(lanes).map(|lane| (lane, self.published(who, lane))).collect();
        self.tick(who);
        views
    }

    /// A lane learns what others published.
    pub(crate) fn acquire(&mut self, who: WarpId, lane: usize, view: &ThreadKnowledge) {
        let learnt = &mut self.warp_mut(who).learnt;
        match learnt.iter_mut().find(|(mask, _)| *mask == 1 << lane) {
            Some((_, known)) => known.join(view),
            None => learnt.push((1 << lane, view.clone())),
        }
    }

    /// The messages that a strong store of a lane publishes by fences before it.
    pub(crate) fn ready(&mut self, who: WarpId, lane: usize) -> Vec<Arc<ReleaseMessage>> {
        let of_lane = self.warp_mut(who).ready.iter_mut().filter(|ready| ready.lanes >> lane & 1 != 0);
        of_lane
            .map(|ready| {
                if let Some((_, message)) = ready.published.iter().find(|(l, _)| *l == lane) {
                    return message.clone();
                }
                let mut view = (*ready.view).clone();
                view.known.add_lanes((who.block, ready.phase, who.warp), 1 << lane, ready.time + 1);
                let message = Arc::new(ReleaseMessage { view, scope: ready.scope, from: who.block });
                ready.published.push((lane, message.clone()));
                message
            })
            .collect()
    }

    /// A strong read of a lane saw what others published.
    pub(crate) fn see(
        &mut self,
        who: WarpId,
        lane: usize,
        at: MemoryLocation,
        message: &Arc<ReleaseMessage>,
    ) {
        let seen = &mut self.warp_mut(who).seen;
        let like = |s: &&SeenMessage| Arc::ptr_eq(&s.message, message);
        let at = (seen.iter().filter(like).count() < SEEN_AT).then_some(at);
        match seen.iter_mut().find(|s| Arc::ptr_eq(&s.message, message) && (s.at == at || at.is_none())) {
            Some(seen) => {
                seen.lanes |= 1 << lane;
                if at.is_none() {
                    seen.at = None;
                }
            }
            None => seen.push(SeenMessage { lanes: 1 << lane, message: message.clone(), at }),
        }
    }

    /// Returns true if strong reads of the warp have seen messages that are not known yet.
    fn has_seen(&self, who: WarpId) -> bool {
        !self.warp(who).seen.is_empty()
    }

    /// Makes known what lanes have seen (at one location), as far as an acquire of this scope reaches.
    pub(crate) fn take_seen(&mut self, who: WarpId, lanes: u32, scope: Scope, at: Option<MemoryLocation>) {
        if !self.has_seen(who) {
            return;
        }
        let mut seen = std::mem::take(&mut self.warp_mut(who).seen);
        for SeenMessage { lanes: mask, message, at: place } in &mut seen {
            let taken = *mask & lanes;
            if taken == 0 || at.is_some() && at != *place {
                continue;
            }
            let mutual = self.reaches(message.scope, message.from, who.block)
                && self.reaches(scope, who.block, message.from);
            // A later fence of a wider scope may make known what this one could not.
            if mutual {
                crate::registers::lanes(taken).for_each(|lane| self.acquire(who, lane, &message.view));
                *mask &= !lanes;
            }
        }
        seen.retain(|seen| seen.lanes != 0);
        self.warp_mut(who).seen = seen;
    }

    /// A fence: it makes known what lanes have seen, and makes ready what they have done.
    pub(crate) fn fence(&mut self, who: WarpId, lanes: u32, scope: Scope, acquires: bool, releases: bool) {
        if acquires {
            self.take_seen(who, lanes, scope, None);
        }
        if releases {
            let mut rest = lanes;
            while rest != 0 {
                let lane = rest.trailing_zeros() as usize;
                let like = self.alike(who, lane) & rest;
                rest &= !like;
                let view = Arc::new(self.without_own(who, lane));
                let phase = self.blocks[who.block as usize].phase;
                let warp = self.warp_mut(who);
                for ready in &mut warp.ready {
                    // Wider fences stay: a later narrow one does not take their reach away.
                    if ready.scope <= scope {
                        ready.lanes &= !like;
                    }
                }
                warp.ready.retain(|ready| ready.lanes != 0);
                let time = warp.time;
                warp.ready.push(ReadyFence { lanes: like, scope, view, phase, time, published: Vec::new() });
            }
            self.tick(who);
        }
    }

    /// Lanes that know the same as `lane`, but for their own work.
    fn alike(&self, who: WarpId, lane: usize) -> u32 {
        let warp = self.warp(who);
        let mut like = if warp.lanes.divided() { 1 << lane } else { u32::MAX };
        for (mask, _) in &warp.learnt {
            like &= if mask >> lane & 1 != 0 { *mask } else { !mask };
        }
        like
    }

    fn without_own(&self, who: WarpId, lane: usize) -> ThreadKnowledge {
        let mut view = self.base(who, lane);
        let block = &self.blocks[who.block as usize];
        let warp = &block.warps[who.warp as usize];
        warp.lanes.publish_others((who.block, block.phase, who.warp), lane, &mut view.known);
        view
    }

    /// A fence in sequentially consistent order: it knows what all those before it knew whose scopes and its own
    /// include each other (PTX ISA, "Fence-SC order"). Those of a warp's lanes come one after another.
    pub(crate) fn order_fence(&mut self, who: WarpId, lanes: u32, scope: Scope) {
        let mut before = ThreadKnowledge::default();
        for (theirs, block, view) in &self.fences {
            if self.reaches(*theirs, *block, who.block) && self.reaches(scope, who.block, *block) {
                before.join(view);
            }
        }
        for lane in crate::registers::lanes(lanes) {
            self.acquire(who, lane, &before);
            before.join(&self.published(who, lane));
        }
        self.tick(who);
        match self.fences.iter_mut().find(|(s, block, _)| *s == scope && *block == who.block) {
            Some((.., view)) => view.join(&before),
            None => self.fences.push((scope, who.block, before)),
        }
    }

    /// A fence of a proxy: what the lanes know is in order with later accesses of the proxy.
    pub(crate) fn fence_proxy(&mut self, who: WarpId, lanes: u32, proxy: Proxy) {
        for (lane, view) in self.release(who, lanes) {
            let mut fenced = ThreadKnowledge::default();
            *fenced.fenced_mut(proxy) = view.known;
            self.acquire(who, lane, &fenced);
        }
    }

    /// Lanes of a warp synchronize (`bar.warp.sync`); `live` are those that have not exited. Lanes without a thread
    /// belong to both.
    pub(crate) fn meet(&mut self, who: WarpId, lanes: u32, live: u32) {
        self.tick(who);
        let warp = self.warp_mut(who);
        let time = warp.time;
        let all = live & !lanes == 0;
        if all {
            warp.lanes.converge(time, live);
        } else {
            warp.lanes.meet(lanes, time);
        }
        let mut learnt: Vec<(u32, ThreadKnowledge)> = Vec::new();
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
    pub(crate) fn arrive(&mut self, who: WarpId, barrier: u32, lanes: u32, waits: bool) {
        let view = (!waits).then(|| {
            let mut view = ThreadKnowledge::default();
            self.release(who, lanes).iter().for_each(|(_, published)| view.join(published));
            view
        });
        let arrival = BarrierArrival { barrier, warp: who.warp, lanes, view };
        self.blocks[who.block as usize].arrivals.push(arrival);
    }

    /// A barrier of a block is complete. `threads`: all of the block. Those that have exited do not take part, and
    /// nobody learns of their work.
    pub(crate) fn complete(&mut self, block: u32, barrier: u32, threads: u32) {
        let clock = &mut self.blocks[block as usize];
        let (arrived, others): (Vec<BarrierArrival>, Vec<BarrierArrival>) =
            std::mem::take(&mut clock.arrivals).into_iter().partition(|a| a.barrier == barrier);
        clock.arrivals = others;
        let waiting: u32 = arrived.iter().filter(|a| a.view.is_none()).map(|a| a.lanes.count_ones()).sum();
        if waiting == threads {
            let mut view = (*clock.view).clone();
            for warp in &mut clock.warps {
                warp.learnt.drain(..).for_each(|(_, learnt)| view.join(&learnt));
                warp.tick();
                warp.lanes.converge(warp.time, u32::MAX);
            }
            clock.view = Arc::new(view);
            clock.phase += 1;
            return;
        }
        let mut all = ThreadKnowledge::default();
        for arrival in &arrived {
            match &arrival.view {
                Some(view) => all.join(view),
                None => {
                    let who = WarpId { block, warp: arrival.warp };
                    self.release(who, arrival.lanes).iter().for_each(|(_, view)| all.join(view));
                }
            }
        }
        for arrival in arrived.iter().filter(|a| a.view.is_none()) {
            let who = WarpId { block, warp: arrival.warp };
            let learnt = &mut self.warp_mut(who).learnt;
            match learnt.iter_mut().find(|(mask, _)| *mask == arrival.lanes) {
                Some((_, known)) => known.join(&all),
                None => learnt.push((arrival.lanes, all.clone())),
            }
            // The lanes know each other's work, too: they took part in what they have learnt.
        }
    }

    /// The home of a block.
    pub(crate) fn home(&self, block: u32) -> LaunchId {
        self.blocks[block as usize].home
    }
}

#[cfg(test)]
mod tests;
