//! The language's operators on `i64`, every one checked. Bools are 0 and 1.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Operators and methods of one operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum UnaryOp {
    /// `-x`.
    Neg,
    /// All bits of an integer.
    Not,
    /// Of a bool.
    Negate,
    /// The absolute value.
    Abs,
    /// The logarithm to base 2, rounded down.
    Ilog2,
    /// A bool; false for numbers that are not positive.
    IsPowerOfTwo,
    /// `as`: the value must be one of the type's.
    Cast(IntType),
}

/// The integer types of Rust, each with its range in an `i64`.
macro_rules! int_types {
    ($($variant:ident = $name:ident: $min:expr, $max:expr;)*) => {
        /// An integer type of Rust. The wide ones are cut to what an `i64` can hold.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
        pub enum IntType {
            $(
                #[doc = concat!("`", stringify!($name), "`")]
                $variant,
            )*
        }

        impl IntType {
            /// Every integer type.
            pub const ALL: [IntType; 12] = [$(IntType::$variant),*];

            /// The name in the text.
            pub fn name(self) -> &'static str {
                match self {
                    $(IntType::$variant => stringify!($name),)*
                }
            }

            /// The type of this name.
            pub fn named(name: &str) -> Option<IntType> {
                IntType::ALL.into_iter().find(|ty| ty.name() == name)
            }

            /// Returns true if the number is in the type's range.
            pub fn holds(self, x: i64) -> bool {
                match self {
                    $(IntType::$variant => ($min..=$max).contains(&x),)*
                }
            }
        }
    };
}

int_types! {
    I8 = i8: i8::MIN as i64, i8::MAX as i64;
    I16 = i16: i16::MIN as i64, i16::MAX as i64;
    I32 = i32: i32::MIN as i64, i32::MAX as i64;
    I64 = i64: i64::MIN, i64::MAX;
    I128 = i128: i64::MIN, i64::MAX;
    Isize = isize: i64::MIN, i64::MAX;
    U8 = u8: 0, u8::MAX as i64;
    U16 = u16: 0, u16::MAX as i64;
    U32 = u32: 0, u32::MAX as i64;
    U64 = u64: 0, i64::MAX;
    U128 = u128: 0, i64::MAX;
    Usize = usize: 0, i64::MAX;
}

/// Operators and methods of two operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum BinaryOp {
    /// `x + y`.
    Add,
    /// `x - y`.
    Sub,
    /// `x * y`.
    Mul,
    /// `x / y`, rounded towards 0.
    Div,
    /// `x % y`, with the sign of x.
    Rem,
    /// `x & y`.
    BitAnd,
    /// `x | y`.
    BitOr,
    /// `x ^ y`.
    BitXor,
    /// `x << y`; what leaves the 64 bits is an overflow.
    Shl,
    /// `x >> y`, with the sign of x.
    Shr,
    /// `x == y`.
    Eq,
    /// `x != y`.
    Ne,
    /// `x < y`.
    Lt,
    /// `x <= y`.
    Le,
    /// `x > y`.
    Gt,
    /// `x >= y`.
    Ge,
    /// The smaller.
    Min,
    /// The larger.
    Max,
    /// `x` to the power of `y`.
    Pow,
    /// Rounds up, towards positive infinity.
    DivCeil,
    /// The remainder that is never negative.
    RemEuclid,
}

/// Why an operation has no value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ArithmeticFault {
    /// No 64-bit integer.
    Overflow,
    /// The divisor is 0.
    DivisionByZero,
    /// A shift by less than 0 or more than 63.
    ShiftAmount,
    /// A power of a negative exponent.
    NegativeExponent,
    /// A logarithm of 0 or less.
    NoLogarithm,
    /// Not a value of the type that a cast names.
    OutOfType,
}

