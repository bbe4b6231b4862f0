//! Loads, stores and atomics of a warp on a run of bytes: the lanes that fall into it are served together.

use crate::ast::Ty;
use crate::isa::{Access, AtomOp};
use crate::memory::{Bytes, Reason};
use crate::regs::{ALL, Bank, LANES, Lane, Lanes, Reg, Regs};

/// A lane whose access failed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Failure {
    pub(crate) lane: usize,
    pub(crate) reason: Reason,
}

/// Lanes of `mask` whose access lies wholly in `len` bytes from `base` on.
#[inline(always)]
pub(crate) fn lanes_inside(addresses: &Lanes<u64>, mask: u32, base: u64, len: u64, bytes: u64) -> u32 {
    if len < bytes {
        return 0;
    }
    let limit = len - bytes;
    let mut inside = 0u32;
    for i in 0..LANES {
        inside |= u32::from(addresses[i].wrapping_sub(base) <= limit) << i;
    }
    inside & mask
}

/// The first lane of `mask` whose address is no multiple of `bytes`.
#[inline(always)]
pub(crate) fn misaligned(addresses: &Lanes<u64>, mask: u32, bytes: u64) -> Option<Failure> {
    let mut bits = 0;
    for i in 0..LANES {
        bits |= addresses[i] & (bytes - 1);
    }
    if bits == 0 {
        return None;
    }
    lanes(mask)
        .find(|&lane| addresses[lane] & (bytes - 1) != 0)
        .map(|lane| Failure { lane, reason: Reason::Misaligned })
}

/// The lanes of a mask, ascending.
pub(crate) fn lanes(mut mask: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        (mask != 0).then(|| {
            let lane = mask.trailing_zeros() as usize;
            mask &= mask - 1;
            lane
        })
    })
}

/// Whether all lanes are active and access one run of bytes, lane by lane.
#[inline(always)]
fn contiguous(addresses: &Lanes<u64>, mask: u32, bytes: u64) -> bool {
    let mut same = true;
    for i in 0..LANES {
        same &= addresses[i] == addresses[0].wrapping_add(i as u64 * bytes);
    }
    same && mask == ALL
}

/// A memory element that registers of type `R` take.
trait Elem<R> {
    const BYTES: usize;
    fn read(bytes: &[u8]) -> R;
}

macro_rules! elem {
    ($($elem:ty => $($reg:ty),*;)*) => {$($(
        impl Elem<$reg> for $elem {
            const BYTES: usize = size_of::<$elem>();
            #[inline(always)]
            fn read(bytes: &[u8]) -> $reg {
                let mut raw = [0; size_of::<$elem>()];
                raw.copy_from_slice(&bytes[..size_of::<$elem>()]);
                <$elem>::from_le_bytes(raw) as $reg
            }
        }
    )*)*};
}
elem! {
    u8 => u16, u32, u64;
    i8 => u16, u32, u64;
    u16 => u16, u32, u64;
    i16 => u16, u32, u64;
    u32 => u32, u64;
    i32 => u32, u64;
    u64 => u64;
}

/// Loads the lanes of `mask`, which lie inside `bytes` and are aligned; `base` is the address of its first byte.
pub(crate) fn load(
    access: &Access,
    bytes: &Bytes,
    base: u64,
    addresses: &Lanes<u64>,
    mask: u32,
    regs: &mut Regs,
    dst: &[Reg; 8],
) -> Result<(), Failure> {
    let size = access.bytes();
    let run = contiguous(addresses, mask, size);
    if !bytes.complete() {
        let at = |lane: usize| (addresses[lane] - base) as usize;
        if !run || bytes.any_unwritten(at(0), LANES * size as usize) {
            let unwritten = |&lane: &usize| bytes.any_unwritten(at(lane), size as usize);
            if let Some(lane) = lanes(mask).find(unwritten) {
                return Err(Failure { lane, reason: Reason::Unwritten });
            }
        }
    }
    let data = &bytes.data[..];
    macro_rules! go {
        ($elem:ty, $reg:ty) => {
            load_elems::<$elem, $reg>(data, base, addresses, mask, run, access.count, regs, dst)
        };
    }
    match (access.ty.bytes(), access.ty.signed(), access.bank) {
        (1, false, Bank::B16) => go!(u8, u16),
        (1, false, Bank::B32) => go!(u8, u32),
        (1, false, Bank::B64) => go!(u8, u64),
        (1, true, Bank::B16) => go!(i8, u16),
        (1, true, Bank::B32) => go!(i8, u32),
        (1, true, Bank::B64) => go!(i8, u64),
        (2, _, Bank::B16) => go!(u16, u16),
        (2, false, Bank::B32) => go!(u16, u32),
        (2, false, Bank::B64) => go!(u16, u64),
        (2, true, Bank::B32) => go!(i16, u32),
        (2, true, Bank::B64) => go!(i16, u64),
        (4, true, Bank::B64) => go!(i32, u64),
        (4, _, Bank::B64) => go!(u32, u64),
        (4, ..) => go!(u32, u32),
        _ => go!(u64, u64),
    }
    Ok(())
}

