//! Memory instructions of a warp: the lanes are split by the memory that their addresses fall into.

use crate::arithmetic::types::Ty;
use crate::execute::access::{
    LaneFailure, ServedLanes, atomic, atomic_wide, contiguous, lanes_inside, load, misaligned, store,
};
use crate::execute::address::{access_fault, addresses, resolve_space};
use crate::execute::block::ResidentBlock;
use crate::execute::context::{StepContext, WarpPosition};
use crate::execute::multimem;
use crate::execute::repetition::{Poll, RepetitionWatcher, WatchedRead};
use crate::fault::{AccessKind, Fault, Space};
use crate::isa::{
    Address, AtomOp, AtomVector, FRAME_PARAMS, MemoryAccess, MemoryOrder, Multimem, MultimemKind, PtxOp,
    WINDOW_SHIFT,
};
use crate::memory::{AllocationId, MachineMemory, Member, MemoryBytes, Reason};
use crate::observe::{MemoryTouch, WarpSite};
use crate::registers::{ALL, LANES, Lanes, NO_REG, Reg, Regs, lanes};

/// The registers of a memory instruction.
#[derive(Clone, Copy)]
enum AccessOperands<'i> {
    Load(&'i [Reg; 8]),
    Store(&'i [Reg; 8]),
    /// The destination may be `NO_REG`; operands b and c.
    Atomic(AtomOp, Reg, [Reg; 2]),
    AtomicVector(&'i AtomVector),
}

impl AccessOperands<'_> {
    fn kind(&self) -> AccessKind {
        match self {
            AccessOperands::Load(_) => AccessKind::Load,
            AccessOperands::Store(_) => AccessKind::Store,
            AccessOperands::Atomic(..) | AccessOperands::AtomicVector(_) => AccessKind::Atomic,
        }
    }
}

/// Bytes that some lanes fall into, and the address of their first word.
struct ReachedBytes<'r> {
    bytes: &'r MemoryBytes,
    origin: u64,
    mask: u32,
    /// For memory of ranks.
    allocation: Option<AllocationId>,
}

/// The memory of one activation of a warp.
#[derive(Clone, Copy)]
pub(crate) struct WarpMemory<'r> {
    pub(crate) local: &'r [MemoryBytes],
    /// As of the activation.
    pub(crate) params: &'r MemoryBytes,
    pub(crate) param_bytes: usize,
    /// First address of its local memory.
    pub(crate) local_base: u64,
}

/// An instruction of a warp beyond its registers.
pub(crate) struct WarpStep<'p, 'm> {
    pub(crate) cx: &'p mut StepContext<'m>,
    pub(crate) own: WarpMemory<'p>,
    pub(crate) watcher: &'p mut RepetitionWatcher,
    pub(crate) at: WarpPosition<'p>,
    /// Number of the function in its module.
    pub(crate) number: u32,
}

impl WarpStep<'_, '_> {
    fn note_read(&mut self, access: &MemoryAccess, at: &Lanes<u64>, active: u32) {
        if matches!(access.space, Space::Global | Space::Shared | Space::Generic) {
            let lane = active.trailing_zeros();
            let (mut space, mut address) = (access.space, at[lane as usize]);
            if space == Space::Generic {
                space = if address >> WINDOW_SHIFT == 1 { Space::Shared } else { Space::Global };
                address &= (1 << WINDOW_SHIFT) - 1;
            }
            let (function, pc, bytes) = (self.number, self.at.pc, access.bytes());
            self.watcher.note(WatchedRead { function, pc, lane, space, address, bytes });
        }
    }

    /// Notes the address that a waiting `multimem.ld_reduce` reads on its first rank.
    fn note_multimem(&mut self, m: &Multimem, mask: u32, regs: &Regs) {
        let lane = mask.trailing_zeros();
        let at = addresses(regs, m.address)[lane as usize];
        let bytes = m.access.bytes();
        let members = self.cx.memory.members(at, bytes).map(|(members, _)| members).unwrap_or_default();
        if let Some(&Member { address, .. }) = members.first() {
            let (function, pc) = (self.number, self.at.pc);
            self.watcher.note(WatchedRead { function, pc, lane, space: Space::Global, address, bytes });
        }
    }

    #[cold]
    fn failed(
        &self,
        access: &MemoryAccess,
        kind: AccessKind,
        space: Space,
        failure: LaneFailure,
        address: u64,
    ) -> Fault {
        access_fault(self.cx, self.at, (space, address, access.bytes()), kind, failure)
    }

