//! `cvt` in its general form, a lane at a time.

use crate::ast::Ty;
use crate::float::{BF16, F16, F32, F64, Format, Round, narrow, pack, to_integer};
use crate::isa::Convert;

fn format(ty: Ty) -> Option<Format> {
    Some(match ty {
        Ty::F16 => F16,
        Ty::Bf16 => BF16,
        Ty::F32 => F32,
        Ty::F64 => F64,
        _ => return None,
    })
}

/// Value of a float type; exact.
fn widen(ty: Ty, bits: u64) -> f64 {
    match ty {
        Ty::F16 => half::f16::from_bits(bits as u16).to_f64(),
        Ty::Bf16 => half::bf16::from_bits(bits as u16).to_f64(),
        Ty::F32 => f64::from(f32::from_bits(bits as u32)),
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
            finish(c, packed)
        }
        (Some(_), None) => {
            let value = to_integer(widen(c.from, bits), c.round);
            let (low, high) = range(c.to);
            // Out of range clamps, and NaN gives 0 (of 64 bits the lowest value), as GPUs do.
            let value = if value.is_nan() {
                if c.to.bytes() == 8 { 1i128 << 63 } else { 0 }
            } else {
                (value as i128).clamp(low, high)
            };
            value as u64
        }
        (Some(_), Some(to)) => {
            if c.from == c.to && !c.integral {
                return finish(c, bits);
            }
            let value = widen(c.from, bits);
            let value = if c.integral { to_integer(value, c.round) } else { value };
            finish(c, narrow(value, to, c.round))
        }
    }
}

/// Saturation of a float result.
fn finish(c: &Convert, bits: u64) -> u64 {
    let Some(to) = format(c.to) else { return bits };
    let value = widen(c.to, bits);
    if c.saturate {
        return if value > 0.0 { narrow(value.min(1.0), to, Round::Nearest) } else { 0 };
    }
    if c.relu && value < 0.0 {
        return 0;
    }
    if c.finite && value.is_infinite() {
        return narrow(if value > 0.0 { f64::MAX } else { f64::MIN }, to, Round::Zero);
    }
    if c.flush { flush(c.to, bits) } else { bits }
}
