//! Element types and reduction operators.

use crate::names::{self, UnknownName, table};
use std::fmt;
use std::str::FromStr;

table! {
    /// The type of one element.
    pub enum DType: ElementRow {
        /// IEEE binary32.
        F32 = "f32" => ElementRow { bytes: 4, class: BINARY32, computed_in: DType::F32, arch: 70 },
        /// bfloat16; computed in f32, rounded once when stored.
        Bf16 = "bf16" => ElementRow { bytes: 2, class: BFLOAT16, computed_in: DType::F32, arch: 80 },
        /// IEEE binary16; computed in f32, rounded once when stored.
        F16 = "f16" => ElementRow { bytes: 2, class: BINARY16, computed_in: DType::F32, arch: 80 },
        /// IEEE binary64.
        F64 = "f64" => ElementRow { bytes: 8, class: BINARY64, computed_in: DType::F64, arch: 70 },
        /// 8 bits, two's complement; arithmetic wraps, as for all integers.
        I8 = "i8" => ElementRow { bytes: 1, class: Signed, computed_in: DType::I32, arch: 70 },
        /// 8 bits without a sign.
        U8 = "u8" => ElementRow { bytes: 1, class: Unsigned, computed_in: DType::U32, arch: 70 },
        /// 32 bits, two's complement.
        I32 = "i32" => ElementRow { bytes: 4, class: Signed, computed_in: DType::I32, arch: 70 },
        /// 32 bits without a sign.
        U32 = "u32" => ElementRow { bytes: 4, class: Unsigned, computed_in: DType::U32, arch: 70 },
        /// 64 bits, two's complement.
        I64 = "i64" => ElementRow { bytes: 8, class: Signed, computed_in: DType::I64, arch: 70 },
        /// 64 bits without a sign.
        U64 = "u64" => ElementRow { bytes: 8, class: Unsigned, computed_in: DType::U64, arch: 70 },
    }
}

/// The columns of an element type.
struct ElementRow {
    /// Size of one element.
    bytes: usize,
    class: ElementClass,
    /// The type that sums and products are computed in before they are stored.
    computed_in: DType,
    /// The least GPU architecture whose instructions compute with it: 80 for sm_80.
    arch: u32,
}

/// The numbers of an element type.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum ElementClass {
    /// Floating-point numbers.
    Float(FloatFormat),
    /// Integers in two's complement; they wrap.
    Signed,
    /// Integers without a sign; they wrap.
    Unsigned,
}
use ElementClass::{Signed, Unsigned};

/// The precision and the range of a floating-point type.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FloatFormat {
    /// Bits of the significand, with the hidden one.
    pub significand: u32,
    /// The smallest positive number.
    pub smallest: f64,
    /// The largest finite number.
    pub largest: f64,
}

const BINARY32: ElementClass = ElementClass::Float(FloatFormat {
    significand: 24,
    smallest: f32::from_bits(1) as f64,
    largest: f32::MAX as f64,
});
const BFLOAT16: ElementClass = ElementClass::Float(FloatFormat {
    significand: 8,
    smallest: f32::from_bits(0x0001_0000) as f64,
    largest: f32::from_bits(0x7f7f_0000) as f64,
});
const BINARY16: ElementClass = ElementClass::Float(FloatFormat {
    significand: 11,
    smallest: f32::from_bits(0x3380_0000) as f64,
    largest: 65504.0,
});
const BINARY64: ElementClass =
    ElementClass::Float(FloatFormat { significand: 53, smallest: f64::from_bits(1), largest: f64::MAX });

impl DType {
    /// Returns the size of one element in bytes.
    pub const fn bytes(self) -> usize {
        self.row().bytes
    }

    /// Returns the class of its numbers.
    pub const fn class(self) -> ElementClass {
        self.row().class
    }

    /// Returns the type that sums and products are computed in before they are stored.
    pub const fn computed_in(self) -> DType {
        self.row().computed_in
    }

    /// Returns the least GPU architecture whose instructions compute with it: 80 for sm_80.
    pub const fn least_arch(self) -> u32 {
        self.row().arch
    }

    /// Returns true if sums round; the others wrap.
    pub fn is_float(self) -> bool {
        matches!(self.class(), ElementClass::Float(_))
    }

    /// Returns the number of bits up to which every integer is exact: those of a significand, or all but the sign.
    pub fn exact_bits(self) -> u32 {
        let bits = 8 * self.bytes() as u32;
        match self.class() {
            ElementClass::Float(format) => format.significand,
            ElementClass::Signed => bits - 1,
            ElementClass::Unsigned => bits,
        }
    }
}

