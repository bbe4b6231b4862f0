//! The cost of accesses: ports, links, memories, and flags that are seen once they have arrived.

use super::fabric::Footprint;
use super::{Current, Flag, FlagMessage, Picoseconds, VirtualClock};
use crate::fault::AccessKind;
use crate::isa::{MemoryAccess, MemoryOrder};
use crate::observe::WarpSite;
use crate::registers::{Lanes, lanes};

/// The times of an access: when it has left its SM, takes effect, and gives its value or is acknowledged.
#[derive(Clone, Copy, Debug)]
pub(super) struct AccessTimes {
    pub(super) left: Picoseconds,
    pub(super) effect: Picoseconds,
    pub(super) back: Picoseconds,
}

/// A strong access of lanes: it may set a flag, or see one.
pub(super) struct Signal<'s> {
    pub(super) kind: AccessKind,
    pub(super) addresses: &'s Lanes<u64>,
    pub(super) mask: u32,
    /// Of a lane.
    pub(super) bytes: u64,
    pub(super) effect: Picoseconds,
    pub(super) back: Picoseconds,
}

impl VirtualClock {
    /// Sends bytes of the running block through its SM's port; returns the block's rank and when they have passed.
    pub(super) fn leave(&mut self, load: Footprint) -> (usize, Picoseconds) {
        let Current { at, block, .. } = self.current;
        let (own, sm) = self.blocks.get(&block).map_or((0, 0), |state| (state.rank, state.sm));
        let cycles = (load.bytes as u32).div_ceil(self.options.topology.gpu.sm_bytes_a_cycle);
        let work = self.cycles(cycles);
        let (_, left) = self.sms.entry(sm).or_default().port.serve(self.fabric.past, at, work);
        (own, left)
    }

    /// The latency of memory for data, or of the L2 cache for flags.
    pub(super) fn latency(&self, strong: bool) -> Picoseconds {
        let gpu = &self.options.topology.gpu;
        self.cycles(if strong { gpu.cache_cycles } else { gpu.memory_cycles })
    }

    /// The times of an access of the running instruction to memory of a rank.
    pub(super) fn transfer(
        &mut self,
        kind: AccessKind,
        strong: bool,
        load: Footprint,
        owner: usize,
    ) -> AccessTimes {
        let (own, left) = self.leave(load);
        let (latency, alpha) = (self.latency(strong), self.fabric.latency());
        let carries = |bytes: bool| if bytes { load.bytes } else { 0 };
        let there = match own == owner {
            true => left + latency / 2,
            // A request without payload, or the bytes.
            false => self.fabric.send(left, own, owner, load, carries(kind != AccessKind::Load)),
        };
        let effect = if strong { there } else { self.fabric.memory(there, owner, load) };
        let back = match (own == owner, kind) {
            (true, _) => effect + latency / 2,
            (false, AccessKind::Store) => effect + alpha,
            (false, _) => self.fabric.send(effect + latency / 2, owner, own, load, load.bytes),
        };
        AccessTimes { left, effect, back }
    }

    /// Notes the flags that a strong access sets or sees; returns when a load has its value.
    pub(super) fn flags(&mut self, signal: &Signal<'_>) -> Picoseconds {
        let Signal { kind, addresses, mask, bytes, effect, back } = *signal;
        let Current { at, block, .. } = self.current;
        let Some(number) = self.blocks.get(&block).map(|state| state.number) else { return back };
        let interval = self.cycles(self.options.topology.gpu.atomic_cycles);
        let (mut has, rest) = (back, back - effect);
        for lane in lanes(mask) {
            let address = addresses[lane];
            for word in address / 8..=(address + bytes - 1) / 8 {
                let mut effect = effect;
                if kind != AccessKind::Store
                    && let Some(flag) = self.flags.get_mut(&word)
                {
                    // It was on its way when the load came there.
                    has = has.max(flag.arrives + rest);
                    effect = effect.max(flag.arrives);
                    if flag.from != number && !flag.seen.contains(&number) {
                        flag.seen.push(number);
                        let (from, sent) = (flag.from, flag.sent);
                        if let Some(timeline) = &mut self.timing.timeline {
                            let address = word * 8;
                            timeline.messages.push(FlagMessage {
                                from,
                                sent,
                                to: number,
                                seen: has,
                                address,
                            });
                        }
                    }
                }
                if kind == AccessKind::Atomic {
                    let done = self.atomics.entry(word).or_default();
                    *done = effect.max(*done + interval);
                    (has, effect) = (has.max(*done + rest), *done);
                }
                if kind != AccessKind::Load {
                    let flag = Flag { sent: at, arrives: effect, from: number, seen: Vec::new() };
                    self.flags.insert(word, flag);
                }
            }
        }
        has
    }

    /// An access of the running instruction gives its registers their values, or is acknowledged, at `has`.
    pub(super) fn finish(
        &mut self,
        site: &WarpSite<'_>,
        (kind, access): (AccessKind, &MemoryAccess),
        has: Picoseconds,
        effect: Option<Picoseconds>,
    ) {
        let Current { block, warp, frame, .. } = self.current;
        let Some(state) = self.blocks.get_mut(&block) else { return };
        let times = &mut state.warps[warp];
        if let Some(effect) = effect.filter(|_| kind != AccessKind::Load) {
            state.acknowledged = state.acknowledged.max(has);
            state.arrived = state.arrived.max(effect);
        }
        if kind == AccessKind::Store {
            return;
        }
        for &r in site.function.operands.of(site.pc).loads {
            let ready = &mut times.frames[frame].1;
            ready.set(r, ready.of(r).max(has), times.next);
            times.loads = times.loads.max(has);
        }
        if matches!(access.order, MemoryOrder::Acquire | MemoryOrder::AcqRel) {
            times.next = times.next.max(has);
        }
    }
}
