//! What accesses, fences and barriers cost.

use super::fabric::Load;
use super::operands::number;
use super::{Clock, Current, Flag, Message, Picoseconds};
use crate::access::lanes;
use crate::block::Block;
use crate::error::{AccessKind, Fault, Space};
use crate::isa::{Order, Scope};
use crate::observe::{Event, Observer, Site, Touch};
use crate::regs::{NO_REG, Reg, Regs};

impl Clock {
    /// When lanes' load or atomic gives its value, or their store is acknowledged; and when it takes effect.
    fn transfer(&mut self, touch: &Touch<'_>, owner: usize) -> (Picoseconds, Picoseconds) {
        let Current { at, block, .. } = self.current;
        let topology = &self.options.topology;
        let (own, sm) = self.blocks.get(&block).map_or((owner, 0), |state| (state.rank, state.sm));
        let load = Load::of(touch.addresses, touch.mask, touch.access.bytes());
        let gpu = &topology.gpu;
        let port_time = topology.cycles((load.bytes as u32).div_ceil(gpu.sm_bytes_a_cycle));
        let (_, at) = self.sms.entry(sm).or_default().port.serve(self.fabric.past, at, port_time);
        let strong = touch.access.order != Order::Weak || touch.kind == AccessKind::Atomic;
        let latency = topology.cycles(if strong { gpu.cache_cycles } else { gpu.memory_cycles });
        let alpha = self.fabric.latency();
        let carries = |bytes: bool| if bytes { load.bytes } else { 0 };
        let there = match own == owner {
            true => at + latency / 2,
            // A request without payload, or the bytes.
            false => self.fabric.send(at, own, owner, load, carries(touch.kind != AccessKind::Load)),
        };
        let served = if strong { there } else { self.fabric.memory(there, owner, load) };
        let back = match (own == owner, touch.kind) {
            (true, _) => served + latency / 2,
            (false, AccessKind::Store) => served + alpha,
            (false, _) => self.fabric.send(served + latency / 2, owner, own, load, load.bytes),
        };
        (back, served)
    }

    /// Takes note of what a strong access does to flags; returns when a load has what it found.
    fn flags(&mut self, touch: &Touch<'_>, back: Picoseconds, effect: Picoseconds) -> Picoseconds {
        let Current { at, block, .. } = self.current;
        let Some(number) = self.blocks.get(&block).map(|state| state.number) else { return back };
        let interval = self.cycles(self.options.topology.gpu.atomic_cycles);
        let (mut has, rest) = (back, back - effect);
        for lane in lanes(touch.mask) {
            let address = touch.addresses[lane];
            for word in address / 8..=(address + touch.access.bytes() - 1) / 8 {
                let mut effect = effect;
                if touch.kind != AccessKind::Store
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
                if touch.kind == AccessKind::Atomic {
                    let done = self.atomics.entry(word).or_default();
                    *done = effect.max(*done + interval);
                    (has, effect) = (has.max(*done + rest), *done);
                }
                if touch.kind != AccessKind::Load {
                    let flag = Flag { sent: at, arrives: effect, from: number, seen: Vec::new() };
                    self.flags.insert(word, flag);
                }
            }
        }
        has
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

    fn done(&mut self, touch: &Touch<'_>, _: &mut Regs, to: &[Reg]) -> Result<bool, Fault> {
        let Touch { site, kind, access, .. } = *touch;
        let strong = access.order != Order::Weak || kind == AccessKind::Atomic;
        let (has, effect) = match touch.allocation {
            Some((owner, _)) if touch.space == Space::Global => {
                let (back, effect) = self.transfer(touch, owner);
                (if strong { self.flags(touch, back, effect) } else { back }, effect)
            }
            _ => (self.current.at + self.cycles(self.options.topology.gpu.shared_cycles), self.current.at),
        };
        let Current { block, warp, frame, .. } = self.current;
        let Some(state) = self.blocks.get_mut(&block) else { return Ok(false) };
        let times = &mut state.warps[warp];
        if kind != AccessKind::Load && touch.allocation.is_some() {
            state.acknowledged = state.acknowledged.max(has);
            state.arrived = state.arrived.max(effect);
        }
        if kind == AccessKind::Store {
            return Ok(false);
        }
        for &d in to.iter().filter(|&&d| d != NO_REG) {
            let r = number(&site.function.layout, access.bank, d);
            if let Some(ready) = times.frames[frame].1.get_mut(r as usize) {
                *ready = (*ready).max(has);
            }
        }
        times.loads = times.loads.max(has);
        if matches!(access.order, Order::Acquire | Order::AcqRel) {
            times.next = times.next.max(has);
        }
        Ok(false)
    }

    fn event(&mut self, site: Site<'_>, event: Event) -> Result<(), Fault> {
        match event {
            Event::Arrive { barrier, waits, .. } => {
                self.visit(site.function, site.pc);
                if let Some(state) = self.blocks.get_mut(&site.block.number) {
                    state.warps[site.warp as usize].waits = waits.then_some(barrier);
                }
            }
            Event::Complete { barrier } => {
                let on = self.current.at + self.cycles(self.options.topology.gpu.barrier_cycles);
                if let Some(state) = self.blocks.get_mut(&site.block.number) {
                    for warp in state.warps.iter_mut().filter(|warp| warp.waits == Some(barrier)) {
                        (warp.next, warp.waits) = (warp.next.max(on), None);
                    }
                }
            }
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
