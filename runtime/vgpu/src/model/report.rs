//! What the model refuses, in words.

use std::fmt;

use super::clocks::{self, Who};
use super::packets::Reused;
use super::stamp::Stamp;
use super::{Kind, Model, Touch, clock::Proxy};
use crate::error::{AccessKind, Near, Place, Space};
use crate::front::isa::Scope;
use crate::registers::LANES;

/// One of two accesses of a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Party {
    /// Instruction and thread (the lowest lane, where several accessed alike).
    pub place: Place,
    /// Number of the warp in its block.
    pub warp: u32,
    /// Load, store or atomic.
    pub kind: AccessKind,
    /// The scope of a strong access: `cta`, `gpu` or `sys`; none of a weak one.
    pub scope: Option<&'static str>,
}

impl fmt::Display for Party {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let strength = match self.scope {
            Some(scope) => format!("strong, scope {scope}"),
            None => "weak".to_owned(),
        };
        write!(f, "{} ({strength}) by warp {} at {}", self.kind, self.warp, self.place)
    }
}

/// Why two accesses are a race.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RaceReason {
    /// At least one is weak, and nothing puts them in order.
    Unordered,
    /// Both are strong, but the scope of one does not include the other thread.
    Scope,
    /// Both are strong, but they are of different sizes or begin at different bytes.
    Size,
    /// They are in order but for a missing `fence.proxy.async`.
    AsyncProxy,
    /// They are in order but for a missing `fence.proxy.alias`: they reach the bytes by two addresses.
    AliasProxy,
}

impl fmt::Display for RaceReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RaceReason::Unordered => "nothing puts them in order",
            RaceReason::Scope => "the scope of one does not include the thread of the other",
            RaceReason::Size => "both are strong, but not of the same bytes",
            RaceReason::AsyncProxy => "no `fence.proxy.async` stands between them",
            RaceReason::AliasProxy => {
                "they reach the same bytes by two addresses, and no `fence.proxy.alias` stands between them"
            }
        })
    }
}

/// Two accesses to the same bytes, at least one a store, that may happen in any order or at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Race {
    /// The earlier one in this run.
    pub first: Party,
    /// The later one.
    pub second: Party,
    /// State space.
    pub space: Space,
    /// First address of the later one's element.
    pub address: u64,
    /// Bytes of that element.
    pub bytes: u64,
    /// The allocation, for memory of ranks.
    pub near: Option<Near>,
    /// Why they race.
    pub reason: RaceReason,
}

fn location(
    f: &mut fmt::Formatter<'_>,
    bytes: u64,
    space: Space,
    at: u64,
    near: Option<&Near>,
) -> fmt::Result {
    write!(f, "{bytes} bytes at {space} address {at:#x}")?;
    match near {
        Some(near) => write!(f, ", {near}"),
        None => Ok(()),
    }
}

impl fmt::Display for Race {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        location(f, self.bytes, self.space, self.address, self.near.as_ref())?;
        write!(f, ": {}, and earlier {}; {}", self.second, self.first, self.reason)
    }
}

/// A packet that was written again before its reader was done with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotReuse {
    /// The store of the content that is lost.
    pub first: Party,
    /// The store that overwrites it.
    pub second: Party,
    /// State space.
    pub space: Space,
    /// First address of the store.
    pub address: u64,
    /// Bytes of the store's element.
    pub bytes: u64,
    /// The allocation, for memory of ranks.
    pub near: Option<Near>,
    /// The rank, block and warp of a reader that the second store does not know to be done; none if nobody has read.
    pub reader: Option<(usize, [u32; 3], u32)>,
}

impl fmt::Display for SlotReuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        location(f, self.bytes, self.space, self.address, self.near.as_ref())?;
        write!(f, ": {} overwrites what came by {}, ", self.second, self.first)?;
        match self.reader {
            Some((rank, [x, y, z], warp)) => write!(
                f,
                "which rank {rank}, block ({x}, {y}, {z}), warp {warp} has read; the store does not know that it is done"
            ),
            None => f.write_str("which nobody has read"),
        }
    }
}

fn name(scope: Scope) -> &'static str {
    match scope {
        Scope::Cta => "cta",
        Scope::Gpu => "gpu",
        Scope::Sys => "sys",
    }
}

impl Model {
    /// The place of a moment.
    fn place_of(&self, epoch: u32, lane: usize, site: u32) -> Place {
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
    fn place(&self, block: u32, warp: u32, lane: usize, site: u32) -> Place {
        let info = &self.blocks[block as usize];
        let (ptx_line, source) = info.module.lines(site);
        // An asynchronous copy has no thread; it is told as the first of its block.
        let thread = warp.saturating_mul(LANES as u32).saturating_add(lane as u32);
        let thread = if thread < info.shape.thread_count() { thread } else { 0 };
        Place {
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

    fn current(&self, who: Who, lane: usize, touch: &Touch<'_>, kind: Kind) -> Party {
        let kind = match kind {
            Kind::Load => AccessKind::Load,
            Kind::Store => AccessKind::Store,
            Kind::Atomic => AccessKind::Atomic,
        };
        let scope = touch.strong().then(|| name(touch.scope()));
        Party { place: self.place(who.block, who.warp, lane, touch.site), warp: who.warp, kind, scope }
    }

    pub(super) fn race(
        &self,
        who: Who,
        lane: usize,
        touch: &Touch<'_>,
        kind: Kind,
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
        who: Who,
        lane: usize,
        touch: &Touch<'_>,
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
            second: self.current(who, lane, touch, Kind::Store),
            space: touch.memory.space(),
            address: touch.base + offset,
            bytes: touch.size(),
            near: None,
            reader,
        }
    }
}