    /// Executes a load, store or atomic, or a `multimem` instruction.
    #[inline(always)]
    pub(crate) fn access(&mut self, op: &PtxOp, mask: u32, regs: &mut Regs) -> Result<(), Fault> {
        let function = self.at.function;
        match op {
            PtxOp::Load(access, address, to) => {
                self.execute(access, *address, mask, regs, AccessOperands::Load(to))
            }
            PtxOp::Store(access, address, from) => {
                self.execute(access, *address, mask, regs, AccessOperands::Store(from))
            }
            PtxOp::Atom(op, access, address, d, bc) => {
                self.execute(access, *address, mask, regs, AccessOperands::Atomic(*op, *d, *bc))
            }
            PtxOp::AtomVector(n) => {
                let atom = &function.atoms[*n as usize];
                self.execute(&atom.access, atom.address, mask, regs, AccessOperands::AtomicVector(atom))
            }
            PtxOp::Multimem(n) => {
                let m = &function.multimems[*n as usize];
                if self.cx.suspect && m.kind == MultimemKind::LoadReduce {
                    self.note_multimem(m, mask, regs);
                }
                multimem::execute(self.cx, self.at, m, mask, regs)
            }
            _ => Ok(()),
        }
    }

    /// Executes the instruction for the lanes of `mask`, split by the memory that their addresses fall into.
    fn execute(
        &mut self,
        access: &MemoryAccess,
        address: Address,
        mask: u32,
        regs: &mut Regs,
        what: AccessOperands<'_>,
    ) -> Result<(), Fault> {
        let at = &addresses(regs, address);
        let kind = what.kind();
        if self.cx.suspect && kind != AccessKind::Store {
            self.note_read(access, at, mask);
        }
        let size = access.bytes();
        if kind != AccessKind::Atomic && contiguous(at, mask, size) && at[0] & (size - 1) == 0 {
            // Mostly the whole run lies in one place; else the lanes are looked at one by one.
            let (space, window) = resolve_space(access.space, at[0]);
            if self.serve(access, space, window, at, mask, true, regs, what)? != 0 {
                return Ok(());
            }
        }
        if let Some(failure) = misaligned(at, mask, size) {
            return Err(self.failed(access, kind, access.space, failure, at[failure.lane]));
        }
        let mut rest = mask;
        while rest != 0 {
            let (space, window) = resolve_space(access.space, at[rest.trailing_zeros() as usize]);
            let top = window >> WINDOW_SHIFT;
            let part = match window {
                0 => rest,
                _ => lanes(rest).filter(|&l| at[l] >> WINDOW_SHIFT == top).fold(0, |m, l| m | 1 << l),
            };
            rest &= !self.serve(access, space, window, at, part, false, regs, what)?;
        }
        Ok(())
    }