#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "the operands of one instruction")]
fn load_elems<E: Elem<R>, R: Lane>(
    data: &[u8],
    base: u64,
    addresses: &Lanes<u64>,
    mask: u32,
    run: bool,
    count: u8,
    regs: &mut Regs,
    dst: &[Reg; 8],
) {
    match (run, count) {
        (true, 1) => load_run::<E, R, 1>(data, (addresses[0] - base) as usize, regs, dst),
        (true, 2) => load_run::<E, R, 2>(data, (addresses[0] - base) as usize, regs, dst),
        (true, 4) => load_run::<E, R, 4>(data, (addresses[0] - base) as usize, regs, dst),
        _ => {
            for (e, &d) in dst.iter().enumerate().take(count.into()) {
                let mut out = [R::default(); LANES];
                for lane in lanes(mask) {
                    let at = (addresses[lane] - base) as usize + e * E::BYTES;
                    out[lane] = E::read(&data[at..at + E::BYTES]);
                }
                regs.put(d, mask, &out);
            }
        }
    }
}

#[inline(always)]
fn load_run<E: Elem<R>, R: Lane, const N: usize>(data: &[u8], at: usize, regs: &mut Regs, dst: &[Reg; 8]) {
    let run = &data[at..at + LANES * N * E::BYTES];
    for (e, &d) in dst.iter().enumerate().take(N) {
        let out = &mut R::bank_mut(regs)[d as usize];
        for (out, element) in out.iter_mut().zip(run.chunks_exact(N * E::BYTES)) {
            *out = E::read(&element[e * E::BYTES..]);
        }
    }
}

/// Stores the lanes of `mask`, which lie inside `bytes` and are aligned. Where lanes meet, the highest wins. Returns
/// whether any byte changed.
pub(crate) fn store(
    access: &Access,
    bytes: &mut Bytes,
    base: u64,
    addresses: &Lanes<u64>,
    mask: u32,
    regs: &Regs,
    src: &[Reg; 8],
) -> bool {
    let size = access.bytes();
    let run = contiguous(addresses, mask, size);
    let mut changed = false;
    if !bytes.complete() {
        // A first write of the value that lies there by chance is a change as well.
        changed = true;
        let at = |lane: usize| (addresses[lane] - base) as usize;
        if run {
            bytes.mark_written(at(0), LANES * size as usize);
        } else {
            lanes(mask).for_each(|lane| bytes.mark_written(at(lane), size as usize));
        }
    }
    let data = &mut bytes.data[..];
    macro_rules! go {
        ($reg:ty, $n:literal) => {
            store_elems::<$reg, $n>(data, base, addresses, mask, run, access.count, regs, src)
        };
    }
    changed
        | match (access.bank, access.ty.bytes()) {
            (Bank::B16, 1) => go!(u16, 1),
            (Bank::B16, _) => go!(u16, 2),
            (Bank::B32, 1) => go!(u32, 1),
            (Bank::B32, 2) => go!(u32, 2),
            (Bank::B32, _) => go!(u32, 4),
            (Bank::B64, 1) => go!(u64, 1),
            (Bank::B64, 2) => go!(u64, 2),
            (Bank::B64, 4) => go!(u64, 4),
            (Bank::B64, _) => go!(u64, 8),
        }
}

