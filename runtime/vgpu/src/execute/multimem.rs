//! `multimem`: one address stands for the same bytes of several ranks' allocations. Values are combined in the order
//! of the ranks.

use crate::arithmetic::float::{PtxFloat, Round, format, narrow};
use crate::arithmetic::float_ops;
use crate::arithmetic::float_ops::{FloatKind, FloatOp};
use crate::arithmetic::types::Ty;
use crate::execute::access::{self, LaneFailure, atomic, lanes_inside, misaligned};
use crate::execute::address::{access_fault, addresses};
use crate::execute::context::{StepContext, WarpPosition};
use crate::fault::{AccessKind, Fault, Space};
use crate::isa::{AtomOp, MemoryAccess, Multimem, MultimemKind};
use crate::memory::{AllocationId, Member, Reason, after, before};
use crate::observe::{MemoryTouch, MulticastAccess};
use crate::registers::{Bank, LANES, Lanes, Reg, Regs, lanes};

/// Executes the instruction, for lanes in one range at once.
pub(crate) fn execute(
    cx: &mut StepContext<'_>,
    at: WarpPosition<'_>,
    m: &Multimem,
    mask: u32,
    regs: &mut Regs,
) -> Result<(), Fault> {
    let to = addresses(regs, m.address);
    let (size, kind) = (m.access.bytes(), m.kind.access());
    let fail = |cx: &StepContext<'_>, lane: usize, reason| {
        access_fault(cx, at, (m.access.space, to[lane], size), kind, LaneFailure { lane, reason })
    };
    if let Some(LaneFailure { lane, reason }) = misaligned(&to, mask, size) {
        return Err(fail(cx, lane, reason));
    }
    let mut rest = mask;
    while rest != 0 {
        let first = rest.trailing_zeros() as usize;
        let (places, (base, len)) =
            cx.memory.members(to[first], size).map_err(|reason| fail(cx, first, reason))?;
        let group = lanes_inside(&to, rest, base, len, size);
        rest &= !group;
        let mut members = Vec::new();
        let mut values: Vec<Vec<LaneValues>> = Vec::new();
        for Member { address, way } in places {
            let addresses: Lanes<u64> =
                std::array::from_fn(|lane| address.wrapping_add(to[lane].wrapping_sub(to[first])));
            let id = cx.memory.resolve(address, size).map_err(|reason| fail(cx, first, reason))?;
            let part = RankPart { id, way, addresses: &addresses };
            match m.kind {
                MultimemKind::LoadReduce => values.push(load(cx, at, m, &part, group)?),
                MultimemKind::Store => store(cx, at, m, &part, group, regs)?,
                MultimemKind::Reduce => modify(cx, at, m, &part, group, regs)?,
            }
            cx.tally.link(cx.block.info.rank, id.0).add(kind, &m.access, group.count_ones().into());
            if kind != AccessKind::Load {
                cx.tally.epoch += 1;
                let hit = lanes(group).map(|lane| addresses[lane]).find(|&a| cx.memory.watches(a, size));
                cx.tally.watch_hit = cx.tally.watch_hit.or(hit);
            }
            members.push((id.0, addresses));
        }
        if m.kind == MultimemKind::LoadReduce {
            after(m.access.order);
            for (e, &r) in m.regs.iter().enumerate().take(m.access.count.into()) {
                for lane in lanes(group) {
                    let parts: Vec<u64> = values.iter().map(|of_rank| of_rank[e][lane]).collect();
                    regs.write(m.access.bank, r, lane, combine(m, &parts));
                }
            }
        }
        if let Some((observer, site)) = cx.observed(at) {
            observer.multicast(&MulticastAccess { site, instruction: m, mask: group, members: &members });
        }
    }
    Ok(())
}

/// An element of each lane.
type LaneValues = Lanes<u64>;

/// One rank's part of a multicast range, and where the lanes' addresses lie in it.
struct RankPart<'p> {
    id: AllocationId,
    way: u8,
    addresses: &'p Lanes<u64>,
}