    /// Serves lanes of `mask` that fall into the same bytes as the first of them; returns which. If the lanes are to be
    /// served as one `run`, then all or none are. Every access of a kernel to global and shared memory comes through
    /// here.
    // Once only: it holds loads and stores of all widths.
    #[inline(never)]
    #[expect(clippy::too_many_arguments, reason = "the operands of one instruction")]
    fn serve(
        &mut self,
        access: &MemoryAccess,
        space: Space,
        window: u64,
        at: &Lanes<u64>,
        mask: u32,
        run: bool,
        regs: &mut Regs,
        what: AccessOperands<'_>,
    ) -> Result<u32, Fault> {
        let (kind, size) = (what.kind(), access.bytes());
        let StepContext { memory, tally, block, observer, chain, .. } = &mut *self.cx;
        let (memory, block) = (*memory, &**block);
        let reached = match run {
            true => reach_run(memory, block, space, window, kind, at[0], size),
            false => reach(memory, block, self.own, space, window, kind, at, mask, size),
        };
        let ReachedBytes { bytes, origin, mut mask, allocation } = match reached {
            Ok(part) => part,
            Err(_) if run => return Ok(0),
            Err(failure) => {
                return Err(self.failed(access, kind, space, failure, at[failure.lane] - window));
            }
        };
        // Each lane's atomic is seen by those of the next ones.
        if observer.is_some() && kind == AccessKind::Atomic {
            mask = 1 << mask.trailing_zeros();
        }
        let mut observed = observer.as_deref_mut().filter(|_| !matches!(space, Space::Local | Space::Param));
        let WarpPosition { function, pc, warp } = self.at;
        let site = WarpSite { memory, block: &block.info, warp, function, pc, chain: *chain };
        let seen_space = if space == Space::Shared { Space::Shared } else { Space::Global };
        let touched = |f: &mut dyn FnMut(&MemoryTouch<'_>) -> Result<(), Fault>| {
            let addresses = &std::array::from_fn(|lane| at[lane].wrapping_sub(window));
            let origin = origin.wrapping_sub(window);
            let way = None;
            f(&MemoryTouch {
                site,
                kind,
                access,
                space: seen_space,
                addresses,
                mask,
                allocation,
                way,
                bytes,
                origin,
            })
        };
        if let Some(observer) = &mut observed {
            touched(&mut |touch| observer.touch(touch))?;
        }
        let served = ServedLanes { bytes, origin, addresses: at, mask, run };
        let changed = match what {
            AccessOperands::Load(to) => load(access, served, regs, to).map(|()| false),
            AccessOperands::Store(from) => Ok(store(access, served, regs, from)),
            AccessOperands::Atomic(op, d, bc) => atomic_lanes(op, access, served, regs, d, bc),
            AccessOperands::AtomicVector(atom) => atomic_elements(atom, bytes, origin, at, mask, regs),
        };
        if let (Some(observer), Ok(_)) = (observed, &changed) {
            let to = match &what {
                AccessOperands::Load(to) => &to[..access.count.into()],
                AccessOperands::Atomic(_, d, _) => std::slice::from_ref(d),
                AccessOperands::AtomicVector(atom) => &atom.d,
                AccessOperands::Store(_) => &[],
            };
            touched(&mut |touch| {
                // A wait that was given an old value is not at its end.
                tally.epoch += u64::from(observer.done(touch, regs, to)?);
                Ok(())
            })?;
        }
        match changed {
            Ok(changed) => tally.epoch += u64::from(changed),
            Err(failure) => {
                return Err(self.failed(access, kind, space, failure, at[failure.lane] - window));
            }
        }
        if let Some((rank, _)) = allocation {
            if let AccessOperands::Load(dst) = what
                && access.order != MemoryOrder::Weak
            {
                self.poll(access, at, mask, regs, dst);
            }
            self.count(kind, access, at, mask, rank);
        }
        Ok(mask)
    }

    /// Counts polls: loads that may be waiting for a value.
    #[cold]
    fn poll(&mut self, access: &MemoryAccess, at: &Lanes<u64>, mask: u32, regs: &Regs, dst: &[Reg; 8]) {
        let (function, pc) = (self.number, self.at.pc);
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
    fn count(&mut self, kind: AccessKind, access: &MemoryAccess, at: &Lanes<u64>, mask: u32, rank: usize) {
        let link = self.cx.tally.link(self.cx.block.info.rank, rank);
        link.add(kind, access, mask.count_ones().into());
        if kind != AccessKind::Load && !self.cx.memory.watched.is_empty() && self.cx.tally.watch_hit.is_none()
        {
            let size = access.bytes();
            let watched = lanes(mask).find(|&lane| self.cx.memory.watches(at[lane], size));
            self.cx.tally.watch_hit = watched.map(|lane| at[lane]);
        }
    }
}

/// The bytes that all lanes fall into, whose run begins at `first`; an error if they do not, or not all so simply.
#[inline(always)]
fn reach_run<'r>(
    memory: &'r MachineMemory,
    block: &'r ResidentBlock,
    space: Space,
    window: u64,
    kind: AccessKind,
    first: u64,
    size: u64,
) -> Result<ReachedBytes<'r>, LaneFailure> {
    let whole = LANES as u64 * size;
    let refused = |reason| LaneFailure { lane: 0, reason };
    match space {
        Space::Global | Space::Const | Space::Generic => {
            let id = memory.resolve(first, whole).map_err(refused)?;
            let found = memory.get(id);
            if kind != AccessKind::Load && found.read_only {
                return Err(refused(Reason::ReadOnly));
            }
            Ok(ReachedBytes {
                bytes: &found.bytes,
                origin: found.bytes.origin(found.base),
                mask: ALL,
                allocation: Some(id),
            })
        }
        Space::Shared if block.shared.len() as u64 >= whole => {
            if first.wrapping_sub(window) > block.shared.len() as u64 - whole {
                return Err(refused(Reason::OutOfBounds));
            }
            Ok(ReachedBytes { bytes: &block.shared, origin: window, mask: ALL, allocation: None })
        }
        _ => Err(refused(Reason::OutOfBounds)),
    }
}

