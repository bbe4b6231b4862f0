//! Loads, stores and atomics of a warp on a run of bytes: the lanes that fall into it are served together.

use std::sync::Mutex;
use std::sync::atomic::Ordering;

use crate::arithmetic::types::Ty;
use crate::isa::{AtomOp, MemoryAccess};
use crate::memory::{MemoryBytes, Reason, after, before};
use crate::registers::{ALL, Bank, LANES, LaneValue, Lanes, Reg, Regs, lanes};

/// A lane whose access failed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LaneFailure {
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
pub(crate) fn misaligned(addresses: &Lanes<u64>, mask: u32, bytes: u64) -> Option<LaneFailure> {
    let mut bits = 0;
    for i in 0..LANES {
        bits |= addresses[i] & (bytes - 1);
    }
    if bits == 0 {
        return None;
    }
    lanes(mask)
        .find(|&lane| addresses[lane] & (bytes - 1) != 0)
        .map(|lane| LaneFailure { lane, reason: Reason::Misaligned })
}

/// Returns true if all lanes are active and access one run of bytes, lane by lane.
#[inline(always)]
pub(crate) fn contiguous(addresses: &Lanes<u64>, mask: u32, bytes: u64) -> bool {
    if mask != ALL {
        return false;
    }
    let mut differ = 0;
    for i in 0..LANES {
        differ |= addresses[i] ^ addresses[0].wrapping_add(i as u64 * bytes);
    }
    differ == 0
}

/// A memory element that registers of type `R` take.
trait Elem<R> {
    const BYTES: usize;
    /// The element in the low bits.
    fn read(bits: u64) -> R;
}

