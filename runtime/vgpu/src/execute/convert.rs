//! `cvt` in its general form, a lane at a time.

use crate::arithmetic::float::{PtxFloat, TF32, format, narrow, pack, to_integer};
use crate::arithmetic::float_ops;
use crate::arithmetic::types::Ty;
use crate::isa::Convert;
use crate::registers::{Reg, Regs};

/// Value of a float type; exact.
fn widen(ty: Ty, bits: u64) -> f64 {
    match ty {
        Ty::F16 => half::f16::from_bits(bits as u16).to_f64(),
        Ty::Bf16 => half::bf16::from_bits(bits as u16).to_f64(),
        Ty::F32 => f64::from(f32::from_bits(bits as u32)),
        Ty::E4m3 | Ty::E5m2 => format(ty).map_or(f64::NAN, |f| float_ops::value(bits, f)),
        _ => f64::from_bits(bits),
    }
}

/// Sign or zero extension of the low bits.
fn extend(ty: Ty, bits: u64) -> i128 {
    match ty {
        Ty::U8 => (bits as u8).into(),
        Ty::S8 => (bits as i8).into(),
        Ty::U16 => (bits as u16).into(),
        Ty::S16 => (bits as i16).into(),
        Ty::U32 => (bits as u32).into(),
        Ty::S32 => (bits as i32).into(),
        Ty::S64 => (bits as i64).into(),
        _ => bits.into(),
    }
}

fn range(ty: Ty) -> (i128, i128) {
    let bits = ty.bytes() as u32 * 8;
    if ty.signed() { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) }
}

fn flush(ty: Ty, bits: u64) -> u64 {
    if ty == Ty::F32 && bits & 0x7f80_0000 == 0 { bits & 0x8000_0000 } else { bits }
}

/// Converts a value of `c.from` in the low bits of `bits` to one of `c.to`, extended to the destination's register.
pub(crate) fn convert(c: &Convert, bits: u64) -> u64 {
    let bits = if c.flush { flush(c.from, bits) } else { bits };
    match (format(c.from), format(c.to)) {
        (None, None) => {
            let value = extend(c.from, bits);
            let (low, high) = range(c.to);
            let value = if c.saturate { value.clamp(low, high) } else { value };
            extend(c.to, value as u64) as u64
        }
        (None, Some(to)) => {
            let value = extend(c.from, bits);
            let packed = pack(value < 0, value.unsigned_abs() as u64, 0, to, c.round);
            finish(c, to, packed)
        }
        (Some(_), None) => {
            let value = to_integer(widen(c.from, bits), c.round);
            let (low, high) = range(c.to);
            // Out of range clamps. NaN gives 0, but the middle of the range where 64 bits take part.
            let value = if !value.is_nan() {
                (value as i128).clamp(low, high)
            } else if c.to.bytes() == 8 || c.from == Ty::F64 {
                extend(c.to, 1 << (8 * c.to.bytes() - 1))
            } else {
                0
            };
            value as u64
        }
        (Some(_), Some(to)) => {
            if c.from == c.to && !c.integral {
                return finish(c, to, bits);
            }
            let value = widen(c.from, bits);
            let value = if c.integral { to_integer(value, c.round) } else { value };
            // Whatever rounds to more than the largest finite value lies above it.
            let value = if c.finite { clamp_finite(value, to) } else { value };
            finish(c, to, narrow(value, to, c.round))
        }
    }
}

fn clamp_finite(value: f64, to: PtxFloat) -> f64 {
    let limit = float_ops::value(to.finite, to);
    if value.is_nan() { value } else { value.clamp(-limit, limit) }
}

fn finish(c: &Convert, to: PtxFloat, bits: u64) -> u64 {
    let bits = float_ops::finish(bits, to, c.saturate, c.relu);
    match c.to {
        // A tf32 is an f32 whose last bits are 0; its NaN is that of f32.
        Ty::Tf32 if bits == TF32.nan => 0x7fff_ffff,
        Ty::Tf32 => bits << 13,
        _ if c.flush => flush(c.to, bits),
        _ => bits,
    }
}

/// Two f32 -> the halves of `d`.
pub(crate) fn convert_pair(c: &Convert, regs: &mut Regs, [d, high, low]: [Reg; 3], lane: usize) {
    let half = |r: Reg| convert(c, regs.r32[r as usize][lane].into());
    let value = half(low) | half(high) << (8 * c.to.bytes());
    regs.write(c.to_bank, d, lane, value);
}

/// Both halves of `a` -> the halves of `d`.
pub(crate) fn convert_each(c: &Convert, regs: &mut Regs, [d, a]: [Reg; 2], lane: usize) {
    let bits = 8 * c.from.bytes() as u32;
    let both = regs.read(c.from_bank, a, lane);
    let half = |n: u32| convert(c, both >> (bits * n) & ((1 << bits) - 1));
    let value = half(0) | half(1) << (8 * c.to.bytes());
    regs.write(c.to_bank, d, lane, value);
}
