//! The types of values.

use super::arithmetic::IntType;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The type of a value.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Type {
    /// An integer in the range of the type that the text names.
    Int(IntType),
    /// A bool: 0 or 1.
    Bool,
    /// A tuple; `()` has no items.
    Tuple(Vec<Type>),
    /// An array: its item, and how many.
    Array(Box<Type>, u32),
    /// The type of an expression that has an error; agrees with every type.
    Unknown,
}

impl Type {
    /// The type of an integer without a named type.
    pub const INT: Type = Type::Int(IntType::I64);

    /// `()`.
    pub fn unit() -> Type {
        Type::Tuple(Vec::new())
    }

    /// Slots of a value; saturating.
    pub fn size(&self) -> u32 {
        match self {
            Type::Int(_) | Type::Bool | Type::Unknown => 1,
            Type::Tuple(items) => items.iter().fold(0, |sum, item| sum.saturating_add(item.size())),
            Type::Array(item, len) => item.size().saturating_mul(*len),
        }
    }

    /// Returns true if a value of one type can stand where the other is wanted.
    pub fn agrees(&self, other: &Type) -> bool {
        match (self, other) {
            (Type::Unknown, _) | (_, Type::Unknown) | (Type::Int(_), Type::Int(_)) => true,
            (Type::Tuple(a), Type::Tuple(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.agrees(b))
            }
            (Type::Array(a, n), Type::Array(b, m)) => n == m && a.agrees(b),
            _ => self == other,
        }
    }

    /// The type of a value that has one type or the other, which agree. Integers of different types become `i64`.
    pub fn either(&self, other: &Type) -> Type {
        match (self, other) {
            (Type::Unknown, ty) | (ty, Type::Unknown) => ty.clone(),
            (Type::Int(a), Type::Int(b)) if a != b => Type::INT,
            (Type::Tuple(a), Type::Tuple(b)) => {
                Type::Tuple(a.iter().zip(b).map(|(a, b)| a.either(b)).collect())
            }
            (Type::Array(a, len), Type::Array(b, _)) => Type::Array(Box::new(a.either(b)), *len),
            _ => self.clone(),
        }
    }

    /// Returns true if some value of type `found`, which agrees, is outside the ranges of this one.
    pub fn narrows(&self, found: &Type) -> bool {
        match (self, found) {
            (Type::Int(wanted), Type::Int(found)) => {
                wanted != found && !(wanted.holds(i64::MIN) && wanted.holds(i64::MAX))
            }
            (Type::Tuple(a), Type::Tuple(b)) => a.iter().zip(b).any(|(a, b)| a.narrows(b)),
            (Type::Array(a, _), Type::Array(b, _)) => a.narrows(b),
            _ => false,
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Int(ty) => f.write_str(ty.name()),
            Type::Bool => f.write_str("bool"),
            Type::Unknown => f.write_str("_"),
            Type::Array(item, len) => write!(f, "[{item}; {len}]"),
            Type::Tuple(items) => {
                f.write_str("(")?;
                for (i, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", if i > 0 { ", " } else { "" })?;
                }
                f.write_str(if items.len() == 1 { ",)" } else { ")" })
            }
        }
    }
}
