//! Floating point as PTX defines it: canonical NaNs, f16 and bf16 arithmetic with one rounding, and rounding in
//! every direction.

use half::{bf16, f16};

use crate::arithmetic::types::Ty;

/// The NaN that f32 instructions give.
const NAN32: u32 = 0x7fff_ffff;
/// The NaN that f16 and bf16 instructions give.
const NAN16: u16 = 0x7fff;

/// Bits of an f32, any NaN made canonical.
#[inline(always)]
pub(crate) fn nan_if(v: f32) -> u32 {
    if v.is_nan() { NAN32 } else { v.to_bits() }
}

#[inline(always)]
fn f(bits: u32) -> f32 {
    f32::from_bits(bits)
}

#[inline(always)]
pub(crate) fn add_f32(a: u32, b: u32) -> u32 {
    nan_if(f(a) + f(b))
}

#[inline(always)]
pub(crate) fn sub_f32(a: u32, b: u32) -> u32 {
    nan_if(f(a) - f(b))
}

#[inline(always)]
pub(crate) fn mul_f32(a: u32, b: u32) -> u32 {
    nan_if(f(a) * f(b))
}

#[inline(always)]
pub(crate) fn div_f32(a: u32, b: u32) -> u32 {
    nan_if(f(a) / f(b))
}

#[inline(always)]
pub(crate) fn fma_f32(a: u32, b: u32, c: u32) -> u32 {
    nan_if(f(a).mul_add(f(b), f(c)))
}

macro_rules! min_max {
    ($min:ident, $max:ident, $float:ty, $bits:ty, $nan:expr) => {
        /// Minimum; a NaN gives the other operand, and -0 is below +0.
        #[inline(always)]
        pub(crate) fn $min(a: $bits, b: $bits) -> $bits {
            let (x, y) = (<$float>::from_bits(a), <$float>::from_bits(b));
            if x < y || x == y && x.is_sign_negative() || y.is_nan() && !x.is_nan() {
                a
            } else if y.is_nan() {
                $nan
            } else {
                b
            }
        }

        /// Maximum; a NaN gives the other operand, and -0 is below +0.
        #[inline(always)]
        pub(crate) fn $max(a: $bits, b: $bits) -> $bits {
            let (x, y) = (<$float>::from_bits(a), <$float>::from_bits(b));
            if x > y || x == y && x.is_sign_positive() || y.is_nan() && !x.is_nan() {
                a
            } else if y.is_nan() {
                $nan
            } else {
                b
            }
        }
    };
}
min_max!(min_f32, max_f32, f32, u32, NAN32);
min_max!(min_f64, max_f64, f64, u64, f64::NAN.to_bits());

#[inline(always)]
pub(crate) fn min_nan_f32(a: u32, b: u32) -> u32 {
    if f(a).is_nan() || f(b).is_nan() { NAN32 } else { min_f32(a, b) }
}

#[inline(always)]
pub(crate) fn max_nan_f32(a: u32, b: u32) -> u32 {
    if f(a).is_nan() || f(b).is_nan() { NAN32 } else { max_f32(a, b) }
}

/// Applies `op` to both 16-bit halves.
#[inline(always)]
pub(crate) fn each_half(a: u32, b: u32, op: impl Fn(u16, u16) -> u16) -> u32 {
    u32::from(op(a as u16, b as u16)) | u32::from(op((a >> 16) as u16, (b >> 16) as u16)) << 16
}

/// Applies `op` to both 16-bit halves.
#[inline(always)]
pub(crate) fn each_half3(a: u32, b: u32, c: u32, op: impl Fn(u16, u16, u16) -> u16) -> u32 {
    let high = op((a >> 16) as u16, (b >> 16) as u16, (c >> 16) as u16);
    u32::from(op(a as u16, b as u16, c as u16)) | u32::from(high) << 16
}

/// f32 -> f16, to nearest even.
#[inline(always)]
pub(crate) fn f16_of(v: f32) -> u16 {
    if v.is_nan() { NAN16 } else { f16::from_f32(v).to_bits() }
}

/// f32 -> bf16, to nearest even.
#[inline(always)]
pub(crate) fn bf16_of(v: f32) -> u16 {
    let bits = v.to_bits();
    let rounded = bits.wrapping_add(0x7fff).wrapping_add(bits >> 16 & 1) >> 16;
    if v.is_nan() { NAN16 } else { rounded as u16 }
}

#[inline(always)]
fn h(bits: u16) -> f32 {
    f16::from_bits(bits).to_f32()
}

