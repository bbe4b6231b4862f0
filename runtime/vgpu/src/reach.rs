//! Memory instructions of a warp: the lanes are split by the memory that their addresses fall into.

use crate::access::{Failure, atomic, lanes, lanes_inside, misaligned};
use crate::error::{AccessKind, BadAccess, Fault, Space};
use crate::exec::Context;
use crate::hang::{Read, Watcher};
use crate::isa::{Access, Address, AtomOp, FRAME_PARAMS, Function, Inst};
use crate::memory::{LOCAL_WINDOW, PARAM_WINDOW, Reason, SHARED_WINDOW, WINDOW_SHIFT};
use crate::regs::{Lanes, NO_REG, Reg, Regs};

#[inline(always)]
pub(crate) fn addresses(regs: &Regs, address: Address) -> Lanes<u64> {
    let offset = i64::from(address.offset) as u64;
    if address.wide {
        regs.get::<u64>(address.base).map(|v| v.wrapping_add(offset))
    } else {
        regs.get::<u32>(address.base).map(|v| u64::from(v).wrapping_add(offset))
    }
}

/// A run of bytes that lanes access, and the address of its first byte.
pub(crate) struct Part<'p> {
    pub(crate) bytes: &'p mut crate::memory::Bytes,
    pub(crate) base: u64,
}

/// A memory instruction and what it may touch.
pub(crate) struct MemoryOp<'p, 'm> {
    pub(crate) cx: &'p mut Context<'m>,
    pub(crate) local: &'p mut Vec<Vec<u8>>,
    pub(crate) watcher: &'p mut Watcher,
    pub(crate) params: (&'p mut Vec<u8>, usize),
    pub(crate) index: u32,
}

impl MemoryOp<'_, '_> {
    #[inline(always)]
    pub(crate) fn note_read(
        &mut self,
        access: &Access,
        at: &Lanes<u64>,
        active: u32,
        function: u32,
        pc: u32,
    ) {
        if self.cx.suspect && matches!(access.space, Space::Global | Space::Shared | Space::Generic) {
            let lane = active.trailing_zeros();
            let (mut space, mut address) = (access.space, at[lane as usize]);
            if space == Space::Generic {
                space = if address >> WINDOW_SHIFT == 1 { Space::Shared } else { Space::Global };
                address &= (1 << WINDOW_SHIFT) - 1;
            }
            self.watcher.note(Read { function, pc, lane, space, address, bytes: access.bytes() });
        }
    }

