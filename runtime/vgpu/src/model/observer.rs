//! The model at the machine's hooks.

use super::{Extent, LaunchId, MemoryId, Model, ModelAccess, ModelCopy, Path, Proxy, Refusal, WarpId};
use crate::fault::{AccessKind, Fault, Space};
use crate::isa::{Mbarrier, MemoryAccess, MemoryOrder, ProxyKind, PtxOp};

use crate::memory::MachineMemory;
use crate::observe::{BlockInfo, MemoryTouch, Observer, WarpEvent, WarpSite};
use crate::registers::{LANES, NO_REG, Reg, Regs};

impl Model {
    fn who(&self, site: &WarpSite<'_>) -> WarpId {
        WarpId { block: site.block.number - self.first, warp: site.warp }
    }

    fn touched<'t>(&self, touch: &MemoryTouch<'t>) -> ModelAccess<'t> {
        let site = &touch.site;
        let (memory, path) = match touch.allocation {
            Some(id) => {
                let (own, alias) = site.memory.own(id);
                (MemoryId::Global(own), touch.way.map_or(Path::alias(alias), Path::multicast))
            }
            None => {
                debug_assert_eq!(touch.space, Space::Shared);
                (MemoryId::Shared(site.block.number - self.first), Path::OWN)
            }
        };
        ModelAccess {
            memory,
            base: touch.origin,
            at: touch.addresses,
            mask: touch.mask,
            access: touch.access,
            site: site.function.first + site.pc,
            path,
        }
    }

    /// Bytes in a space of a block; none if they lie nowhere.
    fn extent(&self, site: &WarpSite<'_>, (space, at): (Space, u64), bytes: u64) -> Option<Extent> {
        if space == Space::Shared {
            let memory = MemoryId::Shared(site.block.number - self.first);
            return Some(Extent { memory, base: 0, offset: at, bytes, path: Path::OWN });
        }
        let id = site.memory.locate(at)?;
        let (own, alias) = site.memory.own(id);
        let found = site.memory.get(id);
        let base = found.bytes.origin(found.base);
        Some(Extent {
            memory: MemoryId::Global(own),
            base,
            offset: at - base,
            bytes,
            path: Path::alias(alias),
        })
    }
}

#[cold]
fn refused(memory: &MachineMemory, refusal: Refusal) -> Fault {
    let near = |space, address| match space {
        Space::Global => memory.near(address),
        _ => None,
    };
    match refusal {
        Refusal::Race(mut race) => {
            race.near = near(race.space, race.address);
            Fault::Race(race)
        }
        Refusal::SlotReuse(mut reuse) => {
            reuse.near = near(reuse.space, reuse.address);
            Fault::SlotReuse(reuse)
        }
    }
}

/// The instruction on an mbarrier at a site.
fn mbarrier<'e>(site: &WarpSite<'e>) -> Option<&'e Mbarrier> {
    match site.function.code[site.pc as usize].op {
        PtxOp::Mbarrier(number) => site.function.mbarriers.get(number as usize),
        _ => None,
    }
}

/// An element of an access, as it lies in a register.
fn widened(access: &MemoryAccess, value: u64) -> u64 {
    let unused = 64 - 8 * access.ty.bytes().min(8) as u32;
    if access.ty.signed() { ((value << unused) as i64 >> unused) as u64 } else { value }
}

impl Observer for Model {
    fn call(&mut self, site: &WarpSite<'_>) -> u32 {
        let call = (site.chain, site.function.first + site.pc);
        *self.chain_numbers.entry(call).or_insert_with(|| {
            self.chains.push(call);
            self.chains.len() as u32
        })
    }

    fn touch(&mut self, touch: &MemoryTouch<'_>) -> Result<(), Fault> {
        let who = self.who(&touch.site);
        self.clocks.enter(who, touch.site.chain);
        let checked = self.before(who, touch.kind, &self.touched(touch), touch.bytes);
        checked.map_err(|refusal| refused(touch.site.memory, refusal))
    }