#[inline(always)]
fn b(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

// A sum, difference or product of two f16 or bf16 in f32 rounds twice without harm, as f32 has at least 2p + 2
// bits; only bf16 products can be f32 subnormals and take the way through f64.

#[inline(always)]
pub(crate) fn add_f16(x: u16, y: u16) -> u16 {
    f16_of(h(x) + h(y))
}

#[inline(always)]
pub(crate) fn sub_f16(x: u16, y: u16) -> u16 {
    f16_of(h(x) - h(y))
}

#[inline(always)]
pub(crate) fn mul_f16(x: u16, y: u16) -> u16 {
    f16_of(h(x) * h(y))
}

#[inline(always)]
pub(crate) fn add_bf16(x: u16, y: u16) -> u16 {
    bf16_of(b(x) + b(y))
}

#[inline(always)]
pub(crate) fn sub_bf16(x: u16, y: u16) -> u16 {
    bf16_of(b(x) - b(y))
}

#[inline(always)]
pub(crate) fn mul_bf16(x: u16, y: u16) -> u16 {
    let product = b(x) * b(y);
    if product.is_subnormal() || product == 0.0 {
        narrow(f64::from(b(x)) * f64::from(b(y)), BF16, Round::Nearest) as u16
    } else {
        bf16_of(product)
    }
}

/// `x * y + z` of values whose product is exact in f64, rounded to odd: rounding that once more to fewer bits equals
/// one rounding of the exact value.
fn fma_to_odd(x: f32, y: f32, z: f32) -> f64 {
    let (p, z) = (f64::from(x) * f64::from(y), f64::from(z));
    let sum = p + z;
    if !sum.is_finite() {
        return sum;
    }
    let part = sum - p;
    let error = (p - (sum - part)) + (z - part);
    if error == 0.0 || sum.to_bits() & 1 == 1 {
        return sum;
    }
    let away = (error > 0.0) == (sum > 0.0);
    f64::from_bits(if away { sum.to_bits() + 1 } else { sum.to_bits() - 1 })
}

pub(crate) fn fma_f16(x: u16, y: u16, z: u16) -> u16 {
    narrow(fma_to_odd(h(x), h(y), h(z)), F16, Round::Nearest) as u16
}

pub(crate) fn fma_bf16(x: u16, y: u16, z: u16) -> u16 {
    narrow(fma_to_odd(b(x), b(y), b(z)), BF16, Round::Nearest) as u16
}

macro_rules! min_max_16 {
    ($min:ident, $max:ident, $type:ty) => {
        #[inline(always)]
        pub(crate) fn $min<const NAN: bool>(x: u16, y: u16) -> u16 {
            pick::<NAN>(x, y, <$type>::from_bits(x).to_f32(), <$type>::from_bits(y).to_f32(), min_f32)
        }

        #[inline(always)]
        pub(crate) fn $max<const NAN: bool>(x: u16, y: u16) -> u16 {
            pick::<NAN>(x, y, <$type>::from_bits(x).to_f32(), <$type>::from_bits(y).to_f32(), max_f32)
        }
    };
}
min_max_16!(min_f16, max_f16, f16);
min_max_16!(min_bf16, max_bf16, bf16);

#[inline(always)]
fn pick<const NAN: bool>(x: u16, y: u16, a: f32, b: f32, choose: fn(u32, u32) -> u32) -> u16 {
    if a.is_nan() && b.is_nan() || NAN && (a.is_nan() || b.is_nan()) {
        NAN16
    } else if a.is_nan() {
        y
    } else if b.is_nan() || choose(a.to_bits(), b.to_bits()) == a.to_bits() {
        x
    } else {
        y
    }
}

/// Direction of rounding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Round {
    /// To nearest, ties to even.
    Nearest,
    /// To nearest, ties away from zero.
    NearestAway,
    /// Towards zero.
    Zero,
    /// Towards minus infinity.
    Down,
    /// Towards plus infinity.
    Up,
}

/// A binary format: bits of exponent and of stored mantissa.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PtxFloat {
    pub(crate) exponent: u32,
    pub(crate) mantissa: u32,
    /// The NaN that instructions give.
    pub(crate) nan: u64,
    /// The largest finite value; formats without infinities (e4m3) have values where others have those.
    pub(crate) finite: u64,
}

impl PtxFloat {
    /// A format with infinities.
    const fn ieee(exponent: u32, mantissa: u32, nan: u64) -> PtxFloat {
        PtxFloat { exponent, mantissa, nan, finite: (((1 << exponent) - 1) << mantissa) - 1 }
    }

    pub(crate) fn sign_bit(self) -> u64 {
        1 << (self.exponent + self.mantissa)
    }

    /// Infinity, or NaN where there is none.
    pub(crate) fn infinity(self) -> u64 {
        let infinity = ((1 << self.exponent) - 1) << self.mantissa;
        if self.finite < infinity { infinity } else { self.nan }
    }

