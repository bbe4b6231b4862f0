//! Memory instructions of a warp: the lanes are split by the memory that their addresses fall into.

use crate::access::{Failure, atomic, lanes, lanes_inside, load, misaligned, store};
use crate::block::Block;
use crate::error::{AccessKind, BadAccess, Fault, Space};
use crate::exec::Context;
use crate::hang::{Poll, Read, Watcher};
use crate::isa::{Access, Address, AtomOp, FRAME_PARAMS, Function, Order};
use crate::memory::{
    AllocationId, Bytes, LOCAL_WINDOW, Memory, PARAM_WINDOW, Reason, SHARED_WINDOW, WINDOW_SHIFT,
};
use crate::observe::{Site, Touch};
use crate::regs::{LANES, Lanes, NO_REG, Reg, Regs};

#[inline(always)]
fn addresses(regs: &Regs, address: Address) -> Lanes<u64> {
    let offset = i64::from(address.offset) as u64;
    if address.wide {
        regs.get::<u64>(address.base).map(|v| v.wrapping_add(offset))
    } else {
        regs.get::<u32>(address.base).map(|v| u64::from(v).wrapping_add(offset))
    }
}

/// What a memory instruction does with registers.
#[derive(Clone, Copy)]
pub(crate) enum What<'i> {
    Load(&'i [Reg; 8]),
    Store(&'i [Reg; 8]),
    /// The destination may be `NO_REG`; operands b and c.
    Atomic(AtomOp, Reg, [Reg; 2]),
}

impl What<'_> {
    fn kind(&self) -> AccessKind {
        match self {
            What::Load(_) => AccessKind::Load,
            What::Store(_) => AccessKind::Store,
            What::Atomic(..) => AccessKind::Atomic,
        }
    }
}

/// Bytes that some lanes fall into, and the address of their first word.
struct Part<'r> {
    bytes: &'r Bytes,
    origin: u64,
    mask: u32,
    /// For memory of ranks.
    allocation: Option<AllocationId>,
}

/// The memory of one activation of a warp.
#[derive(Clone, Copy)]
pub(crate) struct Own<'r> {
    pub(crate) local: &'r [Bytes],
    /// As of the activation.
    pub(crate) params: &'r Bytes,
    pub(crate) param_bytes: usize,
}

/// A memory instruction of a warp.
pub(crate) struct MemoryOp<'p, 'm> {
    pub(crate) cx: &'p mut Context<'m>,
    pub(crate) own: Own<'p>,
    pub(crate) watcher: &'p mut Watcher,
    pub(crate) function: &'p Function,
    /// Number of the function in its module.
    pub(crate) number: u32,
    pub(crate) pc: u32,
    /// Of the warp in its block.
    pub(crate) index: u32,
}

impl MemoryOp<'_, '_> {
    fn note_read(&mut self, access: &Access, at: &Lanes<u64>, active: u32) {
        if matches!(access.space, Space::Global | Space::Shared | Space::Generic) {
            let lane = active.trailing_zeros();
            let (mut space, mut address) = (access.space, at[lane as usize]);
            if space == Space::Generic {
                space = if address >> WINDOW_SHIFT == 1 { Space::Shared } else { Space::Global };
                address &= (1 << WINDOW_SHIFT) - 1;
            }
            let (function, pc, bytes) = (self.number, self.pc, access.bytes());
            self.watcher.note(Read { function, pc, lane, space, address, bytes });
        }
    }

    #[cold]
    fn failed(
        &self,
        access: &Access,
        kind: AccessKind,
        space: Space,
        failure: Failure,
        address: u64,
    ) -> Fault {
        let space = if matches!(space, Space::Generic | Space::Const) { Space::Global } else { space };
        let near = if space == Space::Global { self.cx.memory.near(address) } else { None };
        let place = Some(self.cx.site(self.function, self.pc, self.index).place(failure.lane));
        failure.reason.fault(BadAccess { place, kind, space, address, bytes: access.bytes(), near })
    }