/// The factor of [`RedOp::PremulSum`].
#[derive(Clone, Copy, Debug)]
pub struct Scalar(pub f64);

/// Compares bits, so that a factor can be part of a key.
impl PartialEq for Scalar {
    fn eq(&self, other: &Scalar) -> bool {
        self.0.to_bits() == other.0.to_bits()
    }
}

impl Eq for Scalar {}

impl std::hash::Hash for Scalar {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.to_bits().hash(state);
    }
}

/// The reduction operator of a call.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RedOp {
    /// Addition.
    Sum,
    /// Multiplication.
    Prod,
    /// The smallest value; NaN if any is.
    Min,
    /// The largest value; NaN if any is.
    Max,
    /// The sum divided by the number of ranks: one division, when a value is complete. Integers truncate.
    Avg,
    /// The sum of the inputs, each multiplied by a factor first. For an integer type the factor is cut to an integer.
    PremulSum(Scalar),
}

impl RedOp {
    /// Every operator, in the order help texts list them.
    pub const ALL: [RedOp; 6] =
        [RedOp::Sum, RedOp::Prod, RedOp::Min, RedOp::Max, RedOp::Avg, RedOp::PremulSum(Scalar(1.0))];

    /// The name users write, as in `--op`; a factor follows it as in `premul_sum:0.5`.
    pub fn name(self) -> &'static str {
        match self {
            RedOp::Sum => "sum",
            RedOp::Prod => "prod",
            RedOp::Min => "min",
            RedOp::Max => "max",
            RedOp::Avg => "avg",
            RedOp::PremulSum(_) => "premul_sum",
        }
    }

    /// Returns the factor as the kernel's argument, in the type that it computes with: bits of f32 or f64, or an integer.
    pub fn argument(self, dtype: DType) -> u64 {
        let RedOp::PremulSum(Scalar(factor)) = self else { return 0 };
        match (dtype.class(), dtype.computed_in()) {
            (ElementClass::Float(_), DType::F64) => factor.to_bits(),
            (ElementClass::Float(_), _) => u64::from((factor as f32).to_bits()),
            (ElementClass::Unsigned, _) => factor as u64,
            (ElementClass::Signed, _) => factor as i64 as u64,
        }
    }
}

impl FromStr for DType {
    type Err = UnknownName;
    fn from_str(s: &str) -> Result<Self, UnknownName> {
        names::find(s, "element type", &DType::ALL, DType::name)
    }
}

/// `sum`, `premul_sum:0.5`; without a factor `premul_sum` has 1.
impl FromStr for RedOp {
    type Err = UnknownName;
    fn from_str(s: &str) -> Result<Self, UnknownName> {
        let (name, factor) = s.split_once(':').map_or((s, None), |(name, factor)| (name, Some(factor)));
        let op = names::find(name, "reduction operator", &RedOp::ALL, RedOp::name)?;
        match (op, factor) {
            (op, None) => Ok(op),
            (RedOp::PremulSum(_), Some(factor)) => match factor.parse::<f64>() {
                Ok(factor) if factor.is_finite() => Ok(RedOp::PremulSum(Scalar(factor))),
                _ => Err(UnknownName {
                    given: factor.to_owned(),
                    what: "factor",
                    known: "finite numbers, as in `premul_sum:0.5`".to_owned(),
                }),
            },
            (_, Some(_)) => Err(UnknownName {
                given: s.to_owned(),
                what: "reduction operator",
                known: format!("{name}; only premul_sum has a factor"),
            }),
        }
    }
}

impl fmt::Display for RedOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_are_read_back() {
        for op in RedOp::ALL {
            assert_eq!(op.name().parse::<RedOp>(), Ok(op));
        }
        assert_eq!("premul_sum:0.25".parse::<RedOp>(), Ok(RedOp::PremulSum(Scalar(0.25))));
        for wrong in ["mean", "sum:2", "premul_sum:", "premul_sum:inf", "premul_sum:x"] {
            assert!(wrong.parse::<RedOp>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_factor_is_passed_in_the_type_computed_with() {
        let op = RedOp::PremulSum(Scalar(-2.5));
        assert_eq!(op.argument(DType::Bf16), u64::from((-2.5f32).to_bits()));
        assert_eq!(op.argument(DType::F64), (-2.5f64).to_bits());
        assert_eq!(op.argument(DType::I32) as i64, -2);
        assert_eq!(RedOp::Avg.argument(DType::F32), 0);
    }
}