#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "the operands of one instruction")]
fn store_elems<R: Lane, const BYTES: usize>(
    data: &mut [u8],
    base: u64,
    addresses: &Lanes<u64>,
    mask: u32,
    run: bool,
    count: u8,
    regs: &Regs,
    src: &[Reg; 8],
) -> bool {
    let mut changed = 0;
    let mut put = |place: &mut [u8], value: R| {
        let new = value.bits();
        let mut old = [0; 8];
        old[..BYTES].copy_from_slice(place);
        let keep = if BYTES == 8 { u64::MAX } else { (1 << (8 * BYTES)) - 1 };
        changed |= (u64::from_le_bytes(old) ^ new) & keep;
        place.copy_from_slice(&new.to_le_bytes()[..BYTES]);
    };
    let count = usize::from(count);
    if run {
        let at = (addresses[0] - base) as usize;
        let run = &mut data[at..at + LANES * count * BYTES];
        for (e, &s) in src.iter().enumerate().take(count) {
            let values = regs.get::<R>(s);
            for (element, &value) in run.chunks_exact_mut(count * BYTES).zip(values) {
                put(&mut element[e * BYTES..(e + 1) * BYTES], value);
            }
        }
    } else {
        for lane in lanes(mask) {
            for (e, &s) in src.iter().enumerate().take(count) {
                let at = (addresses[lane] - base) as usize + e * BYTES;
                put(&mut data[at..at + BYTES], regs.get::<R>(s)[lane]);
            }
        }
    }
    changed != 0
}

/// One lane's read-modify-write; returns the old value and whether the memory changed.
pub(crate) fn atomic(
    op: AtomOp,
    access: &Access,
    bytes: &mut Bytes,
    at: usize,
    [b, c]: [u64; 2],
) -> Result<(u64, bool), Reason> {
    let size = access.ty.bytes();
    let blind = op == AtomOp::Exch;
    let unwritten = bytes.any_unwritten(at, size);
    if unwritten && !blind {
        return Err(Reason::Unwritten);
    }
    let mut raw = [0; 8];
    raw[..size].copy_from_slice(&bytes.data[at..at + size]);
    let old = u64::from_le_bytes(raw);
    let new = modify(op, access.ty, old, b, c);
    bytes.data[at..at + size].copy_from_slice(&new.to_le_bytes()[..size]);
    bytes.mark_written(at, size);
    Ok((old, old != new || unwritten))
}

/// The new value of an atomic, in the low bits.
fn modify(op: AtomOp, ty: Ty, old: u64, b: u64, c: u64) -> u64 {
    use crate::float::{add_bf16, add_f16, add_f32, each_half, max_f16, min_f16};
    let wide = ty.bytes() == 8;
    let bits = if wide { u64::MAX } else { (1 << (8 * ty.bytes())) - 1 };
    let signed = |v: u64| if wide { v as i64 } else { i64::from(v as i32) };
    let value = match (op, ty) {
        (AtomOp::Exch, _) => b,
        (AtomOp::Cas, _) => {
            if old == b {
                c
            } else {
                old
            }
        }
        (AtomOp::And, _) => old & b,
        (AtomOp::Or, _) => old | b,
        (AtomOp::Xor, _) => old ^ b,
        (AtomOp::Inc, _) => {
            if old >= b {
                0
            } else {
                old + 1
            }
        }
        (AtomOp::Dec, _) => {
            if old == 0 || old > b {
                b
            } else {
                old - 1
            }
        }
        (AtomOp::Add, Ty::F32) => add_f32(old as u32, b as u32).into(),
        (AtomOp::Add, Ty::F64) => (f64::from_bits(old) + f64::from_bits(b)).to_bits(),
        (AtomOp::Add, Ty::F16) => add_f16(old as u16, b as u16).into(),
        (AtomOp::Add, Ty::Bf16) => add_bf16(old as u16, b as u16).into(),
        (AtomOp::Add, Ty::F16x2) => each_half(old as u32, b as u32, add_f16).into(),
        (AtomOp::Add, Ty::Bf16x2) => each_half(old as u32, b as u32, add_bf16).into(),
        (AtomOp::Min, Ty::F16) => min_f16::<false>(old as u16, b as u16).into(),
        (AtomOp::Max, Ty::F16) => max_f16::<false>(old as u16, b as u16).into(),
        (AtomOp::Add, _) => old.wrapping_add(b),
        (AtomOp::Min, _) if ty.signed() => signed(old).min(signed(b)) as u64,
        (AtomOp::Max, _) if ty.signed() => signed(old).max(signed(b)) as u64,
        (AtomOp::Min, _) => old.min(b),
        (AtomOp::Max, _) => old.max(b),
    };
    value & bits
}