    /// Executes the instruction for the lanes of `mask`, split by the memory that their addresses fall into.
    #[inline(always)]
    pub(crate) fn execute(
        &mut self,
        access: &Access,
        address: Address,
        mask: u32,
        regs: &mut Regs,
        what: What<'_>,
    ) -> Result<(), Fault> {
        let at = &addresses(regs, address);
        let kind = what.kind();
        if self.cx.suspect && kind != AccessKind::Store {
            self.note_read(access, at, mask);
        }
        if let Some(failure) = misaligned(at, mask, access.bytes()) {
            return Err(self.failed(access, kind, access.space, failure, at[failure.lane]));
        }
        let mut rest = mask;
        while rest != 0 {
            let first = rest.trailing_zeros() as usize;
            let (space, window) = resolve_space(access.space, at[first]);
            let done = if window == 0 {
                self.part(access, space, at, rest, regs, what)?
            } else {
                let top = window >> WINDOW_SHIFT;
                let part = lanes(rest).filter(|&l| at[l] >> WINDOW_SHIFT == top).fold(0, |m, l| m | 1 << l);
                self.part(access, space, &at.map(|a| a.wrapping_sub(window)), part, regs, what)?
            };
            rest &= !done;
        }
        Ok(())
    }

    /// Serves lanes of `mask` that fall into the same bytes as the first of them; returns which. Every access of a
    /// kernel to global and shared memory comes through here.
    #[inline(always)]
    fn part(
        &mut self,
        access: &Access,
        space: Space,
        at: &Lanes<u64>,
        mask: u32,
        regs: &mut Regs,
        what: What<'_>,
    ) -> Result<u32, Fault> {
        let (kind, size) = (what.kind(), access.bytes());
        let Context { memory, tally, block, observer, .. } = &mut *self.cx;
        let (memory, block) = (*memory, &**block);
        let mut part = match reach(memory, block, self.own, space, kind, at, mask, size) {
            Ok(part) => part,
            Err(failure) => return Err(self.failed(access, kind, space, failure, at[failure.lane])),
        };
        // Each lane's atomic is seen by those of the next ones.
        if observer.is_some() && kind == AccessKind::Atomic {
            part.mask = 1 << part.mask.trailing_zeros();
        }
        let mut observed = observer.as_deref_mut().filter(|_| !matches!(space, Space::Local | Space::Param));
        let touch = || Touch {
            site: Site { memory, block, warp: self.index, function: self.function, pc: self.pc },
            kind,
            access,
            space: if space == Space::Shared { Space::Shared } else { Space::Global },
            addresses: at,
            mask: part.mask,
            allocation: part.allocation,
            bytes: part.bytes,
            origin: part.origin,
        };
        if let Some(observer) = &mut observed {
            observer.touch(&touch())?;
        }
        let Part { bytes, origin, mask, allocation } = part;
        let served = match what {
            What::Load(dst) => load(access, bytes, origin, at, mask, regs, dst).map(|()| false),
            What::Store(src) => Ok(store(access, bytes, origin, at, mask, regs, src)),
            What::Atomic(op, d, bc) => atomic_lanes(op, access, bytes, origin, at, mask, regs, d, bc),
        };
        if let (Some(observer), Ok(_)) = (observed, &served) {
            let to = match &what {
                What::Load(dst) => &dst[..access.count.into()],
                What::Atomic(_, d, _) => std::slice::from_ref(d),
                What::Store(_) => &[],
            };
            // A wait that was given an old value is not at its end.
            tally.epoch += u64::from(observer.done(&touch(), regs, to)?);
        }
        match served {
            Ok(changed) => tally.epoch += u64::from(changed),
            Err(failure) => return Err(self.failed(access, kind, space, failure, at[failure.lane])),
        }
        if let Some((rank, _)) = allocation {
            if let What::Load(dst) = what
                && access.order != Order::Weak
            {
                self.poll(access, at, mask, regs, dst);
            }
            self.count(kind, access, at, mask, rank);
        }
        Ok(mask)
    }

    /// Counts polls: loads that may be waiting for a value.
    #[cold]
    fn poll(&mut self, access: &Access, at: &Lanes<u64>, mask: u32, regs: &Regs, dst: &[Reg; 8]) {
        let (function, pc) = (self.number, self.pc);
        let waits = &mut self.cx.tally.waits;
        for lane in lanes(mask) {
            let values = dst.iter().take(access.count.into()).filter(|&&d| d != NO_REG);
            let value = values.fold(0u64, |all, &d| {
                all.rotate_left(19).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ regs.read(access.bank, d, lane)
            });
            waits.polls += 1;
            let same = self.watcher.poll(lane, Poll { function, pc, address: at[lane], value });
            waits.empty_polls += u64::from(same);
        }
    }

