//! Expressions.

use super::arithmetic::{BinaryOp, UnaryOp};
use super::{StmtBlock, Type};
use crate::diagnostic::Loc;
use serde::{Deserialize, Serialize};

/// The most items of a tuple.
pub const PARTS: usize = 16;

/// An expression. Integers and bools (0, 1) are scalars; tuples, arrays and `()` are stored to slots.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Expr {
    /// A literal.
    Const(i64),
    /// A name of the language or of the attribute.
    Known(KnownName),
    /// A scalar variable.
    Local {
        /// Its slot.
        slot: u32,
        /// Its index in [`super::Body::variables`].
        variable: u32,
    },
    /// A part of a variable, or a variable that is no scalar.
    Part(Box<VariablePart>),
    /// An operator or method of one operand, and its place.
    Unary(UnaryOp, Box<Expr>, Loc),
    /// An operator or method of two operands, and its place.
    Binary(BinaryOp, Box<(Expr, Expr)>, Loc),
    /// `a && b`.
    And(Box<(Expr, Expr)>),
    /// `a || b`.
    Or(Box<(Expr, Expr)>),
    /// `if`: the condition and the two branches.
    If(Box<(Expr, StmtBlock, StmtBlock)>),
    /// `{ .. }`.
    Block(Box<StmtBlock>),
    /// A call of a nested fn.
    Call(Box<FnCall>),
    /// Tuples and arrays: each item with its number of slots.
    Items(Vec<(u32, Expr)>),
    /// `[item; len]`: the item, the length, and the slots of one item.
    Repeat(Box<Expr>, u32, u32),
    /// Puts the first expression to the slots from the number on; then the second reads a part of it.
    Spill(Box<(Expr, u32, Expr)>),
    /// A value whose integers must be in the ranges of the type, and its place.
    Fit(Box<(Expr, Type)>, Loc),
}

/// A name of the language or of the attribute that has a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum KnownName {
    /// `RANKS`.
    Ranks,
    /// `ROOT`.
    Root,
    /// `NODES`.
    Nodes,
    /// `LOCAL_RANKS`.
    LocalRanks,
    /// A parameter, by its index in the attribute.
    Param(u32),
}

/// A name that an expression reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReadName {
    /// A name of the language or of the attribute.
    Known(KnownName),
    /// A variable, by its index in [`super::Body::variables`].
    Variable(u32),
}

/// A variable, or a part of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct VariablePart {
    /// The first slot where every index is 0.
    pub slot: u32,
    /// Slots of the part.
    pub size: u32,
    /// The variable's index in [`super::Body::variables`]; none for a value without a name.
    pub variable: Option<u32>,
    /// The indices, which move on from `slot`.
    pub indices: Vec<ArrayIndex>,
}

/// An index into an array.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ArrayIndex {
    /// The index.
    pub index: Expr,
    /// Items of the array.
    pub len: u32,
    /// Slots of an item.
    pub stride: u32,
}

/// A call of a nested fn.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FnCall {
    /// The fn's index in [`super::Body::functions`].
    pub function: u32,
    /// The arguments, each with its number of slots.
    pub arguments: Vec<(u32, Expr)>,
    /// The call's place.
    pub loc: Loc,
}

impl Expr {
    /// Calls `see` with every name that the expression reads outside blocks, in text order.
    pub fn visit_reads(&self, see: &mut impl FnMut(ReadName)) {
        match self {
            Expr::Const(_) | Expr::Block(_) => {}
            Expr::Known(known) => see(ReadName::Known(*known)),
            Expr::Local { variable, .. } => see(ReadName::Variable(*variable)),
            Expr::Part(part) => {
                if let Some(variable) = part.variable {
                    see(ReadName::Variable(variable));
                }
                part.indices.iter().for_each(|i| i.index.visit_reads(see));
            }
            Expr::Unary(_, operand, _) | Expr::Repeat(operand, ..) => operand.visit_reads(see),
            Expr::Binary(_, pair, _) | Expr::And(pair) | Expr::Or(pair) => {
                pair.0.visit_reads(see);
                pair.1.visit_reads(see);
            }
            Expr::If(parts) => parts.0.visit_reads(see),
            Expr::Fit(parts, _) => parts.0.visit_reads(see),
            Expr::Call(call) => call.arguments.iter().for_each(|(_, e)| e.visit_reads(see)),
            Expr::Items(items) => items.iter().for_each(|(_, e)| e.visit_reads(see)),
            Expr::Spill(parts) => {
                parts.0.visit_reads(see);
                parts.2.visit_reads(see);
            }
        }
    }
}
