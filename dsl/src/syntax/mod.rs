//! The accepted subset of Rust as a tree of its own, made from syn's by [`parse`].
//!
//! Names are resolved and types checked here, once: a variable is a slot of its fn's frame, a tuple or array takes
//! neighbouring slots, and the evaluator never sees a string. Every number is an `i64`, whatever integer type the
//! text names. The tree knows places in the text ([`Loc`]) and nothing of rustc.

mod attribute;
mod expression;
mod lift;
mod movement;
mod parser;
mod pattern;
mod statement;

pub(crate) use attribute::{SCHEDULE_ATTRIBUTES, chunks, text};
pub(crate) use expression::{Op, array_len, assigning_op, binary_op};
pub(crate) use lift::lift;
pub(crate) use movement::{terms, unwrapped};
pub(crate) use parser::{Parsed, parse};
pub(crate) use statement::{Fragment, assertion, buffer_root, fragments, head};

use quadrille_compiler::diagnostic::Loc;
use quadrille_compiler::ids::Buffer;
use quadrille_compiler::kind::Kind;
use quadrille_compiler::recording::arithmetic::{Binary, Unary};
use std::fmt;

/// A collective's fn with its attribute.
#[derive(Debug)]
pub(crate) struct Definition {
    pub(crate) name: String,
    pub(crate) name_loc: Loc,
    pub(crate) options: Options,
    /// The number of chunks of a unit, as a fn.
    pub(crate) chunks: Function,
    /// The fn's own body, without parameters or result.
    pub(crate) body: Function,
    /// Fns inside the body, wherever they stand.
    pub(crate) functions: Vec<Function>,
    /// The variables, for messages.
    pub(crate) variables: Vec<Variable>,
    /// The names of the loops, for trails.
    pub(crate) loops: Vec<String>,
}

/// What `#[collective(..)]` says, but for the chunks.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) kind: Kind,
    /// Ascending, no doubles.
    pub(crate) ranks: Vec<u32>,
    pub(crate) in_place: bool,
    pub(crate) divisible: bool,
    pub(crate) only: bool,
    /// What errors in the number of chunks stand on.
    pub(crate) chunks_loc: Loc,
}

/// A variable of the text; a shadowed one and its successor are two.
#[derive(Debug)]
pub(crate) struct Variable {
    pub(crate) name: String,
    pub(crate) ty: Type,
    /// Its first slot.
    pub(crate) slot: u32,
}

/// A body that runs in a frame of its own.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) name: String,
    /// Parameters, which take the first slots.
    pub(crate) parameters: Vec<Type>,
    pub(crate) result: Type,
    /// Slots of the frame.
    pub(crate) frame: u32,
    pub(crate) body: Block,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Type {
    Int,
    Bool,
    Tuple(Vec<Type>),
    Array(Box<Type>, u32),
    /// After an error; agrees with every type.
    Unknown,
}

impl Type {
    pub(crate) fn unit() -> Type {
        Type::Tuple(Vec::new())
    }

    /// Slots a value takes; saturating.
    pub(crate) fn size(&self) -> u32 {
        match self {
            Type::Int | Type::Bool | Type::Unknown => 1,
            Type::Tuple(items) => items.iter().fold(0, |sum, item| sum.saturating_add(item.size())),
            Type::Array(item, len) => item.size().saturating_mul(*len),
        }
    }

