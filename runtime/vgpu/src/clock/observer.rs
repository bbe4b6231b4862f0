//! The clock at the machine's hooks: when instructions are issued, and when accesses, barriers and blocks take place.

use super::access::{AccessTimes, Signal};
use super::fabric::Footprint;
use super::ready::RegisterTimes;
use super::timeline::BlockTimes;
use super::topology::Picoseconds;
use super::watch::LabelVisits;
use super::{BlockState, Current, VirtualClock, WarpTimes, slots};
use crate::fault::{AccessKind, Fault, Space};
use crate::isa::{ClockUnit, MemoryOrder, PtxOp, Scope};
use crate::observe::{BlockInfo, MemoryTouch, MulticastAccess, Observer, WarpEvent, WarpSite};
use crate::registers::{Reg, Regs};
use rustc_hash::FxHashMap;
use std::sync::Arc;

impl Observer for VirtualClock {
    fn issue(&mut self, site: &WarpSite<'_>, frame: usize, regs: &Regs, active: u32) -> bool {
        let WarpSite { block, warp, function, pc, .. } = *site;
        let inst = &function.code[pc as usize];
        // What a register has from the start takes no time where it comes late.
        if let PtxOp::Preset(..) = inst.op {
            return true;
        }
        let Some(state) = self.blocks.get_mut(&block.number) else { return true };
        let times = &mut state.warps[warp as usize];
        while times.frames.len() <= frame {
            times.frames.push((u32::MAX, RegisterTimes::default()));
        }
        let (owner, ready) = &mut times.frames[frame];
        if *owner != function.first {
            (*owner, *ready) = (function.first, RegisterTimes::default());
        }
        let used = function.operands.of(pc);
        let mut at = times.next;
        if active != 0 {
            let needed = used.reads.iter().chain(used.writes).map(|&r| ready.of(r));
            at = needed.fold(at, Picoseconds::max);
            if used.all {
                at = at.max(times.loads);
            }
        }
        let topology = &self.options.topology;
        let sm = self.sms.entry(state.sm).or_default();
        let class = inst.class;
        let cost = if inst.weight == 0 { 0 } else { slots(class) };
        let cycle = topology.cycles(1);
        at = sm.slot(at, cycle, topology.gpu.issue, cost);
        if at > self.until {
            times.next = at;
            return false;
        }
        sm.take(at, cycle, cost);
        let result = at + topology.cycles(topology.gpu.arithmetic_cycles);
        times.next = at + if inst.weight == 0 { 0 } else { cycle };
        if active != 0 {
            used.writes.iter().for_each(|&r| ready.set(r, result, times.next));
        }
        state.last = state.last.max(at);
        self.current = Current { block: block.number, warp: warp as usize, frame, at };
        if active != 0 {
            self.special(function, pc, regs, active);
        }
        true
    }

    fn time(&mut self, unit: ClockUnit) -> Option<u64> {
        Some(match unit {
            ClockUnit::Nanoseconds => self.current.at / 1000,
            ClockUnit::Cycles => {
                (self.current.at as f64 * self.options.topology.gpu.clock_ghz / 1000.0) as u64
            }
        })
    }

    fn due(&mut self, block: u32, warp: u32) -> Picoseconds {
        self.blocks.get(&block).map_or(0, |block| block.warps[warp as usize].next)
    }

    fn turn(&mut self, now: Picoseconds, until: Picoseconds) {
        self.fabric.past = now;
        self.until = until.saturating_add(self.lookahead());
        if self.flags.len() > 1 << 16 {
            self.flags.retain(|_, flag| flag.arrives > now);
        }
        if self.atomics.len() > 1 << 16 {
            self.atomics.retain(|_, done| *done > now);
        }
    }

