//! Rounding by its definition: the representable values are searched for those next to the exact result, which is
//! known only by how it compares with others. Values are big integers in units of 2^-SCALE.

use std::cmp::Ordering;

use num_bigint::BigInt;

/// Below half of the smallest value of any format.
pub(crate) const SCALE: i32 = 1100;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Nearest,
    Zero,
    Down,
    Up,
}

pub(crate) const MODES: [(&str, Mode); 4] =
    [("rn", Mode::Nearest), ("rz", Mode::Zero), ("rm", Mode::Down), ("rp", Mode::Up)];

#[derive(Clone, Copy, Debug)]
pub(crate) struct Fmt {
    pub(crate) name: &'static str,
    pub(crate) exponent: u32,
    pub(crate) mantissa: u32,
    /// Largest finite pattern.
    pub(crate) top: u64,
    pub(crate) nan: u64,
    /// Whether the pattern above the largest finite one is infinity.
    pub(crate) infinite: bool,
}

const fn ieee(name: &'static str, exponent: u32, mantissa: u32, nan: u64) -> Fmt {
    let top = (((1 << exponent) - 1) << mantissa) - 1;
    Fmt { name, exponent, mantissa, top, nan, infinite: true }
}

pub(crate) const F16: Fmt = ieee("f16", 5, 10, 0x7fff);
pub(crate) const BF16: Fmt = ieee("bf16", 8, 7, 0x7fff);
pub(crate) const F32: Fmt = ieee("f32", 8, 23, 0x7fff_ffff);
pub(crate) const F64: Fmt = ieee("f64", 11, 52, 0);
pub(crate) const E5M2: Fmt = ieee("e5m2", 5, 2, 0x7f);
pub(crate) const E4M3: Fmt =
    Fmt { name: "e4m3", exponent: 4, mantissa: 3, top: 0x7e, nan: 0x7f, infinite: false };

impl Fmt {
    pub(crate) fn sign(self) -> u64 {
        1 << (self.exponent + self.mantissa)
    }

    pub(crate) fn magnitude(self, bits: u64) -> u64 {
        bits & (self.sign() - 1)
    }

    pub(crate) fn negative(self, bits: u64) -> bool {
        bits & self.sign() != 0
    }

    pub(crate) fn is_nan(self, bits: u64) -> bool {
        self.magnitude(bits) > self.top + u64::from(self.infinite)
    }

    pub(crate) fn is_infinite(self, bits: u64) -> bool {
        self.infinite && self.magnitude(bits) == self.top + 1
    }

    pub(crate) fn is_subnormal(self, bits: u64) -> bool {
        self.magnitude(bits) != 0 && self.magnitude(bits) >> self.mantissa == 0
    }

    /// The value of a pattern without sign, as if infinity were the next value.
    fn size(self, magnitude: u64) -> BigInt {
        let bias = (1 << (self.exponent - 1)) - 1;
        let (field, fraction) = ((magnitude >> self.mantissa) as i32, magnitude & ((1 << self.mantissa) - 1));
        let (significand, exponent) = match field {
            0 => (fraction, 1 - bias - self.mantissa as i32),
            _ => (fraction | 1 << self.mantissa, field - bias - self.mantissa as i32),
        };
        BigInt::from(significand) << (SCALE + exponent)
    }

    /// Value of a finite pattern.
    pub(crate) fn value(self, bits: u64) -> BigInt {
        let size = self.size(self.magnitude(bits));
        if self.negative(bits) { -size } else { size }
    }

    /// The pattern of a result whose magnitude compares with any value as `against` says.
    pub(crate) fn round(self, negative: bool, mode: Mode, against: impl Fn(&BigInt) -> Ordering) -> u64 {
        let sign = if negative { self.sign() } else { 0 };
        // The largest pattern that is not beyond the result; `top + 1` if the result overflows.
        let (mut low, mut high) = (0, self.top + 2);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if against(&self.size(middle)) == Ordering::Less { high = middle } else { low = middle }
        }
        let exact = low <= self.top && against(&self.size(low)) == Ordering::Equal;
        let away = match mode {
            _ if exact => false,
            Mode::Zero => false,
            Mode::Down => negative,
            Mode::Up => !negative,
            Mode::Nearest => {
                // The middle of two neighbours, in half units.
                low > self.top || {
                    let middle = (self.size(low) + self.size(low + 1)) >> 1;
                    match against(&middle) {
                        Ordering::Less => false,
                        Ordering::Greater => true,
                        Ordering::Equal => low & 1 == 1,
                    }
                }
            }
        };
        if low > self.top && !away {
            return sign | self.top;
        }
        let rounded = (low + u64::from(away)).min(self.top + 1);
        sign | if rounded > self.top && !self.infinite { self.nan } else { rounded }
    }

    /// Rounds `value / 2^extra` in the usual units.
    pub(crate) fn of(self, value: &BigInt, extra: i32, zero_negative: bool, mode: Mode) -> u64 {
        let zero = BigInt::from(0);
        if *value == zero {
            return if zero_negative { self.sign() } else { 0 };
        }
        let negative = *value < zero;
        let size = if negative { -value } else { value.clone() };
        self.round(negative, mode, |other| size.cmp(&(other << extra)))
    }
}