/// Loads one rank's values of all lanes, by element.
fn load(
    cx: &mut StepContext<'_>,
    at: WarpPosition<'_>,
    m: &Multimem,
    part: &RankPart<'_>,
    mask: u32,
) -> Result<Vec<LaneValues>, Fault> {
    let (count, width) = (usize::from(m.access.count), m.access.ty.bytes());
    observe(cx, at, m, part, mask, None)?;
    let found = cx.memory.get(part.id);
    // Registers of their own: what is combined stands in no register.
    let mut regs = Regs { r16: Vec::new(), r32: Vec::new(), r64: Vec::new(), pred: Vec::new() };
    match m.access.bank {
        Bank::B16 => regs.r16 = vec![[0; LANES]; count],
        Bank::B32 => regs.r32 = vec![[0; LANES]; count],
        Bank::B64 => regs.r64 = vec![[0; LANES]; count],
    }
    for lane in lanes(mask) {
        let offset = (part.addresses[lane] - found.bytes.origin(found.base)) as usize;
        if found.bytes.any_unwritten(offset, count * width) {
            let (address, reason) = (part.addresses[lane], Reason::Unwritten);
            let bytes = (m.access.space, address, m.access.bytes());
            return Err(access_fault(cx, at, bytes, AccessKind::Load, LaneFailure { lane, reason }));
        }
        let bytes = found.bytes.to_vec(offset, count * width);
        for e in 0..count {
            let mut raw = [0; 8];
            raw[..width].copy_from_slice(&bytes[e * width..(e + 1) * width]);
            regs.write(m.access.bank, e as Reg, lane, u64::from_le_bytes(raw));
        }
    }
    let replaced = observe(cx, at, m, part, mask, Some(&mut regs))?;
    // A wait that was given an old value is not at its end.
    cx.tally.epoch += u64::from(replaced);
    let keep = if width == 8 { u64::MAX } else { (1 << (8 * width)) - 1 };
    let element = |e: usize| std::array::from_fn(|lane| regs.read(m.access.bank, e as Reg, lane) & keep);
    Ok((0..count).map(element).collect())
}

fn store(
    cx: &mut StepContext<'_>,
    at: WarpPosition<'_>,
    m: &Multimem,
    part: &RankPart<'_>,
    mask: u32,
    regs: &mut Regs,
) -> Result<(), Fault> {
    observe(cx, at, m, part, mask, None)?;
    let found = cx.memory.get(part.id);
    before(m.access.order);
    for lane in lanes(mask) {
        let offset = (part.addresses[lane] - found.bytes.origin(found.base)) as usize;
        found.bytes.copy_from(offset, &stored(m, regs, lane));
        found.bytes.mark_written(offset, m.access.bytes() as usize);
    }
    observe(cx, at, m, part, mask, Some(regs)).map(drop)
}

/// Each lane's atomics on one rank's memory are seen by those of the next ones.
fn modify(
    cx: &mut StepContext<'_>,
    at: WarpPosition<'_>,
    m: &Multimem,
    part: &RankPart<'_>,
    mask: u32,
    regs: &mut Regs,
) -> Result<(), Fault> {
    let width = m.access.ty.bytes();
    for lane in lanes(mask) {
        observe(cx, at, m, part, 1 << lane, None)?;
        let found = cx.memory.get(part.id);
        let offset = (part.addresses[lane] - found.bytes.origin(found.base)) as usize;
        for (i, &r) in m.regs.iter().enumerate().take(m.access.count.into()) {
            let b = regs.read(m.access.bank, r, lane);
            atomic(m.op, &m.access, &found.bytes, offset + i * width, [b, 0]).map_err(|reason| {
                let bytes = (m.access.space, part.addresses[lane], m.access.bytes());
                access_fault(cx, at, bytes, AccessKind::Atomic, LaneFailure { lane, reason })
            })?;
        }
        observe(cx, at, m, part, 1 << lane, Some(regs))?;
    }
    Ok(())
}