impl UnaryOp {
    /// The value for `x`.
    pub fn apply(self, x: i64) -> Result<i64, ArithmeticFault> {
        match self {
            UnaryOp::Neg => x.checked_neg().ok_or(ArithmeticFault::Overflow),
            UnaryOp::Not => Ok(!x),
            UnaryOp::Negate => Ok(1 - x),
            UnaryOp::Abs => x.checked_abs().ok_or(ArithmeticFault::Overflow),
            UnaryOp::Ilog2 => x.checked_ilog2().map(i64::from).ok_or(ArithmeticFault::NoLogarithm),
            UnaryOp::IsPowerOfTwo => Ok(i64::from(x > 0 && x.count_ones() == 1)),
            UnaryOp::Cast(to) if to.holds(x) => Ok(x),
            UnaryOp::Cast(_) => Err(ArithmeticFault::OutOfType),
        }
    }

    /// The operation on `x` as a message shows it, with what is wrong.
    pub fn explain(self, x: i64, fault: ArithmeticFault) -> String {
        match self {
            UnaryOp::Neg => format!("-({x}) {fault}"),
            UnaryOp::Abs => format!("({x}).abs() {fault}"),
            UnaryOp::Ilog2 => format!("{x} {fault}"),
            UnaryOp::Cast(to) => format!("{x} is no `{}`", to.name()),
            UnaryOp::Not | UnaryOp::Negate | UnaryOp::IsPowerOfTwo => format!("{x} {fault}"),
        }
    }
}

impl BinaryOp {
    /// The operator or method as written.
    pub fn symbol(self) -> &'static str {
        match self {
            BinaryOp::Add => "+",
            BinaryOp::Sub => "-",
            BinaryOp::Mul => "*",
            BinaryOp::Div => "/",
            BinaryOp::Rem => "%",
            BinaryOp::BitAnd => "&",
            BinaryOp::BitOr => "|",
            BinaryOp::BitXor => "^",
            BinaryOp::Shl => "<<",
            BinaryOp::Shr => ">>",
            BinaryOp::Eq => "==",
            BinaryOp::Ne => "!=",
            BinaryOp::Lt => "<",
            BinaryOp::Le => "<=",
            BinaryOp::Gt => ">",
            BinaryOp::Ge => ">=",
            BinaryOp::Min => "min",
            BinaryOp::Max => "max",
            BinaryOp::Pow => "pow",
            BinaryOp::DivCeil => "div_ceil",
            BinaryOp::RemEuclid => "rem_euclid",
        }
    }

    fn is_method(self) -> bool {
        matches!(
            self,
            BinaryOp::Min | BinaryOp::Max | BinaryOp::Pow | BinaryOp::DivCeil | BinaryOp::RemEuclid
        )
    }

    /// The value for `x` and `y`.
    pub fn apply(self, x: i64, y: i64) -> Result<i64, ArithmeticFault> {
        let overflow = |value: Option<i64>| value.ok_or(ArithmeticFault::Overflow);
        // Of a division, nothing but a zero divisor and MIN / -1 has no value.
        let divided = |value: Option<i64>| {
            value.ok_or(if y == 0 { ArithmeticFault::DivisionByZero } else { ArithmeticFault::Overflow })
        };
        match self {
            BinaryOp::Add => overflow(x.checked_add(y)),
            BinaryOp::Sub => overflow(x.checked_sub(y)),
            BinaryOp::Mul => overflow(x.checked_mul(y)),
            BinaryOp::Div => divided(x.checked_div(y)),
            BinaryOp::Rem => divided(x.checked_rem(y)),
            BinaryOp::RemEuclid => divided(x.checked_rem_euclid(y)),
            BinaryOp::DivCeil => {
                let quotient = divided(x.checked_div(y))?;
                let exact = x % y == 0 || (x < 0) != (y < 0);
                Ok(if exact { quotient } else { quotient + 1 })
            }
            BinaryOp::BitAnd => Ok(x & y),
            BinaryOp::BitOr => Ok(x | y),
            BinaryOp::BitXor => Ok(x ^ y),
            BinaryOp::Shl | BinaryOp::Shr => {
                let amount = u32::try_from(y).ok().filter(|n| *n < 64).ok_or(ArithmeticFault::ShiftAmount)?;
                if self == BinaryOp::Shr {
                    return Ok(x >> amount);
                }
                let shifted = x << amount;
                if shifted >> amount == x { Ok(shifted) } else { Err(ArithmeticFault::Overflow) }
            }
            BinaryOp::Eq => Ok(i64::from(x == y)),
            BinaryOp::Ne => Ok(i64::from(x != y)),
            BinaryOp::Lt => Ok(i64::from(x < y)),
            BinaryOp::Le => Ok(i64::from(x <= y)),
            BinaryOp::Gt => Ok(i64::from(x > y)),
            BinaryOp::Ge => Ok(i64::from(x >= y)),
            BinaryOp::Min => Ok(x.min(y)),
            BinaryOp::Max => Ok(x.max(y)),
            BinaryOp::Pow => power(x, y),
        }
    }

    /// The operation on `x` and `y` as a message shows it, with what is wrong.
    pub fn explain(self, x: i64, y: i64, fault: ArithmeticFault) -> String {
        let symbol = self.symbol();
        if self.is_method() {
            format!("({x}).{symbol}({y}) {fault}")
        } else if y < 0 {
            format!("{x} {symbol} ({y}) {fault}")
        } else {
            format!("{x} {symbol} {y} {fault}")
        }
    }
}