    fn done(&mut self, touch: &MemoryTouch<'_>, regs: &mut Regs, to: &[Reg]) -> Result<bool, Fault> {
        let who = self.who(&touch.site);
        let access = self.touched(touch);
        match touch.kind {
            AccessKind::Store => self.stored(who, &access, touch.bytes),
            AccessKind::Atomic => self.modified(who, &access, touch.bytes),
            AccessKind::Load => {
                let instead = self.loaded(who, &access);
                // An element of 128 bits has two registers.
                let registers = if touch.access.whole { usize::from(touch.access.count) } else { 1 };
                let bits = 8 * touch.access.ty.bytes();
                for &(lane, element, value) in &instead {
                    for (part, &d) in to.iter().skip(element * registers).take(registers).enumerate() {
                        if d != NO_REG {
                            let value = widened(touch.access, (value >> (part * bits)) as u64);
                            regs.write(touch.access.bank, d, lane, value);
                        }
                    }
                }
                return Ok(!instead.is_empty());
            }
        }
        Ok(false)
    }

    fn event(&mut self, site: WarpSite<'_>, event: WarpEvent) -> Result<(), Fault> {
        let who = self.who(&site);
        match event {
            WarpEvent::Fence { order, scope, mask } => self.fence(who, mask, order, scope),
            WarpEvent::ProxyFence { kind: ProxyKind::Alias, mask } => {
                self.fence_proxy(who, mask, Proxy::Alias)
            }
            WarpEvent::ProxyFence { mask, .. } => self.fence_proxy(who, mask, Proxy::Async),
            WarpEvent::Arrive { barrier, mask, waits } => self.arrive(who, barrier, mask, waits),
            WarpEvent::Complete { barrier } => {
                self.complete(who.block, barrier, site.block.shape.thread_count());
            }
            WarpEvent::WarpSync { mask, live } => {
                let threads = site.block.shape.thread_count() - site.warp * LANES as u32;
                let nobody = u32::MAX.checked_shl(threads).unwrap_or(0);
                self.meet(who, mask | nobody, live | nobody);
            }
            WarpEvent::MbarrierArrive { lane, address, phase, copies } => {
                let releases = |m: &Mbarrier| matches!(m.order, MemoryOrder::Release | MemoryOrder::AcqRel);
                if copies || mbarrier(&site).is_some_and(releases) {
                    self.arrive_at(who, lane as usize, address, phase, copies);
                }
            }
            WarpEvent::MbarrierOver { lane, address, phase } => {
                let acquires = |m: &Mbarrier| matches!(m.order, MemoryOrder::Acquire | MemoryOrder::AcqRel);
                if mbarrier(&site).is_some_and(acquires) {
                    self.await_phase(who, lane as usize, address, phase);
                }
            }
            WarpEvent::Copy { lane, bulk, to, from, read, bytes, mbarrier } => {
                let from = self.extent(&site, from, read).filter(|_| read > 0);
                let Some(to) = self.extent(&site, to, bytes) else { return Ok(()) };
                let number = site.function.first + site.pc;
                self.clocks.enter(who, site.chain);
                let copy = ModelCopy { lane: lane as usize, site: number, bulk, from, to, mbarrier };
                self.copy(who, &copy).map_err(|refusal| refused(site.memory, refusal))?;
            }
            WarpEvent::CopyCommit { lane, bulk } => self.commit(who, lane as usize, bulk),
            WarpEvent::CopyWait { lane, bulk, read, groups } => {
                self.await_groups(who, lane as usize, bulk, read, groups);
            }
        }
        Ok(())
    }

    fn block_starts(&mut self, block: &BlockInfo) {
        if self.blocks.is_empty() {
            self.first = block.number;
        }
        self.start_block(block);
    }

    fn block_ends(&mut self, block: &BlockInfo) {
        self.end_block(block.number - self.first);
    }

    fn launch_ends(&mut self, block: &BlockInfo) {
        self.end_launch(LaunchId::of(block));
    }
}
