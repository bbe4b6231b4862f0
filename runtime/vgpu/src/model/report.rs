//! Findings of the model, with the places and accesses that they name.

use super::clocks::{self, WarpId};
use super::packets::Reused;
use super::stamp::Stamp;
use super::{Model, ModelAccess, knowledge::Proxy};
use crate::fault::race::{Party, Race, RaceReason, SlotReuse};
use crate::fault::{AccessKind, FaultPlace};
use crate::isa::Scope;
use crate::registers::LANES;

fn name(scope: Scope) -> &'static str {
    match scope {
        Scope::Cta => "cta",
        Scope::Gpu => "gpu",
        Scope::Sys => "sys",
    }
}

impl Model {
    /// The place of a moment.
    fn place_of(&self, epoch: u32, lane: usize, site: u32) -> FaultPlace {
        let moment = self.clocks.moment(epoch);
        let mut place = self.place(moment.block, moment.warp, lane, site);
        let mut callers = Vec::new();
        let mut chain = self.clocks.chain(epoch);
        while let Some(&(before, call)) = chain.checked_sub(1).and_then(|at| self.chains.get(at as usize)) {
            callers.extend(self.blocks[moment.block as usize].module.lines(call).1);
            chain = before;
        }
        if let Some(source) = &mut place.source {
            source.called_from(callers);
        }
        place
    }

    /// The calls that led there are left out.
    fn place(&self, block: u32, warp: u32, lane: usize, site: u32) -> FaultPlace {
        let info = &self.blocks[block as usize];
        let (ptx_line, source) = info.module.lines(site);
        // An asynchronous copy has no thread; it is told as the first of its block.
        let thread = warp.saturating_mul(LANES as u32).saturating_add(lane as u32);
        let thread = if thread < info.shape.thread_count() { thread } else { 0 };
        FaultPlace {
            rank: self.clocks.home(block).rank as usize,
            kernel: info.kernel.clone(),
            block: info.shape.block,
            thread: info.shape.thread(thread),
            ptx_line,
            source,
        }
    }

    fn party(&self, stamp: &Stamp) -> Party {
        let moment = self.clocks.moment(stamp.epoch);
        let lane = stamp.lanes.trailing_zeros() as usize;
        let kind = match (stamp.how.reads(), stamp.how.writes()) {
            (true, true) => AccessKind::Atomic,
            (_, true) => AccessKind::Store,
            _ => AccessKind::Load,
        };
        let scope = stamp.how.strong().then(|| name(clocks::scope_of(stamp)));
        Party { place: self.place_of(stamp.epoch, lane, stamp.site), warp: moment.warp, kind, scope }
    }

    fn current(&self, who: WarpId, lane: usize, touch: &ModelAccess<'_>, kind: AccessKind) -> Party {
        let scope = touch.strong().then(|| name(touch.scope()));
        Party { place: self.place(who.block, who.warp, lane, touch.site), warp: who.warp, kind, scope }
    }

    pub(super) fn race(
        &self,
        who: WarpId,
        lane: usize,
        touch: &ModelAccess<'_>,
        kind: AccessKind,
        offset: u64,
        earlier: &Stamp,
    ) -> Race {
        let from = self.clocks.moment(earlier.epoch).block;
        let reached = self.clocks.reaches(clocks::scope_of(earlier), from, who.block)
            && self.clocks.reaches(touch.scope(), who.block, from);
        let moment = self.clocks.moment(earlier.epoch);
        let proxy = clocks::between(earlier.path, touch.path)
            .filter(|_| self.clocks.knows(who, lane, moment, earlier.lanes));
        let reason = match proxy {
            Some(Proxy::Async) => RaceReason::AsyncProxy,
            Some(Proxy::Alias) => RaceReason::AliasProxy,
            None if !earlier.how.strong() || !touch.strong() => RaceReason::Unordered,
            None if !reached => RaceReason::Scope,
            None if !clocks::compatible(earlier.path, touch.path) => RaceReason::AliasProxy,
            None => RaceReason::Size,
        };
        Race {
            first: self.party(earlier),
            second: self.current(who, lane, touch, kind),
            space: touch.memory.space(),
            address: touch.base + offset,
            bytes: touch.size(),
            near: None,
            reason,
        }
    }

    pub(super) fn slot_reuse(
        &self,
        who: WarpId,
        lane: usize,
        touch: &ModelAccess<'_>,
        offset: u64,
        reused: &Reused,
    ) -> SlotReuse {
        let by = self.clocks.moment(reused.by.0);
        let reader = reused.reader.map(|(epoch, _)| {
            let moment = self.clocks.moment(epoch);
            let block = self.blocks[moment.block as usize].shape.block;
            (self.clocks.home(moment.block).rank as usize, block, moment.warp)
        });
        SlotReuse {
            first: Party {
                place: self.place_of(reused.by.0, reused.by.1, reused.site),
                warp: by.warp,
                kind: AccessKind::Store,
                scope: touch.strong().then(|| name(touch.scope())),
            },
            second: self.current(who, lane, touch, AccessKind::Store),
            space: touch.memory.space(),
            address: touch.base + offset,
            bytes: touch.size(),
            near: None,
            reader,
        }
    }
}