    /// Splits the lanes by the memory they fall into and hands each part to `f`, which says whether values changed.
    #[inline(always)]
    #[expect(clippy::too_many_arguments, reason = "the operands of one instruction")]
    pub(crate) fn each_part(
        &mut self,
        function: &Function,
        inst: &Inst,
        access: &Access,
        kind: AccessKind,
        at: &Lanes<u64>,
        mask: u32,
        mut f: impl FnMut(Part<'_>, u32, &Lanes<u64>) -> Result<bool, Failure>,
    ) -> Result<(), Fault> {
        let failed = |this: &Self, space: Space, failure: Failure, at: &Lanes<u64>| {
            let (address, bytes) = (at[failure.lane], access.bytes());
            let near = if space == Space::Global { this.cx.memory.near(address) } else { None };
            let place = Some(this.cx.place(function, inst, this.index, failure.lane));
            failure.reason.fault(BadAccess { place, kind, space, address, bytes, near })
        };
        if let Some(failure) = misaligned(at, mask, access.bytes()) {
            return Err(failed(self, access.space, failure, at));
        }
        let mut rest = mask;
        while rest != 0 {
            let first = rest.trailing_zeros() as usize;
            let (space, window) = resolve_space(access.space, at[first]);
            let (part, moved);
            if window == 0 {
                (part, moved) = (rest, *at);
            } else {
                let top = window >> WINDOW_SHIFT;
                part = lanes(rest).filter(|&l| at[l] >> WINDOW_SHIFT == top).fold(0, |m, l| m | 1 << l);
                moved = at.map(|a| a.wrapping_sub(window));
            }
            let served = match space {
                Space::Global | Space::Const | Space::Generic => {
                    self.global(access, kind, &moved, part, &mut f)
                }
                Space::Shared => self.shared(access, kind, &moved, part, &mut f),
                Space::Local => self.lane_local(access, &moved, part, &mut f),
                Space::Param => self.param(access, kind, &moved, part, &mut f),
            };
            match served {
                Ok(done) => rest &= !done,
                Err(failure) => {
                    let space =
                        if space == Space::Generic || space == Space::Const { Space::Global } else { space };
                    return Err(failed(self, space, failure, &moved));
                }
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn global(
        &mut self,
        access: &Access,
        kind: AccessKind,
        at: &Lanes<u64>,
        mask: u32,
        f: &mut impl FnMut(Part<'_>, u32, &Lanes<u64>) -> Result<bool, Failure>,
    ) -> Result<u32, Failure> {
        let lane = mask.trailing_zeros() as usize;
        let size = access.bytes();
        let id = self.cx.memory.resolve(at[lane], size).map_err(|reason| Failure { lane, reason })?;
        let found = self.cx.memory.get_mut(id);
        let inside = lanes_inside(at, mask, found.base, found.len, size);
        if kind != AccessKind::Load && found.read_only {
            return Err(Failure { lane, reason: Reason::ReadOnly });
        }
        let base = found.base;
        let changed = f(Part { bytes: &mut found.bytes, base }, inside, at)?;
        let memory = &mut *self.cx.memory;
        memory.epoch += u64::from(changed);
        let link = memory.link(self.cx.block.rank, id.0);
        let count = u64::from(inside.count_ones());
        match kind {
            AccessKind::Load => {
                link.loads += count;
                link.bytes_loaded += count * size;
            }
            AccessKind::Store => {
                link.stores += count;
                link.bytes_stored += count * size;
            }
            AccessKind::Atomic => {
                link.atomics += count;
                link.bytes_loaded += count * size;
                link.bytes_stored += count * size;
            }
        }
        if kind != AccessKind::Load && !memory.watched.is_empty() {
            for lane in lanes(inside) {
                memory.note_store(at[lane], size);
            }
        }
        Ok(inside)
    }

    fn shared(
        &mut self,
        access: &Access,
        _kind: AccessKind,
        at: &Lanes<u64>,
        mask: u32,
        f: &mut impl FnMut(Part<'_>, u32, &Lanes<u64>) -> Result<bool, Failure>,
    ) -> Result<u32, Failure> {
        let bytes = &mut self.cx.block.shared;
        all_inside(at, mask, bytes.data.len() as u64, access.bytes())?;
        let changed = f(Part { bytes, base: 0 }, mask, at)?;
        self.cx.memory.epoch += u64::from(changed);
        Ok(mask)
    }

    /// Each lane has its own memory; the compiler keeps track of what is written.
    fn lane_local(
        &mut self,
        access: &Access,
        at: &Lanes<u64>,
        mask: u32,
        f: &mut impl FnMut(Part<'_>, u32, &Lanes<u64>) -> Result<bool, Failure>,
    ) -> Result<u32, Failure> {
        for lane in lanes(mask) {
            let mut bytes = crate::memory::Bytes::zeroed(0);
            std::mem::swap(&mut bytes.data, &mut self.local[lane]);
            let served = all_inside(at, 1 << lane, bytes.data.len() as u64, access.bytes())
                .and_then(|()| f(Part { bytes: &mut bytes, base: 0 }, 1 << lane, at));
            std::mem::swap(&mut bytes.data, &mut self.local[lane]);
            self.cx.memory.epoch += u64::from(served?);
        }
        Ok(mask)
    }

    fn param(
        &mut self,
        access: &Access,
        kind: AccessKind,
        at: &Lanes<u64>,
        mask: u32,
        f: &mut impl FnMut(Part<'_>, u32, &Lanes<u64>) -> Result<bool, Failure>,
    ) -> Result<u32, Failure> {
        let lane = mask.trailing_zeros() as usize;
        if at[lane] < FRAME_PARAMS {
            if kind != AccessKind::Load {
                return Err(Failure { lane, reason: Reason::ReadOnly });
            }
            let mut params = std::mem::take(&mut self.cx.block.params);
            let served = all_inside(at, mask, params.data.len() as u64, access.bytes())
                .and_then(|()| f(Part { bytes: &mut params, base: 0 }, mask, at));
            self.cx.block.params = params;
            served?;
            return Ok(mask);
        }
        let (params, size) = (&mut *self.params.0, self.params.1);
        for lane in lanes(mask) {
            let slot = lane * size..(lane + 1) * size;
            let mut bytes = crate::memory::Bytes::zeroed(size);
            bytes.data.copy_from_slice(&params[slot.clone()]);
            let moved = at.map(|a| a.wrapping_sub(FRAME_PARAMS));
            all_inside(&moved, 1 << lane, size as u64, access.bytes())?;
            f(Part { bytes: &mut bytes, base: 0 }, 1 << lane, &moved)?;
            params[slot].copy_from_slice(&bytes.data);
        }
        Ok(mask)
    }
}

/// The space that an address of `space` lies in, and the window to subtract from it.
#[inline(always)]
fn resolve_space(space: Space, address: u64) -> (Space, u64) {
    if space != Space::Generic {
        return (space, 0);
    }
    match address >> WINDOW_SHIFT {
        1 => (Space::Shared, SHARED_WINDOW),
        2 => (Space::Local, LOCAL_WINDOW),
        3 => (Space::Param, PARAM_WINDOW),
        _ => (Space::Generic, 0),
    }
}

fn all_inside(at: &Lanes<u64>, mask: u32, len: u64, bytes: u64) -> Result<(), Failure> {
    let inside = lanes_inside(at, mask, 0, len, bytes);
    if inside == mask {
        return Ok(());
    }
    let lane = (mask & !inside).trailing_zeros() as usize;
    Err(Failure { lane, reason: Reason::OutOfBounds })
}

#[expect(clippy::too_many_arguments, reason = "the operands of one instruction")]
pub(crate) fn atomic_lanes(
    op: AtomOp,
    access: &Access,
    part: Part<'_>,
    at: &Lanes<u64>,
    mask: u32,
    regs: &mut Regs,
    d: Reg,
    [b, c]: [Reg; 2],
) -> Result<bool, Failure> {
    let mut changed = false;
    for lane in lanes(mask) {
        let operand = |r: Reg| if r == NO_REG { 0 } else { regs.read(access.bank, r, lane) };
        let offset = (at[lane] - part.base) as usize;
        let (old, new) = atomic(op, access, part.bytes, offset, [operand(b), operand(c)])
            .map_err(|reason| Failure { lane, reason })?;
        changed |= new;
        if d != NO_REG {
            regs.write(access.bank, d, lane, old);
        }
    }
    Ok(changed)
}
