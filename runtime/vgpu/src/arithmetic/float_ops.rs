//! Floating-point instructions in their general form: any format, direction of rounding and modifier, a lane at a time.
//! The forms that ordinary code consists of have entries in the tables of `alu`.

use crate::arithmetic::exact;
use crate::arithmetic::float::{F32, F64, PtxFloat, Round, format, narrow};
use crate::arithmetic::types::Ty;
use crate::registers::{Bank, Reg, Regs, lanes};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FloatKind {
    Add,
    Sub,
    Mul,
    Fma,
    Div,
    Rcp,
    Sqrt,
    Min,
    Max,
    Neg,
    Abs,
    Ex2,
    Tanh,
    /// Reciprocals with the upper half of an f64 (`rcp.approx.ftz.f64` and its like).
    RcpHigh,
    RsqrtHigh,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct FloatOp {
    pub(crate) kind: FloatKind,
    /// Of one value.
    pub(crate) ty: Ty,
    pub(crate) bank: Bank,
    /// Values in a register.
    pub(crate) elements: u32,
    /// Sources, 1 to 3.
    pub(crate) sources: u8,
    pub(crate) round: Round,
    pub(crate) flush: bool,
    pub(crate) saturate: bool,
    pub(crate) relu: bool,
    /// `.NaN` of minimum and maximum: any NaN gives NaN.
    pub(crate) nan: bool,
    /// `.abs` of minimum and maximum.
    pub(crate) abs: bool,
    /// `.xorsign` of minimum and maximum.
    pub(crate) xorsign: bool,
}

impl FloatOp {
    /// An operation on two single values, without modifiers.
    pub(crate) fn plain(kind: FloatKind, ty: Ty) -> FloatOp {
        FloatOp {
            kind,
            ty,
            bank: Bank::of_bytes(ty.bytes()).unwrap_or(Bank::B64),
            elements: 1,
            sources: 2,
            round: Round::Nearest,
            flush: false,
            saturate: false,
            relu: false,
            nan: false,
            abs: false,
            xorsign: false,
        }
    }

    /// `regs` are the destination and three sources.
    pub(crate) fn exec(&self, regs: &mut Regs, [d, a, b, c]: [Reg; 4], mask: u32) {
        let Some(f) = format(self.ty) else { return };
        let width = (self.bank.bytes() * 8) as u32 / self.elements;
        let bits = if width == 64 { u64::MAX } else { (1 << width) - 1 };
        for lane in lanes(mask) {
            let source = |r: Reg, number: u8| {
                if number <= self.sources { regs.read(self.bank, r, lane) } else { 0 }
            };
            let (a, b, c) = (source(a, 1), source(b, 2), source(c, 3));
            let mut out = 0;
            for element in 0..self.elements {
                let part = |v: u64| v >> (width * element) & bits;
                out |= self.value(f, part(a), part(b), part(c)) << (width * element);
            }
            regs.write(self.bank, d, lane, out);
        }
    }

    fn flushed(&self, f: PtxFloat, bits: u64) -> u64 {
        if self.flush && f.is_subnormal(bits) { bits & f.sign_bit() } else { bits }
    }

    /// The result for one value of each source, in the format of `ty`.
    pub(crate) fn value(&self, f: PtxFloat, a: u64, b: u64, c: u64) -> u64 {
        let round = self.round;
        let (a, b, c) = (self.flushed(f, a), self.flushed(f, b), self.flushed(f, c));
        let result = match self.kind {
            FloatKind::Add => exact::add(a, b, f, round),
            FloatKind::Sub => exact::sub(a, b, f, round),
            FloatKind::Mul => exact::mul(a, b, f, round),
            FloatKind::Fma => exact::fma(a, b, c, f, round),
            FloatKind::Div => exact::div(a, b, f, round),
            FloatKind::Rcp => exact::div(one(f), a, f, round),
            FloatKind::Sqrt => exact::sqrt(a, f, round),
            FloatKind::Min | FloatKind::Max => self.extreme(f, a, b, c),
            FloatKind::Neg => a ^ f.sign_bit(),
            FloatKind::Abs => a & !f.sign_bit(),
            FloatKind::Ex2 => narrow(value(a, f).exp2(), f, Round::Nearest),
            FloatKind::Tanh => narrow(value(a, f).tanh(), f, Round::Nearest),
            FloatKind::RcpHigh => high_half(a, |v| 1.0 / v),
            FloatKind::RsqrtHigh => high_half(a, |v| 1.0 / v.sqrt()),
        };
        finish(self.flushed(f, result), f, self.saturate, self.relu)
    }

    fn extreme(&self, f: PtxFloat, a: u64, b: u64, c: u64) -> u64 {
        let sign = (a ^ b) & f.sign_bit();
        let magnitude = |v: u64| if self.abs { v & !f.sign_bit() } else { v };
        let two = |x: u64, y: u64| match (exact::is_nan(x, f), exact::is_nan(y, f)) {
            (true, true) => f.nan,
            (true, false) => {
                if self.nan {
                    f.nan
                } else {
                    y
                }
            }
            (false, true) => {
                if self.nan {
                    f.nan
                } else {
                    x
                }
            }
            // Sign and magnitude, ordered as integers: -0 lies below +0.
            (false, false) => {
                let order = |v: u64| {
                    let size = (v & (f.sign_bit() - 1)) as i64;
                    if v & f.sign_bit() == 0 { size } else { -size - 1 }
                };
                if (order(x) <= order(y)) == (self.kind == FloatKind::Min) { x } else { y }
            }
        };
        let mut result = two(magnitude(a), magnitude(b));
        if self.sources == 3 {
            result = two(result, magnitude(c));
        }
        if self.xorsign && !exact::is_nan(result, f) { result & !f.sign_bit() | sign } else { result }
    }
}

/// Saturation of a result: `.sat` clamps to [0, 1] and NaN to 0, `.relu` clamps negative values to 0.
pub(crate) fn finish(bits: u64, f: PtxFloat, saturate: bool, relu: bool) -> u64 {
    let negative = bits & f.sign_bit() != 0;
    if exact::is_nan(bits, f) {
        return if saturate { 0 } else { bits };
    }
    if (saturate || relu) && negative {
        return 0;
    }
    if saturate { bits.min(one(f)) } else { bits }
}

fn one(f: PtxFloat) -> u64 {
    ((1 << (f.exponent - 1)) - 1) << f.mantissa
}

/// Value of bits of a format up to f32; exact.
pub(crate) fn value(bits: u64, f: PtxFloat) -> f64 {
    if exact::is_nan(bits, f) {
        return f64::NAN;
    }
    let sign = if bits & f.sign_bit() != 0 { -1.0 } else { 1.0 };
    let magnitude = bits & (f.sign_bit() - 1);
    if magnitude > f.finite {
        return sign * f64::INFINITY;
    }
    // The same fields with the exponent's range of f64, scaled by the difference of the biases.
    let wide = f64::from_bits(magnitude << (F64.mantissa - f.mantissa));
    let by = 1 << (f.exponent - 1);
    sign * (wide * 2f64.powi(1023)) * 2f64.powi(1 - by)
}

/// Gross approximations of f64 look at the upper 32 bits only, and give only those.
fn high_half(bits: u64, function: impl Fn(f64) -> f64) -> u64 {
    let result = function(f64::from_bits(bits & !0xffff_ffff));
    if result.is_nan() { F64.nan } else { result.to_bits() & !0xffff_ffff }
}

/// `redux.sync.{min,max}.f32`: one value of several lanes.
pub(crate) fn reduce_f32(values: impl Iterator<Item = u32>, max: bool, abs: bool, nan: bool) -> u32 {
    let kind = if max { FloatKind::Max } else { FloatKind::Min };
    let op = FloatOp { nan, abs, ..FloatOp::plain(kind, Ty::F32) };
    let all = values.map(|v| if abs { u64::from(v & 0x7fff_ffff) } else { v.into() });
    all.reduce(|x, y| op.value(F32, x, y, 0))
        .map_or(0, |v| if exact::is_nan(v, F32) { F32.nan as u32 } else { v as u32 })
}
