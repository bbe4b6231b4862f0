//! Element types and reduction operators of a call.

use std::fmt;
use std::str::FromStr;

/// The type of one element.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum DType {
    /// IEEE binary32.
    F32,
    /// bfloat16; computed in f32, rounded once when stored.
    Bf16,
    /// IEEE binary16; computed in f32, rounded once when stored.
    F16,
    /// IEEE binary64.
    F64,
    /// 8 bits, two's complement; arithmetic wraps, as for all integers.
    I8,
    /// 8 bits without a sign.
    U8,
    /// 32 bits, two's complement.
    I32,
    /// 32 bits without a sign.
    U32,
    /// 64 bits, two's complement.
    I64,
    /// 64 bits without a sign.
    U64,
}

impl DType {
    /// Every type, in the order help texts list them.
    pub const ALL: [DType; 10] = [
        DType::F32,
        DType::Bf16,
        DType::F16,
        DType::F64,
        DType::I8,
        DType::U8,
        DType::I32,
        DType::U32,
        DType::I64,
        DType::U64,
    ];

    /// Size of one element in bytes.
    pub fn bytes(self) -> usize {
        match self {
            DType::I8 | DType::U8 => 1,
            DType::Bf16 | DType::F16 => 2,
            DType::F32 | DType::I32 | DType::U32 => 4,
            DType::F64 | DType::I64 | DType::U64 => 8,
        }
    }

    /// The name users write, as in `--dtype`.
    pub fn name(self) -> &'static str {
        match self {
            DType::F32 => "f32",
            DType::Bf16 => "bf16",
            DType::F16 => "f16",
            DType::F64 => "f64",
            DType::I8 => "i8",
            DType::U8 => "u8",
            DType::I32 => "i32",
            DType::U32 => "u32",
            DType::I64 => "i64",
            DType::U64 => "u64",
        }
    }

    /// Whether sums round; the others wrap.
    pub fn is_float(self) -> bool {
        matches!(self, DType::F32 | DType::Bf16 | DType::F16 | DType::F64)
    }

    /// Bits up to which every integer is exact: the significand's of floating-point types, all but the sign's of
    /// others.
    pub fn exact_bits(self) -> u32 {
        match self {
            DType::F32 => 24,
            DType::Bf16 => 8,
            DType::F16 => 11,
            DType::F64 => 53,
            integer if matches!(integer, DType::U8 | DType::U32 | DType::U64) => 8 * integer.bytes() as u32,
            integer => 8 * integer.bytes() as u32 - 1,
        }
    }
}

/// The factor of [`RedOp::PremulSum`].
#[derive(Clone, Copy, Debug)]
pub struct Scalar(pub f64);

/// By its bits, so that it can be part of a key.
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
    /// The smallest; NaN if any is.
    Min,
    /// The largest; NaN if any is.
    Max,
    /// The sum over the number of ranks: one division, when a value is complete; integers truncate.
    Avg,
    /// The sum of the inputs, each multiplied by a factor first; of an integer type the factor is cut to an integer.
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

    /// The factor as the kernel's argument, in the type that it computes with: f32 or f64 bits, or an integer.
    pub fn argument(self, dtype: DType) -> u64 {
        let RedOp::PremulSum(Scalar(factor)) = self else { return 0 };
        match dtype {
            DType::F32 | DType::Bf16 | DType::F16 => u64::from((factor as f32).to_bits()),
            DType::F64 => factor.to_bits(),
            DType::U8 | DType::U32 | DType::U64 => factor as u64,
            DType::I8 | DType::I32 | DType::I64 => factor as i64 as u64,
        }
    }
}

/// A name that is none of the known ones.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is no {what}; use one of {known}")]
pub struct UnknownName {
    /// What was given.
    pub given: String,
    /// What it should have been the name of.
    pub what: &'static str,
    /// The known names, separated by commas.
    pub known: String,
}

fn by_name<T: Copy>(
    given: &str,
    what: &'static str,
    all: &[T],
    name: fn(T) -> &'static str,
) -> Result<T, UnknownName> {
    all.iter().copied().find(|&t| name(t) == given).ok_or_else(|| UnknownName {
        given: given.to_owned(),
        what,
        known: all.iter().map(|&t| name(t)).collect::<Vec<_>>().join(", "),
    })
}

impl FromStr for DType {
    type Err = UnknownName;
    fn from_str(s: &str) -> Result<Self, UnknownName> {
        by_name(s, "element type", &DType::ALL, DType::name)
    }
}

/// `sum`, `premul_sum:0.5`; without a factor `premul_sum` has 1.
impl FromStr for RedOp {
    type Err = UnknownName;
    fn from_str(s: &str) -> Result<Self, UnknownName> {
        let (name, factor) = s.split_once(':').map_or((s, None), |(name, factor)| (name, Some(factor)));
        let op = by_name(name, "reduction operator", &RedOp::ALL, RedOp::name)?;
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

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
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