    fn touch(&mut self, touch: &MemoryTouch<'_>) -> Result<(), Fault> {
        // Compilers move what reads shared memory.
        if touch.allocation.is_some() {
            self.visit(touch.site.function, touch.site.pc);
        }
        let order = touch.access.order;
        let releases = matches!(order, MemoryOrder::Release | MemoryOrder::AcqRel);
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

    fn done(&mut self, touch: &MemoryTouch<'_>, _: &mut Regs, _: &[Reg]) -> Result<bool, Fault> {
        let MemoryTouch { site, kind, access, .. } = *touch;
        if touch.way.is_some() {
            // All ranks' parts are charged for at once.
            return Ok(false);
        }
        let strong = access.order != MemoryOrder::Weak || kind == AccessKind::Atomic;
        let (has, effect) = match touch.allocation {
            Some((owner, _)) if touch.space == Space::Global => {
                let (addresses, mask, bytes) = (touch.addresses, touch.mask, access.bytes());
                let AccessTimes { effect, back, .. } =
                    self.transfer(kind, strong, Footprint::of(addresses, mask, bytes), owner);
                let signal = Signal { kind, addresses, mask, bytes, effect, back };
                (if strong { self.flags(&signal) } else { back }, Some(effect))
            }
            _ => (self.current.at + self.cycles(self.options.topology.gpu.shared_cycles), None),
        };
        self.finish(&site, (kind, access), has, effect);
        Ok(false)
    }

    fn multicast(&mut self, multicast: &MulticastAccess<'_>) {
        VirtualClock::multicast(self, multicast);
    }

    fn event(&mut self, site: WarpSite<'_>, event: WarpEvent) -> Result<(), Fault> {
        match event {
            WarpEvent::Arrive { barrier, waits, .. } => {
                self.visit(site.function, site.pc);
                if let Some(state) = self.blocks.get_mut(&site.block.number) {
                    state.warps[site.warp as usize].waits = waits.then_some(barrier);
                    let latest = state.arrivals.entry(barrier).or_default();
                    *latest = self.current.at.max(*latest);
                }
            }
            WarpEvent::Complete { barrier } => {
                let cycles = self.cycles(self.options.topology.gpu.barrier_cycles);
                if let Some(state) = self.blocks.get_mut(&site.block.number) {
                    let on = state.arrivals.remove(&barrier).unwrap_or(self.current.at) + cycles;
                    for warp in state.warps.iter_mut().filter(|warp| warp.waits == Some(barrier)) {
                        (warp.next, warp.waits) = (warp.next.max(on), None);
                    }
                }
            }
            WarpEvent::Copy { lane, bulk, to, from, read, bytes, mbarrier } => {
                self.copy(&site, lane, bulk, (from, read), (to, bytes), mbarrier);
            }
            WarpEvent::CopyCommit { lane, bulk } => self.commit(&site, lane, bulk),
            WarpEvent::CopyWait { lane, bulk, read, groups } => {
                self.await_groups(&site, lane, bulk, read, groups)
            }
            WarpEvent::MbarrierArrive { lane, address, phase, copies } => {
                self.arrive_at(&site, lane, address, phase, copies);
            }
            WarpEvent::MbarrierOver { address, phase, .. } => self.await_phase(&site, address, phase),
            _ => {}
        }
        Ok(())
    }

    fn block_starts(&mut self, block: &BlockInfo) {
        let sms = u64::from(self.options.topology.gpu.sms);
        let start = self.idle[block.rank];
        let labels = self.labels.iter().find(|(module, _)| Arc::ptr_eq(module, &block.module));
        let number = self.timing.timeline.as_mut().map_or(0, |timeline| {
            timeline.blocks.push(BlockTimes {
                rank: block.rank,
                launch: block.launch,
                block: block.shape.block,
                start,
                end: start,
                spans: Vec::new(),
            });
            timeline.blocks.len() - 1
        });
        // Without a timeline blocks are told apart by their own numbers.
        let number = if self.options.timeline { number } else { block.number as usize };
        let state = BlockState {
            rank: block.rank,
            sm: block.rank * sms as usize + (block.shape.linear() % sms) as usize,
            warps: (0..block.shape.warps())
                .map(|_| WarpTimes { next: start, ..WarpTimes::default() })
                .collect(),
            arrivals: FxHashMap::default(),
            acknowledged: start,
            arrived: start,
            last: start,
            number,
            labels: labels.map(|(_, labels)| labels.clone()),
        };
        self.blocks.insert(block.number, state);
    }

    fn block_ends(&mut self, block: &BlockInfo) {
        let Some(mut state) = self.blocks.remove(&block.number) else { return };
        self.flying.end_block(block.number);
        // A kernel is not over before its stores have arrived.
        let end = state.arrived.max(state.last + self.cycles(1));
        let idle = &mut self.idle[block.rank];
        *idle = (*idle).max(end);
        self.timing.ranks[block.rank] = *idle;
        self.timing.end = self.timing.end.max(end);
        if let Some(timeline) = &mut self.timing.timeline {
            let mut visits = LabelVisits::default();
            state.warps.iter_mut().for_each(|warp| visits.join(warp.watch.finish(end)));
            timeline.blocks[state.number].end = end;
            timeline.blocks[state.number].spans = visits.spans();
        }
    }

    fn launch_ends(&mut self, _: &BlockInfo) {}
}
