//! Exact arithmetic on the bits of any format, rounded once in any direction.
//!
//! A finite value is `magnitude * 2^scale`. Results carry a sticky bit: a lowest bit that is set if anything non-zero
//! was cut off below it, which rounds like the exact value as long as more bits are kept than any format has.

use crate::arithmetic::float::{PtxFloat, Round, pack};

/// A value taken apart.
#[derive(Clone, Copy, Debug)]
enum Unpacked {
    Nan,
    Infinite { sign: bool },
    Finite { sign: bool, magnitude: u64, scale: i32 },
}

fn unpack(bits: u64, f: PtxFloat) -> Unpacked {
    let sign = bits & f.sign_bit() != 0;
    let magnitude = bits & (f.sign_bit() - 1);
    if magnitude > f.finite {
        return if magnitude == f.infinity() && f.infinity() != f.nan {
            Unpacked::Infinite { sign }
        } else {
            Unpacked::Nan
        };
    }
    let (field, fraction) = ((magnitude >> f.mantissa) as i32, magnitude & ((1 << f.mantissa) - 1));
    match field {
        0 => Unpacked::Finite { sign, magnitude: fraction, scale: f.lowest() },
        _ => Unpacked::Finite { sign, magnitude: fraction | 1 << f.mantissa, scale: f.lowest() + field - 1 },
    }
}

pub(crate) fn is_nan(bits: u64, f: PtxFloat) -> bool {
    matches!(unpack(bits, f), Unpacked::Nan)
}

/// `pack` for magnitudes of 128 bits.
fn pack_wide(sign: bool, magnitude: u128, scale: i32, f: PtxFloat, round: Round) -> u64 {
    let excess = 64u32.saturating_sub(magnitude.leading_zeros());
    let kept = (magnitude >> excess) as u64;
    let sticky = u64::from(magnitude & ((1 << excess) - 1) != 0);
    pack(sign, kept | sticky, scale + excess as i32, f, round)
}

fn infinite(sign: bool, f: PtxFloat) -> u64 {
    u64::from(sign) * f.sign_bit() | f.infinity()
}

/// Shifts right, keeping a sticky bit.
fn shift_sticky(v: u128, by: u32) -> u128 {
    match by {
        0 => v,
        1..=127 => v >> by | u128::from(v & ((1 << by) - 1) != 0),
        _ => u128::from(v != 0),
    }
}

/// `a * b + c`
pub(crate) fn fma(a: u64, b: u64, c: u64, f: PtxFloat, round: Round) -> u64 {
    use Unpacked::{Finite, Infinite, Nan};
    let (a, b, c) = (unpack(a, f), unpack(b, f), unpack(c, f));
    let product =
        match (a, b) {
            (Nan, _) | (_, Nan) => Nan,
            (Infinite { sign: s }, Infinite { sign: t }) => Infinite { sign: s ^ t },
            (Infinite { .. }, Finite { magnitude: 0, .. })
            | (Finite { magnitude: 0, .. }, Infinite { .. }) => Nan,
            (Infinite { sign: s }, Finite { sign: t, .. })
            | (Finite { sign: s, .. }, Infinite { sign: t }) => Infinite { sign: s ^ t },
            (Finite { sign: s, magnitude: x, scale: e }, Finite { sign: t, magnitude: y, scale: g }) => {
                return match c {
                    Nan => f.nan,
                    Infinite { sign } => infinite(sign, f),
                    Finite { sign, magnitude, scale } => {
                        let product = (s ^ t, u128::from(x) * u128::from(y), e + g);
                        sum(product, (sign, magnitude.into(), scale), f, round)
                    }
                };
            }
        };
    match (product, c) {
        (Nan, _) | (_, Nan) => f.nan,
        (Infinite { sign: s }, Infinite { sign: t }) if s != t => f.nan,
        (Infinite { sign }, _) | (_, Infinite { sign }) => infinite(sign, f),
        _ => f.nan,
    }
}

type Term = (bool, u128, i32);

