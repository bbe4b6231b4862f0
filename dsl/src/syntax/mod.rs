//! The accepted subset of Rust as a tree of its own, made from syn's by [`parse`].
//!
//! Names are resolved and types checked here, once: a variable is a slot of its fn's frame, a tuple or array takes
//! neighbouring slots, and the evaluator never sees a string. Every number is an `i64`; the integer types that the text
//! names are ranges, which a value must be in where it is stored. The tree knows places in the text ([`Loc`]) and nothing of rustc.

mod attribute;
mod expression;
mod lift;
mod loops;
mod macros;
mod movement;
mod names;
mod numbers;
mod options;
mod outside;
mod parser;
mod pattern;
mod schedule;
mod statement;
mod together;

pub(crate) use attribute::{SCHEDULE_ATTRIBUTES, text};
pub(crate) use expression::{Op, array_len, assigning_op, binary_op};
pub(crate) use lift::lift;
pub(crate) use macros::{Fragment, MACROS, arguments, fragments};
pub(crate) use movement::{terms, unwrapped};
pub(crate) use options::size;
pub(crate) use parser::{Notes, Parsed, parse};
pub(crate) use statement::{buffer_root, head};

use quadrille_compiler::collective::Param;
use quadrille_compiler::diagnostic::Loc;
use quadrille_compiler::evaluate::arithmetic::{Binary, IntType, Unary};
use quadrille_compiler::options::{How, ScheduleOptions};
use quadrille_compiler::program::ids::Buffer;
use quadrille_compiler::program::kind::Kind;
use std::fmt;

/// A collective's fn with its attribute.
#[derive(Debug)]
pub(crate) struct Definition {
    pub(crate) name: String,
    pub(crate) name_loc: Loc,
    pub(crate) options: Options,
    /// The sizes that the attribute gives, each as a fn, by `Size`.
    pub(crate) sizes: [Function; 3],
    /// The fn's own body, without parameters or result.
    pub(crate) body: Function,
    /// Fns inside the body, wherever they stand.
    pub(crate) functions: Vec<Function>,
    /// The variables, for messages.
    pub(crate) variables: Vec<Variable>,
    /// The names of the loops, for trails.
    pub(crate) loops: Vec<String>,
}

/// What `#[collective(..)]` says, but for the sizes, and `#[schedule(..)]`.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) kind: Kind,
    /// Ascending, no doubles.
    pub(crate) ranks: Vec<u32>,
    pub(crate) in_place: bool,
    pub(crate) divisible: bool,
    pub(crate) only: bool,
    pub(crate) reproducible: bool,
    /// 0 where the kind has none.
    pub(crate) root: u32,
    pub(crate) params: Vec<Param>,
    pub(crate) schedules: Vec<ScheduleOptions>,
    /// What errors in the sizes stand on, by `Size`; the fn's name where the attribute says nothing.
    pub(crate) size_locs: [Loc; 3],
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
    /// With the range of the type that the text names.
    Int(IntType),
    Bool,
    Tuple(Vec<Type>),
    Array(Box<Type>, u32),
    /// After an error; agrees with every type.
    Unknown,
}

impl Type {
    /// An integer like any other.
    pub(crate) const INT: Type = Type::Int(IntType::I64);

    pub(crate) fn unit() -> Type {
        Type::Tuple(Vec::new())
    }

    /// Slots a value takes; saturating.
    pub(crate) fn size(&self) -> u32 {
        match self {
            Type::Int(_) | Type::Bool | Type::Unknown => 1,
            Type::Tuple(items) => items.iter().fold(0, |sum, item| sum.saturating_add(item.size())),
            Type::Array(item, len) => item.size().saturating_mul(*len),
        }
    }

    /// Whether a value of one type can stand where the other is wanted.
    pub(crate) fn agrees(&self, other: &Type) -> bool {
        match (self, other) {
            (Type::Unknown, _) | (_, Type::Unknown) | (Type::Int(_), Type::Int(_)) => true,
            (Type::Tuple(a), Type::Tuple(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.agrees(b))
            }
            (Type::Array(a, n), Type::Array(b, m)) => n == m && a.agrees(b),
            _ => self == other,
        }
    }

    /// The type of a value that is of one type or the other, which agree: integers of different types are integers
    /// like any other.
    pub(crate) fn either(&self, other: &Type) -> Type {
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

    /// Whether some value of type `found`, which agrees, is outside the ranges of this one.
    pub(crate) fn narrows(&self, found: &Type) -> bool {
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
            Type::Int(ty) => f.write_str(ty.name),
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
    /// What its attributes say, for everything inside.
    pub(crate) attributes: Option<Box<Attributes>>,
    pub(crate) action: Action,
}

/// The attributes of a statement or block.
#[derive(Debug, Default)]
pub(crate) struct Attributes {
    pub(crate) on: Option<Expr>,
    pub(crate) channel: Option<Expr>,
    pub(crate) block: Option<Expr>,
    pub(crate) how: How,
}

#[derive(Debug)]
pub(crate) enum Action {
    /// Stores a value: `let`, or an expression whose value nobody wants.
    Set {
        slot: u32,
        value: Expr,
    },
    /// `place = value`.
    Assign {
        place: Place,
        value: Expr,
    },
    /// `place op= value` on an integer of type `ty`.
    Update {
        place: Place,
        op: Binary,
        value: Expr,
        ty: IntType,
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
    /// `(p, q) = (e, f)`: all are read before any stores.
    Together(Vec<Move>),
    /// `expect!(dest == source)`.
    Expect(Box<Move>),
    /// `unspecified!(dest)`.
    Unspecified(Box<Operand>),
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
    Known(Known),
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
    /// The value `.0` is put to slot `.1`; then `.2` reads a part of it.
    Spill(Box<(Expr, u32, Expr)>),
    /// `.0`, whose integers must be in the ranges of the type `.1`.
    Fit(Box<(Expr, Type)>, Loc),
}

/// A name of the language or of the attribute that has a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Known {
    Ranks,
    Root,
    Nodes,
    LocalRanks,
    /// By its place in the attribute.
    Param(u32),
}

/// What an expression reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Read {
    Known(Known),
    /// Index in [`Definition::variables`].
    Variable(u32),
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
    /// Calls `see` with everything that the expression reads outside blocks, in text order.
    pub(crate) fn visit_reads(&self, see: &mut impl FnMut(Read)) {
        match self {
            Expr::Const(_) | Expr::Block(_) => {}
            Expr::Known(known) => see(Read::Known(*known)),
            Expr::Local { variable, .. } => see(Read::Variable(*variable)),
            Expr::Place(place) => {
                if let Some(variable) = place.variable {
                    see(Read::Variable(variable));
                }
                place.indices.iter().for_each(|i| i.index.visit_reads(see));
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