/// Tells the observer of lanes' access to one rank's memory, before it or, with the registers, after it; returns true if
/// that has replaced loaded values, from the first register on.
fn observe(
    cx: &mut StepContext<'_>,
    at: WarpPosition<'_>,
    m: &Multimem,
    part: &RankPart<'_>,
    mask: u32,
    done: Option<&mut Regs>,
) -> Result<bool, Fault> {
    let access = MemoryAccess { space: Space::Global, ..m.access };
    let found = cx.memory.get(part.id);
    let Some((observer, site)) = cx.observed(at) else { return Ok(false) };
    let touch = MemoryTouch {
        site,
        kind: m.kind.access(),
        access: &access,
        space: Space::Global,
        addresses: part.addresses,
        mask,
        allocation: Some(part.id),
        way: Some(part.way),
        bytes: &found.bytes,
        origin: found.bytes.origin(found.base),
    };
    let to: [Reg; 8] = std::array::from_fn(|e| e as Reg);
    let to = if m.kind == MultimemKind::LoadReduce { &to[..m.access.count.into()] } else { &[] };
    match done {
        None => observer.touch(&touch).map(|()| false),
        Some(regs) => observer.done(&touch, regs, to),
    }
}

/// The bytes that a store writes to every rank.
fn stored(m: &Multimem, regs: &Regs, lane: usize) -> Vec<u8> {
    let width = m.access.ty.bytes();
    let parts = m.regs.iter().take(m.access.count.into());
    parts.flat_map(|&r| regs.read(m.access.bank, r, lane).to_le_bytes().into_iter().take(width)).collect()
}

/// One register of the ranks' values.
fn combine(m: &Multimem, values: &[u64]) -> u64 {
    let ty = m.access.ty;
    let Some((element, count)) = ty.elements() else {
        return values.iter().copied().reduce(|a, b| access::modify(m.op, ty, a, b, 0)).unwrap_or(0);
    };
    let (Some(f), Some(sums)) = (format(element), format(m.sums)) else { return 0 };
    let bits = 8 * element.bytes() as u32;
    let keep = if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
    let mut out = 0;
    for i in 0..count {
        let parts = values.iter().map(|v| v >> (bits * i) & keep);
        out |= reduce(m.op, (element, f), (m.sums, sums), parts) << (bits * i);
    }
    out
}

/// Combines values in a format that is as wide as theirs or wider, and rounds the result to theirs.
fn reduce(
    op: AtomOp,
    (element, f): (Ty, PtxFloat),
    (sums, wide): (Ty, PtxFloat),
    values: impl Iterator<Item = u64>,
) -> u64 {
    let kind = match op {
        AtomOp::Min => FloatKind::Min,
        AtomOp::Max => FloatKind::Max,
        _ => FloatKind::Add,
    };
    let one = FloatOp::plain(kind, sums);
    if element == sums {
        // Sums of 8-bit floats are exact in f64 before they are rounded.
        let step = |a, b| match (kind, element) {
            (FloatKind::Add, Ty::E4m3 | Ty::E5m2) => {
                saturated(float_ops::value(a, f) + float_ops::value(b, f), f)
            }
            _ => one.value(f, a, b, 0),
        };
        return values.reduce(step).unwrap_or(0);
    }
    let widened = values.map(|v| narrow(float_ops::value(v, f), wide, Round::Nearest));
    let result = float_ops::value(widened.reduce(|a, b| one.value(wide, a, b, 0)).unwrap_or(0), wide);
    match element {
        Ty::E4m3 | Ty::E5m2 => saturated(result, f),
        _ => narrow(result, f, Round::Nearest),
    }
}

/// Sums of 8-bit floats do not overflow: they end at the largest finite value.
fn saturated(value: f64, f: PtxFloat) -> u64 {
    let limit = float_ops::value(f.finite, f);
    narrow(if value.is_nan() { value } else { value.clamp(-limit, limit) }, f, Round::Nearest)
}