macro_rules! elem {
    ($($elem:ty => $($reg:ty),*;)*) => {$($(
        impl Elem<$reg> for $elem {
            const BYTES: usize = size_of::<$elem>();
            #[inline(always)]
            fn read(bits: u64) -> $reg {
                bits as $elem as $reg
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

/// Words of the largest access of a lane.
const LANE_WORDS: usize = 4;

/// Lanes that access some bytes: they lie inside them and are aligned.
#[derive(Clone, Copy)]
pub(crate) struct ServedLanes<'r> {
    pub(crate) bytes: &'r MemoryBytes,
    /// Address of the first word.
    pub(crate) origin: u64,
    pub(crate) addresses: &'r Lanes<u64>,
    pub(crate) mask: u32,
    /// The lanes are [`contiguous`].
    pub(crate) run: bool,
}

/// Loads the elements of all lanes.
#[inline(always)]
pub(crate) fn load(
    access: &MemoryAccess,
    served: ServedLanes<'_>,
    regs: &mut Regs,
    dst: &[Reg; 8],
) -> Result<(), LaneFailure> {
    let ServedLanes { bytes, origin, addresses, mask, run } = served;
    let size = access.bytes();
    if !bytes.complete() {
        let at = |lane: usize| (addresses[lane] - origin) as usize;
        if !run || bytes.any_unwritten(at(0), LANES * size as usize) {
            let unwritten = |&lane: &usize| bytes.any_unwritten(at(lane), size as usize);
            if let Some(lane) = lanes(mask).find(unwritten) {
                return Err(LaneFailure { lane, reason: Reason::Unwritten });
            }
        }
    }
    macro_rules! go {
        (run $n:literal, $elem:ty, $reg:ty) => {
            load_run::<$elem, $reg, $n, { LANES * $n * size_of::<$elem>() / 8 }>(
                bytes,
                addresses[0] - origin,
                regs,
                dst,
            )
        };
        ($elem:ty, $reg:ty) => {
            match (run && (addresses[0] - origin) % 8 == 0, access.count) {
                (true, 1) => go!(run 1, $elem, $reg),
                (true, 2) => go!(run 2, $elem, $reg),
                (true, 4) => go!(run 4, $elem, $reg),
                _ => load_lanes::<$elem, $reg>(served, access.count, regs, dst),
            }
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
    after(access.order);
    Ok(())
}

/// Each lane's words are read once, then its elements are taken out of them.
#[inline(always)]
fn load_lanes<E: Elem<R>, R: LaneValue>(served: ServedLanes<'_>, count: u8, regs: &mut Regs, dst: &[Reg; 8]) {
    let ServedLanes { bytes, origin, addresses, mask, .. } = served;
    let count = usize::from(count);
    let needed = (count * E::BYTES).div_ceil(8);
    let out = R::bank_mut(regs);
    for lane in lanes(mask) {
        let at = (addresses[lane] - origin) as usize;
        let mut words = [0; LANE_WORDS];
        for (i, word) in words.iter_mut().enumerate().take(needed) {
            *word = bytes.word(at / 8 + i);
        }
        for (e, &d) in dst.iter().enumerate().take(count) {
            let at = at % 8 + e * E::BYTES;
            out[d as usize][lane] = E::read(words[at / 8 % LANE_WORDS] >> (8 * (at % 8)));
        }
    }
}

/// All lanes, from a run of bytes that begins with a word.
#[inline(always)]
fn load_run<E: Elem<R>, R: LaneValue, const N: usize, const WORDS: usize>(
    bytes: &MemoryBytes,
    at: u64,
    regs: &mut Regs,
    dst: &[Reg; 8],
) {
    let first = at as usize / 8;
    let mut words = [0; WORDS];
    for (to, from) in words.iter_mut().zip(&bytes.words()[first..first + WORDS]) {
        *to = from.load(Ordering::Relaxed);
    }
    for (e, &d) in dst.iter().enumerate().take(N) {
        let out = &mut R::bank_mut(regs)[d as usize];
        for lane in 0..LANES {
            let at = (lane * N + e) * E::BYTES;
            out[lane] = E::read(words[at / 8] >> (8 * (at % 8)));
        }
    }
}

/// Stores the elements of all lanes; where lanes meet, the highest wins. Returns true if any byte changed.
#[inline(always)]
pub(crate) fn store(access: &MemoryAccess, served: ServedLanes<'_>, regs: &Regs, src: &[Reg; 8]) -> bool {
    let ServedLanes { bytes, origin, addresses, mask, run } = served;
    before(access.order);
    let size = access.bytes();
    let mut changed = false;
    if !bytes.complete() {
        // A first write of the value that lies there by chance is a change as well.
        changed = true;
        let at = |lane: usize| (addresses[lane] - origin) as usize;
        if run {
            bytes.mark_written(at(0), LANES * size as usize);
        } else {
            lanes(mask).for_each(|lane| bytes.mark_written(at(lane), size as usize));
        }
    }
    macro_rules! go {
        ($reg:ty, $n:literal) => {
            match (run && (addresses[0] - origin) % 8 == 0, access.count) {
                (true, 1) => store_run::<$reg, $n, 1>(bytes, addresses[0] - origin, regs, src),
                (true, 2) => store_run::<$reg, $n, 2>(bytes, addresses[0] - origin, regs, src),
                (true, 4) => store_run::<$reg, $n, 4>(bytes, addresses[0] - origin, regs, src),
                _ => store_lanes::<$reg, $n>(served, access.count, regs, src),
            }
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
fn keep(bytes: usize) -> u64 {
    if bytes == 8 { u64::MAX } else { (1 << (8 * bytes)) - 1 }
}

/// Elements are put together to words, those of neighbours in one word too, and each word is stored once.
#[inline(always)]
fn store_lanes<R: LaneValue, const BYTES: usize>(
    served: ServedLanes<'_>,
    count: u8,
    regs: &Regs,
    src: &[Reg; 8],
) -> bool {
    let ServedLanes { bytes, origin, addresses, mask, .. } = served;
    let mut changed = false;
    let (mut word, mut value, mut filled) = (usize::MAX, 0, 0);
    for lane in lanes(mask) {
        for (e, &s) in src.iter().enumerate().take(count.into()) {
            let at = (addresses[lane] - origin) as usize + e * BYTES;
            if at / 8 != word {
                if filled != 0 {
                    changed |= bytes.merge(word, value, filled);
                }
                (word, value, filled) = (at / 8, 0, 0);
            }
            let shift = 8 * (at % 8);
            let keep = keep(BYTES) << shift;
            value = value & !keep | regs.get::<R>(s)[lane].bits() << shift & keep;
            filled |= keep;
        }
    }
    if filled != 0 {
        changed |= bytes.merge(word, value, filled);
    }
    changed
}

/// All lanes, into a run of bytes that begins with a word.
#[inline(always)]
fn store_run<R: LaneValue, const BYTES: usize, const N: usize>(
    bytes: &MemoryBytes,
    at: u64,
    regs: &Regs,
    src: &[Reg; 8],
) -> bool {
    let values: [&Lanes<R>; N] = std::array::from_fn(|e| regs.get::<R>(src[e]));
    let (first, parts) = (at as usize / 8, 8 / BYTES);
    let mut changed = 0;
    for (number, to) in bytes.words()[first..first + LANES * N / parts].iter().enumerate() {
        let mut word = 0;
        for part in 0..parts {
            let index = number * parts + part;
            word |= (values[index % N][index / N].bits() & keep(BYTES)) << (8 * BYTES * part);
        }
        changed |= to.load(Ordering::Relaxed) ^ word;
        to.store(word, Ordering::Relaxed);
    }
    changed != 0
}

/// One lane's read-modify-write at an offset; returns the old value, and true if the memory changed.
pub(crate) fn atomic(
    op: AtomOp,
    access: &MemoryAccess,
    bytes: &MemoryBytes,
    at: usize,
    [b, c]: [u64; 2],
) -> Result<(u64, bool), Reason> {
    let size = access.ty.bytes();
    let unwritten = bytes.any_unwritten(at, size);
    if unwritten && op != AtomOp::Exch {
        return Err(Reason::Unwritten);
    }
    before(access.order);
    let (shift, keep) = (8 * (at % 8), keep(size));
    let mut new = 0;
    let word = bytes.update(at / 8, |word| {
        new = modify(op, access.ty, word >> shift & keep, b, c);
        word & !(keep << shift) | new << shift
    });
    after(access.order);
    bytes.mark_written(at, size);
    let old = word >> shift & keep;
    Ok((old, old != new || unwritten))
}

/// One lane's exchange of 128 bits at an offset, on condition that they are `expected` if there is such a value;
/// returns the old value and whether the memory changed. Such exchanges exclude each other, but not other stores by
/// other threads of the host.
pub(crate) fn atomic_wide(
    access: &MemoryAccess,
    bytes: &MemoryBytes,
    at: usize,
    expected: Option<[u64; 2]>,
    new: [u64; 2],
) -> Result<([u64; 2], bool), Reason> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let unwritten = bytes.any_unwritten(at, 16);
    if unwritten && expected.is_some() {
        return Err(Reason::Unwritten);
    }
    let guard = ONE_AT_A_TIME.lock();
    before(access.order);
    let old = [bytes.word(at / 8), bytes.word(at / 8 + 1)];
    let mut changed = unwritten;
    if expected.is_none_or(|expected| expected == old) {
        for (i, value) in new.into_iter().enumerate() {
            changed |= bytes.set_word(at / 8 + i, value);
        }
        bytes.mark_written(at, 16);
    }
    after(access.order);
    drop(guard);
    Ok((old, changed))
}

/// The new value of an atomic, in the low bits.
pub(crate) fn modify(op: AtomOp, ty: Ty, old: u64, b: u64, c: u64) -> u64 {
    use crate::arithmetic::float::{
        add_bf16, add_f16, add_f32, each_half, max_bf16, max_f16, min_bf16, min_f16,
    };
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
        (AtomOp::Min, Ty::Bf16) => min_bf16::<false>(old as u16, b as u16).into(),
        (AtomOp::Max, Ty::Bf16) => max_bf16::<false>(old as u16, b as u16).into(),
        (AtomOp::Min, Ty::F16x2) => each_half(old as u32, b as u32, min_f16::<false>).into(),
        (AtomOp::Max, Ty::F16x2) => each_half(old as u32, b as u32, max_f16::<false>).into(),
        (AtomOp::Min, Ty::Bf16x2) => each_half(old as u32, b as u32, min_bf16::<false>).into(),
        (AtomOp::Max, Ty::Bf16x2) => each_half(old as u32, b as u32, max_bf16::<false>).into(),
        (AtomOp::Add, _) => old.wrapping_add(b),
        (AtomOp::Min, _) if ty.signed() => signed(old).min(signed(b)) as u64,
        (AtomOp::Max, _) if ty.signed() => signed(old).max(signed(b)) as u64,
        (AtomOp::Min, _) => old.min(b),
        (AtomOp::Max, _) => old.max(b),
    };
    value & bits
}
