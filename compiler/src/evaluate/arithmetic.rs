//! The language's operators on `i64`, every one checked. Bools are 0 and 1.

use std::fmt;

/// Operators and methods of one operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unary {
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

/// An integer type of Rust that a cast names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IntType {
    /// As written.
    pub name: &'static str,
    min: i64,
    max: i64,
}

/// The types as constants, and the list of them.
macro_rules! int_types {
    ($($constant:ident = $name:ident: $min:expr, $max:expr;)*) => {
        impl IntType {
            $(
                #[doc = concat!("`", stringify!($name), "`")]
                pub const $constant: IntType = IntType { name: stringify!($name), min: $min, max: $max };
            )*

            /// Every integer type; the wide ones are cut to what an `i64` can hold.
            pub const ALL: [IntType; 12] = [$(IntType::$constant),*];
        }
    };
}

impl IntType {
    /// Whether the number is one of the type's.
    pub fn holds(self, x: i64) -> bool {
        (self.min..=self.max).contains(&x)
    }
}

int_types! {
    I8 = i8: i8::MIN as i64, i8::MAX as i64;
    I16 = i16: i16::MIN as i64, i16::MAX as i64;
    I32 = i32: i32::MIN as i64, i32::MAX as i64;
    I64 = i64: i64::MIN, i64::MAX;
    I128 = i128: i64::MIN, i64::MAX;
    ISIZE = isize: i64::MIN, i64::MAX;
    U8 = u8: 0, u8::MAX as i64;
    U16 = u16: 0, u16::MAX as i64;
    U32 = u32: 0, u32::MAX as i64;
    U64 = u64: 0, i64::MAX;
    U128 = u128: 0, i64::MAX;
    USIZE = usize: 0, i64::MAX;
}

/// Operators and methods of two operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Binary {
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
pub enum Fault {
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

impl Unary {
    /// The value for `x`.
    pub fn apply(self, x: i64) -> Result<i64, Fault> {
        match self {
            Unary::Neg => x.checked_neg().ok_or(Fault::Overflow),
            Unary::Not => Ok(!x),
            Unary::Negate => Ok(1 - x),
            Unary::Abs => x.checked_abs().ok_or(Fault::Overflow),
            Unary::Ilog2 => x.checked_ilog2().map(i64::from).ok_or(Fault::NoLogarithm),
            Unary::IsPowerOfTwo => Ok(i64::from(x > 0 && x.count_ones() == 1)),
            Unary::Cast(to) if to.holds(x) => Ok(x),
            Unary::Cast(_) => Err(Fault::OutOfType),
        }
    }

    /// The operation on `x` as a message shows it, with what is wrong.
    pub fn explain(self, x: i64, fault: Fault) -> String {
        match self {
            Unary::Neg => format!("-({x}) {fault}"),
            Unary::Abs => format!("({x}).abs() {fault}"),
            Unary::Ilog2 => format!("{x} {fault}"),
            Unary::Cast(to) => format!("{x} is no `{}`", to.name),
            Unary::Not | Unary::Negate | Unary::IsPowerOfTwo => format!("{x} {fault}"),
        }
    }
}

impl Binary {
    /// The operator or method as written.
    pub fn symbol(self) -> &'static str {
        match self {
            Binary::Add => "+",
            Binary::Sub => "-",
            Binary::Mul => "*",
            Binary::Div => "/",
            Binary::Rem => "%",
            Binary::BitAnd => "&",
            Binary::BitOr => "|",
            Binary::BitXor => "^",
            Binary::Shl => "<<",
            Binary::Shr => ">>",
            Binary::Eq => "==",
            Binary::Ne => "!=",
            Binary::Lt => "<",
            Binary::Le => "<=",
            Binary::Gt => ">",
            Binary::Ge => ">=",
            Binary::Min => "min",
            Binary::Max => "max",
            Binary::Pow => "pow",
            Binary::DivCeil => "div_ceil",
            Binary::RemEuclid => "rem_euclid",
        }
    }

    fn is_method(self) -> bool {
        matches!(self, Binary::Min | Binary::Max | Binary::Pow | Binary::DivCeil | Binary::RemEuclid)
    }

    /// The value for `x` and `y`.
    pub fn apply(self, x: i64, y: i64) -> Result<i64, Fault> {
        let overflow = |value: Option<i64>| value.ok_or(Fault::Overflow);
        // Of a division, nothing but a zero divisor and MIN / -1 has no value.
        let divided =
            |value: Option<i64>| value.ok_or(if y == 0 { Fault::DivisionByZero } else { Fault::Overflow });
        match self {
            Binary::Add => overflow(x.checked_add(y)),
            Binary::Sub => overflow(x.checked_sub(y)),
            Binary::Mul => overflow(x.checked_mul(y)),
            Binary::Div => divided(x.checked_div(y)),
            Binary::Rem => divided(x.checked_rem(y)),
            Binary::RemEuclid => divided(x.checked_rem_euclid(y)),
            Binary::DivCeil => {
                let quotient = divided(x.checked_div(y))?;
                let exact = x % y == 0 || (x < 0) != (y < 0);
                Ok(if exact { quotient } else { quotient + 1 })
            }
            Binary::BitAnd => Ok(x & y),
            Binary::BitOr => Ok(x | y),
            Binary::BitXor => Ok(x ^ y),
            Binary::Shl | Binary::Shr => {
                let amount = u32::try_from(y).ok().filter(|n| *n < 64).ok_or(Fault::ShiftAmount)?;
                if self == Binary::Shr {
                    return Ok(x >> amount);
                }
                let shifted = x << amount;
                if shifted >> amount == x { Ok(shifted) } else { Err(Fault::Overflow) }
            }
            Binary::Eq => Ok(i64::from(x == y)),
            Binary::Ne => Ok(i64::from(x != y)),
            Binary::Lt => Ok(i64::from(x < y)),
            Binary::Le => Ok(i64::from(x <= y)),
            Binary::Gt => Ok(i64::from(x > y)),
            Binary::Ge => Ok(i64::from(x >= y)),
            Binary::Min => Ok(x.min(y)),
            Binary::Max => Ok(x.max(y)),
            Binary::Pow => power(x, y),
        }
    }