fn power(x: i64, y: i64) -> Result<i64, ArithmeticFault> {
    if y < 0 {
        return Err(ArithmeticFault::NegativeExponent);
    }
    match (x, u32::try_from(y)) {
        (_, Ok(y)) => x.checked_pow(y).ok_or(ArithmeticFault::Overflow),
        (0 | 1, Err(_)) => Ok(x),
        (-1, Err(_)) => Ok(if y % 2 == 0 { 1 } else { -1 }),
        (_, Err(_)) => Err(ArithmeticFault::Overflow),
    }
}

impl fmt::Display for ArithmeticFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ArithmeticFault::Overflow => "overflows a 64-bit integer",
            ArithmeticFault::DivisionByZero => "divides by zero",
            ArithmeticFault::ShiftAmount => "shifts by an amount outside 0..64",
            ArithmeticFault::NegativeExponent => "has a negative exponent",
            ArithmeticFault::NoLogarithm => "has no logarithm: it is not positive",
            ArithmeticFault::OutOfType => "is outside its type",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const OPERATORS: [BinaryOp; 21] = [
        BinaryOp::Add,
        BinaryOp::Sub,
        BinaryOp::Mul,
        BinaryOp::Div,
        BinaryOp::Rem,
        BinaryOp::BitAnd,
        BinaryOp::BitOr,
        BinaryOp::BitXor,
        BinaryOp::Shl,
        BinaryOp::Shr,
        BinaryOp::Eq,
        BinaryOp::Ne,
        BinaryOp::Lt,
        BinaryOp::Le,
        BinaryOp::Gt,
        BinaryOp::Ge,
        BinaryOp::Min,
        BinaryOp::Max,
        BinaryOp::Pow,
        BinaryOp::DivCeil,
        BinaryOp::RemEuclid,
    ];

    /// The operators once more, over i128 and from their definitions; `None` where there is no value.
    fn reference(op: BinaryOp, x: i64, y: i64) -> Option<i128> {
        let (a, b) = (i128::from(x), i128::from(y));
        let floor = |a: i128, b: i128| {
            let q = a / b;
            if q * b != a && (a < 0) != (b < 0) { q - 1 } else { q }
        };
        match op {
            BinaryOp::Add => Some(a + b),
            BinaryOp::Sub => Some(a - b),
            BinaryOp::Mul => Some(a * b),
            BinaryOp::Div => (b != 0).then(|| a / b),
            BinaryOp::Rem if b == 0 || (x == i64::MIN && y == -1) => None,
            BinaryOp::Rem => Some(a - b * (a / b)),
            BinaryOp::RemEuclid if b == 0 || (x == i64::MIN && y == -1) => None,
            BinaryOp::RemEuclid => Some(a - b.abs() * floor(a, b.abs())),
            BinaryOp::DivCeil => (b != 0).then(|| -floor(-a, b)),
            BinaryOp::BitAnd => Some(a & b),
            BinaryOp::BitOr => Some(a | b),
            BinaryOp::BitXor => Some(a ^ b),
            BinaryOp::Shl => (0..64).contains(&b).then(|| a * (1i128 << b)),
            BinaryOp::Shr => (0..64).contains(&b).then(|| floor(a, 1i128 << b)),
            BinaryOp::Eq => Some(i128::from(a == b)),
            BinaryOp::Ne => Some(i128::from(a != b)),
            BinaryOp::Lt => Some(i128::from(a < b)),
            BinaryOp::Le => Some(i128::from(a <= b)),
            BinaryOp::Gt => Some(i128::from(a > b)),
            BinaryOp::Ge => Some(i128::from(a >= b)),
            BinaryOp::Min => Some(if a < b { a } else { b }),
            BinaryOp::Max => Some(if a < b { b } else { a }),
            BinaryOp::Pow if b < 0 => None,
            BinaryOp::Pow if a.abs() <= 1 => Some(if a == -1 && b % 2 == 0 || b == 0 { 1 } else { a }),
            BinaryOp::Pow if b > 64 => None,
            BinaryOp::Pow => {
                (0..b).try_fold(1i128, |product, _| Some(product * a).filter(|p| i64::try_from(*p).is_ok()))
            }
        }
        .filter(|value| i64::try_from(*value).is_ok())
    }

    fn number() -> impl Strategy<Value = i64> {
        prop_oneof![any::<i64>(), -70i64..70, Just(i64::MIN), Just(i64::MAX), Just(i64::MIN + 1)]
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn operators_agree_with_wide_integers(
            op in proptest::sample::select(OPERATORS.to_vec()), x in number(), y in number()
        ) {
            prop_assert_eq!(op.apply(x, y).ok().map(i128::from), reference(op, x, y), "{:?}", op);
        }
    }

    #[test]
    fn unary_operators() {
        let cast = |name: &str| UnaryOp::Cast(IntType::named(name).unwrap());
        for (op, x, expected) in [
            (UnaryOp::Neg, 5, Ok(-5)),
            (UnaryOp::Neg, i64::MIN, Err(ArithmeticFault::Overflow)),
            (UnaryOp::Not, 5, Ok(-6)),
            (UnaryOp::Negate, 1, Ok(0)),
            (UnaryOp::Abs, -7, Ok(7)),
            (UnaryOp::Abs, i64::MIN, Err(ArithmeticFault::Overflow)),
            (UnaryOp::Ilog2, 9, Ok(3)),
            (UnaryOp::Ilog2, 0, Err(ArithmeticFault::NoLogarithm)),
            (UnaryOp::Ilog2, -1, Err(ArithmeticFault::NoLogarithm)),
            (UnaryOp::IsPowerOfTwo, 8, Ok(1)),
            (UnaryOp::IsPowerOfTwo, 6, Ok(0)),
            (UnaryOp::IsPowerOfTwo, 0, Ok(0)),
            (UnaryOp::IsPowerOfTwo, i64::MIN, Ok(0)),
            (cast("u8"), 255, Ok(255)),
            (cast("u8"), 256, Err(ArithmeticFault::OutOfType)),
            (cast("usize"), -1, Err(ArithmeticFault::OutOfType)),
            (cast("i64"), i64::MIN, Ok(i64::MIN)),
        ] {
            assert_eq!(op.apply(x), expected, "{op:?} of {x}");
        }
    }
}