    /// Whether a value of one type can stand where the other is wanted.
    pub(crate) fn agrees(&self, other: &Type) -> bool {
        match (self, other) {
            (Type::Unknown, _) | (_, Type::Unknown) => true,
            (Type::Tuple(a), Type::Tuple(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.agrees(b))
            }
            (Type::Array(a, n), Type::Array(b, m)) => n == m && a.agrees(b),
            _ => self == other,
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Int => f.write_str("i64"),
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

/// Statements, then perhaps a value.
#[derive(Debug, Default)]
pub(crate) struct Block {
    pub(crate) statements: Vec<Statement>,
    /// What the block is worth, and where it stands; none is `()`.
    pub(crate) value: Option<(Loc, Expr)>,
}

#[derive(Debug)]
pub(crate) struct Statement {
    /// What errors stand on: all of it with its semicolon; of a loop only the head.
    pub(crate) loc: Loc,
    /// The rank named by `#[on(..)]`, for everything inside.
    pub(crate) on: Option<Expr>,
    pub(crate) action: Action,
}

#[derive(Debug)]
pub(crate) enum Action {
    /// Stores a value: `let`, or an expression whose value nobody wants.
    Set {
        slot: u32,
        value: Expr,
    },
    /// `place = value`, or `place op= value`.
    Assign {
        place: Place,
        op: Option<Binary>,
        value: Expr,
    },
    /// `(p, q) = value`: the value goes to `temp`, then its parts (by offset) to the places.
    Scatter {
        temp: u32,
        value: Expr,
        places: Vec<(u32, Place)>,
    },
    /// `name` is the number of the loop's name.
    For {
        slot: u32,
        name: u32,
        range: Range,
        body: Block,
    },
    While {
        name: u32,
        condition: Expr,
        body: Block,
    },
    Assert {
        condition: Expr,
        condition_loc: Loc,
        message: Vec<Piece>,
    },
    Move(Box<Move>),
}

/// A piece of an `assert!`'s message.
#[derive(Debug)]
pub(crate) enum Piece {
    Text(String),
    Value(Expr, Type),
}

/// What a `for` runs over: `(start..end)` and then the adaptors in order.
#[derive(Debug)]
pub(crate) struct Range {
    pub(crate) start: Expr,
    pub(crate) end: Expr,
    pub(crate) inclusive: bool,
    pub(crate) adaptors: Vec<Adaptor>,
}

#[derive(Debug)]
pub(crate) enum Adaptor {
    Rev,
    StepBy(Expr),
}

/// An expression. Numbers and bools (0, 1) are scalars; tuples, arrays and `()` are stored to slots.
#[derive(Debug)]
pub(crate) enum Expr {
    Const(i64),
    Ranks,
    /// A scalar variable.
    Local {
        slot: u32,
        variable: u32,
    },
    /// A part of a variable, or a variable that is no scalar.
    Place(Box<Place>),
    Unary(Unary, Box<Expr>, Loc),
    Binary(Binary, Box<(Expr, Expr)>, Loc),
    And(Box<(Expr, Expr)>),
    Or(Box<(Expr, Expr)>),
    If(Box<(Expr, Block, Block)>),
    Block(Box<Block>),
    Call(Box<Call>),
    /// Tuples and arrays, each item with the slots it takes.
    Items(Vec<(u32, Expr)>),
    /// `[item; len]`, with the slots of one item.
    Repeat(Box<Expr>, u32, u32),
    /// A value of `size` slots is put to slot `at`; then `.3` reads a part of it.
    Spill(Box<(Expr, u32, Expr)>),
}

/// A variable, or a part of it.
#[derive(Debug)]
pub(crate) struct Place {
    /// First slot with every index 0.
    pub(crate) slot: u32,
    /// Slots of the part.
    pub(crate) size: u32,
    /// The variable; none for a value without a name.
    pub(crate) variable: Option<u32>,
    /// The indices that move on from `slot`.
    pub(crate) indices: Vec<Indexing>,
}

#[derive(Debug)]
pub(crate) struct Indexing {
    pub(crate) index: Expr,
    /// Items of the array.
    pub(crate) len: u32,
    /// Slots of an item.
    pub(crate) stride: u32,
}

#[derive(Debug)]
pub(crate) struct Call {
    /// Index in [`Definition::functions`].
    pub(crate) function: u32,
    /// Each with the slots it takes.
    pub(crate) arguments: Vec<(u32, Expr)>,
    pub(crate) loc: Loc,
}

/// A statement that moves data.
#[derive(Debug)]
pub(crate) struct Move {
    pub(crate) dest: Operand,
    /// `+=`.
    pub(crate) accumulate: bool,
    pub(crate) source: Source,
}

#[derive(Debug)]
pub(crate) enum Source {
    /// One operand, or several combined in order. Those of several ranks go pairwise with the destination's.
    Sum(Vec<Operand>),
    /// One operand of several ranks, combined over them.
    Reduce(Operand),
}

/// `buffer[rank][chunk]`.
#[derive(Debug)]
pub(crate) struct Operand {
    pub(crate) buffer: Buffer,
    pub(crate) ranks: Ranks,
    pub(crate) start: Expr,
    /// The end of a range of chunks, and whether it belongs to the range.
    pub(crate) end: Option<(Expr, bool)>,
}

/// The ranks an operand names.
#[derive(Debug)]
pub(crate) enum Ranks {
    One(Expr),
    /// `[..]`.
    All,
    /// An array of ranks, put to slot `at`.
    Group {
        value: Expr,
        at: u32,
        len: u32,
    },
}

impl Expr {
    /// Calls `see` with every variable (or, if none, RANKS) that the expression reads outside blocks, in text order.
    pub(crate) fn visit_reads(&self, see: &mut impl FnMut(Option<u32>)) {
        match self {
            Expr::Const(_) | Expr::Block(_) => {}
            Expr::Ranks => see(None),
            Expr::Local { variable, .. } => see(Some(*variable)),
            Expr::Place(place) => {
                if let Some(variable) = place.variable {
                    see(Some(variable));
                }
                place.indices.iter().for_each(|i| i.index.visit_reads(see));
            }
            Expr::Unary(_, operand, _) | Expr::Repeat(operand, ..) => operand.visit_reads(see),
            Expr::Binary(_, pair, _) | Expr::And(pair) | Expr::Or(pair) => {
                pair.0.visit_reads(see);
                pair.1.visit_reads(see);
            }
            Expr::If(parts) => parts.0.visit_reads(see),
            Expr::Call(call) => call.arguments.iter().for_each(|(_, e)| e.visit_reads(see)),
            Expr::Items(items) => items.iter().for_each(|(_, e)| e.visit_reads(see)),
            Expr::Spill(parts) => {
                parts.0.visit_reads(see);
                parts.2.visit_reads(see);
            }
        }
    }
}
