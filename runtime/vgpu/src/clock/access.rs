//! What accesses, fences and barriers cost.

use super::fabric::Load;
use super::{Clock, Current, Flag, Message, Picoseconds};
use crate::error::{AccessKind, Fault, Space};
use crate::execute::access::lanes;
use crate::execute::block::Block;
use crate::execute::observe::{Event, Multicast, Observer, Site, Touch};
use crate::front::isa::{Access, Order, Scope};
use crate::registers::{Lanes, Reg, Regs};

/// When an access has left its SM, takes effect, and gives its value or is acknowledged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub(super) left: Picoseconds,
    pub(super) effect: Picoseconds,
    pub(super) back: Picoseconds,
}

/// A strong access of lanes, as flags have it.
pub(super) struct Signal<'s> {
    pub(super) kind: AccessKind,
    pub(super) addresses: &'s Lanes<u64>,
    pub(super) mask: u32,
    /// Of a lane.
    pub(super) bytes: u64,
    pub(super) effect: Picoseconds,
    pub(super) back: Picoseconds,
}

impl Clock {
    /// When bytes that the running block sends have passed its SM's port; with the block's rank.
    pub(super) fn leave(&mut self, load: Load) -> (usize, Picoseconds) {
        let Current { at, block, .. } = self.current;
        let (own, sm) = self.blocks.get(&block).map_or((0, 0), |state| (state.rank, state.sm));
        let cycles = (load.bytes as u32).div_ceil(self.options.topology.gpu.sm_bytes_a_cycle);
        let work = self.cycles(cycles);
        let (_, left) = self.sms.entry(sm).or_default().port.serve(self.fabric.past, at, work);
        (own, left)
    }

    /// What memory takes to give data, or flags.
    pub(super) fn latency(&self, strong: bool) -> Picoseconds {
        let gpu = &self.options.topology.gpu;
        self.cycles(if strong { gpu.cache_cycles } else { gpu.memory_cycles })
    }

    /// The times of an access of the running instruction to memory of a rank.
    pub(super) fn transfer(&mut self, kind: AccessKind, strong: bool, load: Load, owner: usize) -> Times {
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
        Times { left, effect, back }
    }

    /// Takes note of what a strong access does to flags; returns when a load has what it found.
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
                            timeline.messages.push(Message { from, sent, to: number, seen: has, address });
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
        site: &Site<'_>,
        (kind, access): (AccessKind, &Access),
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
        for &r in site.function.flight.operands(site.pc).loads {
            let ready = &mut times.frames[frame].1;
            ready.set(r, ready.of(r).max(has), times.next);
            times.loads = times.loads.max(has);
        }
        if matches!(access.order, Order::Acquire | Order::AcqRel) {
            times.next = times.next.max(has);
        }
    }
}

impl Observer for Clock {
    fn clock(&mut self) -> Option<&mut Clock> {
        Some(self)
    }

    fn touch(&mut self, touch: &Touch<'_>) -> Result<(), Fault> {
        // Compilers move what reads shared memory.
        if touch.allocation.is_some() {
            self.visit(touch.site.function, touch.site.pc);
        }
        let order = touch.access.order;
        let releases = matches!(order, Order::Release | Order::AcqRel);
        if let Some(state) = self.blocks.get_mut(&self.current.block)
            && releases
            && touch.access.scope != Scope::Cta
        {
            // What came before has to be there.
            self.current.at = self.current.at.max(state.acknowledged);
            let times = &mut state.warps[self.current.warp];
            times.next = times.next.max(self.current.at);
        }
        Ok(())
    }

    fn done(&mut self, touch: &Touch<'_>, _: &mut Regs, _: &[Reg]) -> Result<bool, Fault> {
        let Touch { site, kind, access, .. } = *touch;
        if touch.way.is_some() {
            // All ranks' parts are charged for at once.
            return Ok(false);
        }
        let strong = access.order != Order::Weak || kind == AccessKind::Atomic;
        let (has, effect) = match touch.allocation {
            Some((owner, _)) if touch.space == Space::Global => {
                let (addresses, mask, bytes) = (touch.addresses, touch.mask, access.bytes());
                let Times { effect, back, .. } =
                    self.transfer(kind, strong, Load::of(addresses, mask, bytes), owner);
                let signal = Signal { kind, addresses, mask, bytes, effect, back };
                (if strong { self.flags(&signal) } else { back }, Some(effect))
            }
            _ => (self.current.at + self.cycles(self.options.topology.gpu.shared_cycles), None),
        };
        self.finish(&site, (kind, access), has, effect);
        Ok(false)
    }

    fn multicast(&mut self, multicast: &Multicast<'_>) {
        Clock::multicast(self, multicast);
    }

    fn event(&mut self, site: Site<'_>, event: Event) -> Result<(), Fault> {
        match event {
            Event::Arrive { barrier, waits, .. } => {
                self.visit(site.function, site.pc);
                if let Some(state) = self.blocks.get_mut(&site.block.number) {
                    state.warps[site.warp as usize].waits = waits.then_some(barrier);
                    let latest = state.arrivals.entry(barrier).or_default();
                    *latest = self.current.at.max(*latest);
                }
            }
            Event::Complete { barrier } => {
                let cycles = self.cycles(self.options.topology.gpu.barrier_cycles);
                if let Some(state) = self.blocks.get_mut(&site.block.number) {
                    let on = state.arrivals.remove(&barrier).unwrap_or(self.current.at) + cycles;
                    for warp in state.warps.iter_mut().filter(|warp| warp.waits == Some(barrier)) {
                        (warp.next, warp.waits) = (warp.next.max(on), None);
                    }
                }
            }
            Event::Copy { lane, bulk, to, from, read, bytes, mbarrier } => {
                self.copy(&site, lane, bulk, (from, read), (to, bytes), mbarrier);
            }
            Event::CopyCommit { lane, bulk } => self.commit(&site, lane, bulk),
            Event::CopyWait { lane, bulk, read, groups } => {
                self.await_groups(&site, lane, bulk, read, groups)
            }
            Event::MbarrierArrive { lane, address, phase, copies } => {
                self.arrive_at(&site, lane, address, phase, copies);
            }
            Event::MbarrierOver { address, phase, .. } => self.await_phase(&site, address, phase),
            _ => {}
        }
        Ok(())
    }

    fn block_starts(&mut self, block: &Block) {
        Clock::block_starts(self, block);
    }

    fn block_ends(&mut self, block: &Block) {
        Clock::block_ends(self, block);
    }

    fn launch_ends(&mut self, _: &Block) {}
}