/// Atomics on vectors, element by element, and on 128 bits.
fn atomic_elements(
    atom: &AtomVector,
    bytes: &MemoryBytes,
    origin: u64,
    at: &Lanes<u64>,
    mask: u32,
    regs: &mut Regs,
) -> Result<bool, LaneFailure> {
    let AtomVector { op, ref access, d, b, c, .. } = *atom;
    let mut changed = false;
    for lane in lanes(mask) {
        let fail = |reason| LaneFailure { lane, reason };
        let offset = (at[lane] - origin) as usize;
        if access.ty == Ty::B128 {
            let pair = |r: [Reg; 8]| [regs.r64[r[0] as usize][lane], regs.r64[r[1] as usize][lane]];
            let (expected, new) = match op {
                AtomOp::Cas => (Some(pair(b)), pair(c)),
                _ => (None, pair(b)),
            };
            let (old, new) = atomic_wide(access, bytes, offset, expected, new).map_err(fail)?;
            changed |= new;
            for (d, old) in d.into_iter().zip(old) {
                regs.r64[d as usize][lane] = old;
            }
            continue;
        }
        for e in 0..usize::from(access.count) {
            let operand = regs.read(access.bank, b[e], lane);
            let at = offset + e * access.ty.bytes();
            let (old, new) = atomic(op, access, bytes, at, [operand, 0]).map_err(fail)?;
            changed |= new;
            if d[e] != NO_REG {
                regs.write(access.bank, d[e], lane, old);
            }
        }
    }
    Ok(changed)
}

/// The bytes that the first lane of `mask` falls into, with the lanes that fall into them too.
#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "the operands of one instruction")]
fn reach<'r>(
    memory: &'r MachineMemory,
    block: &'r ResidentBlock,
    own: WarpMemory<'r>,
    space: Space,
    window: u64,
    kind: AccessKind,
    at: &Lanes<u64>,
    mask: u32,
    size: u64,
) -> Result<ReachedBytes<'r>, LaneFailure> {
    let lane = mask.trailing_zeros() as usize;
    let all = |bytes: &'r MemoryBytes, mask: u32| {
        let inside = lanes_inside(at, mask, window, bytes.len() as u64, size);
        if inside == mask {
            Ok(ReachedBytes { bytes, origin: window, mask, allocation: None })
        } else {
            let lane = (mask & !inside).trailing_zeros() as usize;
            Err(LaneFailure { lane, reason: Reason::OutOfBounds })
        }
    };
    match space {
        Space::Global | Space::Const | Space::Generic => {
            let id = memory.resolve(at[lane], size).map_err(|reason| LaneFailure { lane, reason })?;
            let found = memory.get(id);
            if kind != AccessKind::Load && found.read_only {
                return Err(LaneFailure { lane, reason: Reason::ReadOnly });
            }
            let mask = lanes_inside(at, mask, found.base, found.len, size);
            Ok(ReachedBytes {
                bytes: &found.bytes,
                origin: found.bytes.origin(found.base),
                mask,
                allocation: Some(id),
            })
        }
        Space::Shared => all(&block.shared, mask),
        // Each lane has its own memory; the compiler keeps track of what is written.
        Space::Local => all(&own.local[lane], 1 << lane),
        Space::Param if at[lane] - window < FRAME_PARAMS => match kind {
            AccessKind::Load => all(&block.params, mask),
            _ => Err(LaneFailure { lane, reason: Reason::ReadOnly }),
        },
        Space::Param => {
            let first = window + FRAME_PARAMS;
            let inside = lanes_inside(at, 1 << lane, first, own.param_bytes as u64, size);
            if inside == 0 {
                return Err(LaneFailure { lane, reason: Reason::OutOfBounds });
            }
            let origin = first - (lane * (own.params.len() / LANES)) as u64;
            Ok(ReachedBytes { bytes: own.params, origin, mask: inside, allocation: None })
        }
    }
}

fn atomic_lanes(
    op: AtomOp,
    access: &MemoryAccess,
    served: ServedLanes<'_>,
    regs: &mut Regs,
    d: Reg,
    [b, c]: [Reg; 2],
) -> Result<bool, LaneFailure> {
    let mut changed = false;
    for lane in lanes(served.mask) {
        let operand = |r: Reg| if r == NO_REG { 0 } else { regs.read(access.bank, r, lane) };
        let offset = (served.addresses[lane] - served.origin) as usize;
        let (old, new) = atomic(op, access, served.bytes, offset, [operand(b), operand(c)])
            .map_err(|reason| LaneFailure { lane, reason })?;
        changed |= new;
        if d != NO_REG {
            regs.write(access.bank, d, lane, old);
        }
    }
    Ok(changed)
}