/// The sum of two values of at most 106 bits each.
fn sum(a: Term, b: Term, f: PtxFloat, round: Round) -> u64 {
    let zero = |sign: bool| u64::from(sign) * f.sign_bit();
    match (a.1, b.1) {
        (0, 0) => return zero(if a.0 == b.0 { a.0 } else { round == Round::Down }),
        (0, _) => return pack_wide(b.0, b.1, b.2, f, round),
        (_, 0) => return pack_wide(a.0, a.1, a.2, f, round),
        _ => {}
    }
    // Leading bits at bit 125: room for a carry above and for at least 19 bits below.
    let normal = |(sign, magnitude, scale): Term| {
        let up = magnitude.leading_zeros() - 2;
        (sign, magnitude << up, scale - up as i32)
    };
    let (mut x, mut y) = (normal(a), normal(b));
    if (x.2, x.1) < (y.2, y.1) {
        std::mem::swap(&mut x, &mut y);
    }
    // A shift by more than one leaves the leading bit where it is or one below, so that the sticky bit stays far from
    // the bits that are kept; a shift by one loses nothing.
    let small = shift_sticky(y.1, (x.2 - y.2) as u32);
    if x.0 == y.0 {
        return pack_wide(x.0, x.1 + small, x.2, f, round);
    }
    match x.1 - small {
        0 => zero(round == Round::Down),
        rest => pack_wide(x.0, rest, x.2, f, round),
    }
}

pub(crate) fn add(a: u64, b: u64, f: PtxFloat, round: Round) -> u64 {
    use Unpacked::{Finite, Infinite, Nan};
    match (unpack(a, f), unpack(b, f)) {
        (Nan, _) | (_, Nan) => f.nan,
        (Infinite { sign: s }, Infinite { sign: t }) if s != t => f.nan,
        (Infinite { sign }, _) | (_, Infinite { sign }) => infinite(sign, f),
        (Finite { sign: s, magnitude: x, scale: e }, Finite { sign: t, magnitude: y, scale: g }) => {
            sum((s, x.into(), e), (t, y.into(), g), f, round)
        }
    }
}

pub(crate) fn sub(a: u64, b: u64, f: PtxFloat, round: Round) -> u64 {
    if is_nan(b, f) { f.nan } else { add(a, b ^ f.sign_bit(), f, round) }
}

pub(crate) fn mul(a: u64, b: u64, f: PtxFloat, round: Round) -> u64 {
    // Adding a zero of the product's sign changes nothing.
    let zero = (a ^ b) & f.sign_bit();
    fma(a, b, zero, f, round)
}

pub(crate) fn div(a: u64, b: u64, f: PtxFloat, round: Round) -> u64 {
    use Unpacked::{Finite, Infinite, Nan};
    let sign = (a ^ b) & f.sign_bit() != 0;
    match (unpack(a, f), unpack(b, f)) {
        (Nan, _) | (_, Nan) | (Infinite { .. }, Infinite { .. }) => f.nan,
        (Finite { magnitude: 0, .. }, Finite { magnitude: 0, .. }) => f.nan,
        (Infinite { .. }, _) | (_, Finite { magnitude: 0, .. }) => infinite(sign, f),
        (_, Infinite { .. }) => u64::from(sign) * f.sign_bit(),
        (Finite { magnitude: x, scale: e, .. }, Finite { magnitude: y, scale: g, .. }) => {
            // 128 bits by at most 53 leave a quotient of at least 74 bits.
            let up = u128::from(x).leading_zeros();
            let (dividend, divisor) = (u128::from(x) << (up.min(127)), u128::from(y));
            if dividend == 0 {
                return u64::from(sign) * f.sign_bit();
            }
            let quotient = dividend / divisor;
            let sticky = u128::from(dividend % divisor != 0);
            pack_wide(sign, quotient | sticky, e - g - up as i32, f, round)
        }
    }
}

pub(crate) fn sqrt(a: u64, f: PtxFloat, round: Round) -> u64 {
    match unpack(a, f) {
        Unpacked::Nan | Unpacked::Infinite { sign: true } => f.nan,
        Unpacked::Infinite { .. } => a,
        Unpacked::Finite { magnitude: 0, .. } => a,
        Unpacked::Finite { sign: true, .. } => f.nan,
        Unpacked::Finite { magnitude, scale, .. } => {
            let mut up = u128::from(magnitude).leading_zeros();
            up -= u32::from((scale - up as i32) % 2 != 0);
            let square = u128::from(magnitude) << up;
            let root = square.isqrt();
            let sticky = u128::from(root * root != square);
            // 63 or 64 bits of root; one more holds the sticky bit.
            pack_wide(false, root << 1 | sticky, (scale - up as i32) / 2 - 1, f, round)
        }
    }
}