    /// The operation on `x` and `y` as a message shows it, with what is wrong.
    pub fn explain(self, x: i64, y: i64, fault: Fault) -> String {
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

fn power(x: i64, y: i64) -> Result<i64, Fault> {
    if y < 0 {
        return Err(Fault::NegativeExponent);
    }
    match (x, u32::try_from(y)) {
        (_, Ok(y)) => x.checked_pow(y).ok_or(Fault::Overflow),
        (0 | 1, Err(_)) => Ok(x),
        (-1, Err(_)) => Ok(if y % 2 == 0 { 1 } else { -1 }),
        (_, Err(_)) => Err(Fault::Overflow),
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Fault::Overflow => "overflows a 64-bit integer",
            Fault::DivisionByZero => "divides by zero",
            Fault::ShiftAmount => "shifts by an amount outside 0..64",
            Fault::NegativeExponent => "has a negative exponent",
            Fault::NoLogarithm => "has no logarithm: it is not positive",
            Fault::OutOfType => "is outside its type",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const OPERATORS: [Binary; 21] = [
        Binary::Add,
        Binary::Sub,
        Binary::Mul,
        Binary::Div,
        Binary::Rem,
        Binary::BitAnd,
        Binary::BitOr,
        Binary::BitXor,
        Binary::Shl,
        Binary::Shr,
        Binary::Eq,
        Binary::Ne,
        Binary::Lt,
        Binary::Le,
        Binary::Gt,
        Binary::Ge,
        Binary::Min,
        Binary::Max,
        Binary::Pow,
        Binary::DivCeil,
        Binary::RemEuclid,
    ];

    /// The operators once more, over i128 and from their definitions; `None` where there is no value.
    fn reference(op: Binary, x: i64, y: i64) -> Option<i128> {
        let (a, b) = (i128::from(x), i128::from(y));
        let floor = |a: i128, b: i128| {
            let q = a / b;
            if q * b != a && (a < 0) != (b < 0) { q - 1 } else { q }
        };
        match op {
            Binary::Add => Some(a + b),
            Binary::Sub => Some(a - b),
            Binary::Mul => Some(a * b),
            Binary::Div => (b != 0).then(|| a / b),
            Binary::Rem if b == 0 || (x == i64::MIN && y == -1) => None,
            Binary::Rem => Some(a - b * (a / b)),
            Binary::RemEuclid if b == 0 || (x == i64::MIN && y == -1) => None,
            Binary::RemEuclid => Some(a - b.abs() * floor(a, b.abs())),
            Binary::DivCeil => (b != 0).then(|| -floor(-a, b)),
            Binary::BitAnd => Some(a & b),
            Binary::BitOr => Some(a | b),
            Binary::BitXor => Some(a ^ b),
            Binary::Shl => (0..64).contains(&b).then(|| a * (1i128 << b)),
            Binary::Shr => (0..64).contains(&b).then(|| floor(a, 1i128 << b)),
            Binary::Eq => Some(i128::from(a == b)),
            Binary::Ne => Some(i128::from(a != b)),
            Binary::Lt => Some(i128::from(a < b)),
            Binary::Le => Some(i128::from(a <= b)),
            Binary::Gt => Some(i128::from(a > b)),
            Binary::Ge => Some(i128::from(a >= b)),
            Binary::Min => Some(if a < b { a } else { b }),
            Binary::Max => Some(if a < b { b } else { a }),
            Binary::Pow if b < 0 => None,
            Binary::Pow if a.abs() <= 1 => Some(if a == -1 && b % 2 == 0 || b == 0 { 1 } else { a }),
            Binary::Pow if b > 64 => None,
            Binary::Pow => {
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
        let cast = |name: &str| Unary::Cast(IntType::ALL.into_iter().find(|t| t.name == name).unwrap());
        for (op, x, expected) in [
            (Unary::Neg, 5, Ok(-5)),
            (Unary::Neg, i64::MIN, Err(Fault::Overflow)),
            (Unary::Not, 5, Ok(-6)),
            (Unary::Negate, 1, Ok(0)),
            (Unary::Abs, -7, Ok(7)),
            (Unary::Abs, i64::MIN, Err(Fault::Overflow)),
            (Unary::Ilog2, 9, Ok(3)),
            (Unary::Ilog2, 0, Err(Fault::NoLogarithm)),
            (Unary::Ilog2, -1, Err(Fault::NoLogarithm)),
            (Unary::IsPowerOfTwo, 8, Ok(1)),
            (Unary::IsPowerOfTwo, 6, Ok(0)),
            (Unary::IsPowerOfTwo, 0, Ok(0)),
            (Unary::IsPowerOfTwo, i64::MIN, Ok(0)),
            (cast("u8"), 255, Ok(255)),
            (cast("u8"), 256, Err(Fault::OutOfType)),
            (cast("usize"), -1, Err(Fault::OutOfType)),
            (cast("i64"), i64::MIN, Ok(i64::MIN)),
        ] {
            assert_eq!(op.apply(x), expected, "{op:?} of {x}");
        }
    }
}