    /// Exponent of the last bit of a subnormal value.
    pub(crate) fn lowest(self) -> i32 {
        1 - ((1 << (self.exponent - 1)) - 1) - self.mantissa as i32
    }

    pub(crate) fn is_subnormal(self, bits: u64) -> bool {
        let magnitude = bits & (self.sign_bit() - 1);
        magnitude != 0 && magnitude >> self.mantissa == 0
    }
}

pub(crate) const F16: PtxFloat = PtxFloat::ieee(5, 10, NAN16 as u64);
pub(crate) const BF16: PtxFloat = PtxFloat::ieee(8, 7, NAN16 as u64);
pub(crate) const TF32: PtxFloat = PtxFloat::ieee(8, 10, 0x3_ffff);
pub(crate) const F32: PtxFloat = PtxFloat::ieee(8, 23, NAN32 as u64);
pub(crate) const F64: PtxFloat = PtxFloat::ieee(11, 52, 0x7fff_ffff_ffff_ffff);
pub(crate) const E5M2: PtxFloat = PtxFloat::ieee(5, 2, 0x7f);
/// "Open Compute Project 8-bit floating point specification": one NaN a sign, no infinities.
pub(crate) const E4M3: PtxFloat = PtxFloat { exponent: 4, mantissa: 3, nan: 0x7f, finite: 0x7e };

/// The format of a single value.
pub(crate) fn format(ty: Ty) -> Option<PtxFloat> {
    Some(match ty {
        Ty::F16 => F16,
        Ty::Bf16 => BF16,
        Ty::Tf32 => TF32,
        Ty::F32 => F32,
        Ty::F64 => F64,
        Ty::E4m3 => E4M3,
        Ty::E5m2 => E5M2,
        _ => return None,
    })
}

/// f64 -> bits of `format`, rounded once.
pub(crate) fn narrow(v: f64, format: PtxFloat, round: Round) -> u64 {
    let sign = v.is_sign_negative();
    if v.is_nan() {
        return format.nan;
    }
    if v.is_infinite() {
        return u64::from(sign) * format.sign_bit() | format.infinity();
    }
    let bits = v.to_bits();
    let (exponent, fraction) = ((bits >> 52 & 0x7ff) as i32, bits & ((1 << 52) - 1));
    if exponent == 0 {
        pack(sign, fraction, -1074, format, round)
    } else {
        pack(sign, fraction | 1 << 52, exponent - 1075, format, round)
    }
}

/// `(-1)^sign * magnitude * 2^scale` as bits of `format`, rounded once.
pub(crate) fn pack(sign: bool, magnitude: u64, scale: i32, format: PtxFloat, round: Round) -> u64 {
    let PtxFloat { exponent, mantissa, .. } = format;
    let top = u64::from(sign) << (exponent + mantissa);
    if magnitude == 0 {
        return top;
    }
    let bias = (1 << (exponent - 1)) - 1;
    // Exponent of the leading bit, and of the last bit that the format keeps.
    let lead = 63 - magnitude.leading_zeros() as i32 + scale;
    let last = (lead - mantissa as i32).max(1 - bias - mantissa as i32);
    let drop = last - scale;
    let (kept, rest, half) = if drop <= 0 {
        (magnitude << -drop, 0, 0)
    } else if drop < 64 {
        (magnitude >> drop, magnitude & ((1 << drop) - 1), 1u64 << (drop - 1))
    } else if drop == 64 {
        (0, magnitude, 1 << 63)
    } else {
        (0, 1, u64::MAX)
    };
    let up = match round {
        Round::Nearest => rest > half || rest == half && rest != 0 && kept & 1 == 1,
        Round::NearestAway => rest >= half && rest != 0,
        Round::Zero => false,
        Round::Down => sign && rest != 0,
        Round::Up => !sign && rest != 0,
    };
    let kept = kept + u64::from(up);
    // A carry out of the mantissa raises the exponent by itself, as both are one number.
    let value = if kept >> mantissa == 0 {
        kept
    } else {
        let field = (last + mantissa as i32 + bias) as u64;
        ((field - 1) << mantissa) + kept
    };
    if value <= format.finite {
        return top | value;
    }
    let to_infinity = match round {
        Round::Nearest | Round::NearestAway => true,
        Round::Zero => false,
        Round::Down => sign,
        Round::Up => !sign,
    };
    top | if to_infinity { format.infinity() } else { format.finite }
}

/// Rounds to an integer.
pub(crate) fn to_integer(v: f64, round: Round) -> f64 {
    match round {
        Round::Nearest => v.round_ties_even(),
        Round::NearestAway => v.round(),
        Round::Zero => v.trunc(),
        Round::Down => v.floor(),
        Round::Up => v.ceil(),
    }
}
