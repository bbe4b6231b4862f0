//! `multimem`: one address stands for the same bytes of several ranks' allocations. Values are combined in the order
//! of the ranks.

use crate::access::{Failure, atomic, lanes};
use crate::ast::Ty;
use crate::error::{AccessKind, Fault, Space};
use crate::exec::Context;
use crate::float::{Format, Round, format, narrow};
use crate::floatop::{self, FloatKind, FloatOp};
use crate::isa::{Access, AtomOp, Function, Multimem, MultimemKind};
use crate::memory::{AllocationId, Reason, after, before};
use crate::observe::{Site, Touch};
use crate::reach::{access_fault, addresses};
use crate::regs::{LANES, Lanes, Regs};

/// Executes the instruction lane by lane. `site` is the function, the program counter and the warp.
pub(crate) fn execute(
    cx: &mut Context<'_>,
    site: (&Function, u32, u32),
    m: &Multimem,
    mask: u32,
    regs: &mut Regs,
) -> Result<(), Fault> {
    let at = addresses(regs, m.address);
    let (size, kind) = (m.access.bytes(), m.kind.access());
    let space = m.access.space;
    for lane in lanes(mask) {
        let fail = |cx: &Context<'_>, reason| {
            access_fault(cx, site, (space, at[lane], size), kind, Failure { lane, reason })
        };
        if !at[lane].is_multiple_of(size) {
            return Err(fail(cx, Reason::Misaligned));
        }
        let places = cx.memory.members(at[lane], size).map_err(|reason| fail(cx, reason))?;
        let mut values: Vec<Vec<u8>> = Vec::new();
        for place in places {
            let id = cx.memory.resolve(place, size).map_err(|reason| fail(cx, reason))?;
            observe(cx, site, m, (place, id), lane, None)?;
            let found = cx.memory.get(id);
            let offset = (place - found.bytes.origin(found.base)) as usize;
            let rank = cx.block.rank;
            match m.kind {
                MultimemKind::LoadReduce => {
                    if found.bytes.any_unwritten(offset, size as usize) {
                        return Err(fail(cx, Reason::Unwritten));
                    }
                    values.push(found.bytes.to_vec(offset, size as usize));
                    cx.tally.link(rank, id.0).add(AccessKind::Load, &m.access, 1);
                }
                MultimemKind::Store => {
                    before(m.access.order);
                    found.bytes.copy_from(offset, &stored(m, regs, lane));
                    found.bytes.mark_written(offset, size as usize);
                    cx.tally.link(rank, id.0).add(AccessKind::Store, &m.access, 1);
                }
                MultimemKind::Reduce => {
                    let width = m.access.ty.bytes();
                    for (i, &r) in m.regs.iter().enumerate().take(m.access.count.into()) {
                        let b = regs.read(m.access.bank, r, lane);
                        atomic(m.op, &m.access, &found.bytes, offset + i * width, [b, 0])
                            .map_err(|reason| fail(cx, reason))?;
                    }
                    cx.tally.link(rank, id.0).add(AccessKind::Atomic, &m.access, 1);
                }
            }
            if m.kind != MultimemKind::LoadReduce {
                observe(cx, site, m, (place, id), lane, Some(regs))?;
                cx.tally.epoch += 1;
                if cx.tally.watch_hit.is_none() && cx.memory.watches(place, size) {
                    cx.tally.watch_hit = Some(place);
                }
            }
        }
        if m.kind == MultimemKind::LoadReduce {
            after(m.access.order);
            let width = m.access.ty.bytes();
            for (i, &r) in m.regs.iter().enumerate().take(m.access.count.into()) {
                let parts = values.iter().map(|bytes| {
                    let mut raw = [0; 8];
                    raw[..width].copy_from_slice(&bytes[i * width..(i + 1) * width]);
                    u64::from_le_bytes(raw)
                });
                regs.write(m.access.bank, r, lane, combine(m, parts.collect::<Vec<_>>().as_slice()));
            }
        }
    }
    Ok(())
}

impl MultimemKind {
    fn access(self) -> AccessKind {
        match self {
            MultimemKind::LoadReduce => AccessKind::Load,
            MultimemKind::Store => AccessKind::Store,
            MultimemKind::Reduce => AccessKind::Atomic,
        }
    }
}

/// Tells the observer of the access to one rank's memory: before it, and behind a change with the registers.
fn observe(
    cx: &mut Context<'_>,
    (function, pc, warp): (&Function, u32, u32),
    m: &Multimem,
    (place, id): (u64, AllocationId),
    lane: usize,
    done: Option<&mut Regs>,
) -> Result<(), Fault> {
    let addresses: Lanes<u64> = [place; LANES];
    let access = Access { space: Space::Global, ..m.access };
    let site = Site { memory: cx.memory, block: cx.block, warp, function, pc };
    let Some(observer) = &mut cx.observer else { return Ok(()) };
    let found = cx.memory.get(id);
    let touch = Touch {
        site,
        kind: m.kind.access(),
        access: &access,
        space: Space::Global,
        addresses: &addresses,
        mask: 1 << lane,
        allocation: Some(id),
        bytes: &found.bytes,
        origin: found.bytes.origin(found.base),
    };
    match done {
        None => observer.touch(&touch),
        Some(regs) => observer.done(&touch, regs, &[]).map(|_| ()),
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
        return values.iter().copied().reduce(|a, b| crate::access::modify(m.op, ty, a, b, 0)).unwrap_or(0);
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
    (element, f): (Ty, Format),
    (sums, wide): (Ty, Format),
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
                saturated(floatop::value(a, f) + floatop::value(b, f), f)
            }
            _ => one.value(f, a, b, 0),
        };
        return values.reduce(step).unwrap_or(0);
    }
    let widened = values.map(|v| narrow(floatop::value(v, f), wide, Round::Nearest));
    let result = floatop::value(widened.reduce(|a, b| one.value(wide, a, b, 0)).unwrap_or(0), wide);
    match element {
        Ty::E4m3 | Ty::E5m2 => saturated(result, f),
        _ => narrow(result, f, Round::Nearest),
    }
}

/// Sums of 8-bit floats do not overflow: they end at the largest finite value.
fn saturated(value: f64, f: Format) -> u64 {
    let limit = floatop::value(f.finite, f);
    narrow(if value.is_nan() { value } else { value.clamp(-limit, limit) }, f, Round::Nearest)
}