    /// Counts what went to memory of a rank, and looks whether it is watched.
    #[inline(always)]
    fn count(&mut self, kind: AccessKind, access: &Access, at: &Lanes<u64>, mask: u32, rank: usize) {
        let link = self.cx.tally.link(self.cx.block.rank, rank);
        link.add(kind, access, mask.count_ones().into());
        if kind != AccessKind::Load && !self.cx.memory.watched.is_empty() && self.cx.tally.watch_hit.is_none()
        {
            let size = access.bytes();
            let watched = lanes(mask).find(|&lane| self.cx.memory.watches(at[lane], size));
            self.cx.tally.watch_hit = watched.map(|lane| at[lane]);
        }
    }
}

/// The bytes that the first lane of `mask` falls into, with the lanes that fall into them too.
#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "the operands of one instruction")]
fn reach<'r>(
    memory: &'r Memory,
    block: &'r Block,
    own: Own<'r>,
    space: Space,
    kind: AccessKind,
    at: &Lanes<u64>,
    mask: u32,
    size: u64,
) -> Result<Part<'r>, Failure> {
    let lane = mask.trailing_zeros() as usize;
    let all = |bytes: &'r Bytes, mask: u32, first: u64| {
        let inside = lanes_inside(at, mask, first, bytes.len() as u64, size);
        if inside == mask {
            Ok(Part { bytes, origin: bytes.origin(first), mask, allocation: None })
        } else {
            let lane = (mask & !inside).trailing_zeros() as usize;
            Err(Failure { lane, reason: Reason::OutOfBounds })
        }
    };
    match space {
        Space::Global | Space::Const | Space::Generic => {
            let id = memory.resolve(at[lane], size).map_err(|reason| Failure { lane, reason })?;
            let found = memory.get(id);
            if kind != AccessKind::Load && found.read_only {
                return Err(Failure { lane, reason: Reason::ReadOnly });
            }
            let mask = lanes_inside(at, mask, found.base, found.len, size);
            Ok(Part {
                bytes: &found.bytes,
                origin: found.bytes.origin(found.base),
                mask,
                allocation: Some(id),
            })
        }
        Space::Shared => all(&block.shared, mask, 0),
        // Each lane has its own memory; the compiler keeps track of what is written.
        Space::Local => all(&own.local[lane], 1 << lane, 0),
        Space::Param if at[lane] < FRAME_PARAMS => match kind {
            AccessKind::Load => all(&block.params, mask, 0),
            _ => Err(Failure { lane, reason: Reason::ReadOnly }),
        },
        Space::Param => {
            let inside = lanes_inside(at, 1 << lane, FRAME_PARAMS, own.param_bytes as u64, size);
            if inside == 0 {
                return Err(Failure { lane, reason: Reason::OutOfBounds });
            }
            let origin = FRAME_PARAMS.wrapping_sub((lane * (own.params.len() / LANES)) as u64);
            Ok(Part { bytes: own.params, origin, mask: inside, allocation: None })
        }
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

#[expect(clippy::too_many_arguments, reason = "the operands of one instruction")]
fn atomic_lanes(
    op: AtomOp,
    access: &Access,
    bytes: &Bytes,
    origin: u64,
    at: &Lanes<u64>,
    mask: u32,
    regs: &mut Regs,
    d: Reg,
    [b, c]: [Reg; 2],
) -> Result<bool, Failure> {
    let mut changed = false;
    for lane in lanes(mask) {
        let operand = |r: Reg| if r == NO_REG { 0 } else { regs.read(access.bank, r, lane) };
        let offset = (at[lane] - origin) as usize;
        let (old, new) = atomic(op, access, bytes, offset, [operand(b), operand(c)])
            .map_err(|reason| Failure { lane, reason })?;
        changed |= new;
        if d != NO_REG {
            regs.write(access.bank, d, lane, old);
        }
    }
    Ok(changed)
}
