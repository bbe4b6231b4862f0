//! The body of a collective: the tree that the parser makes of its text, and that the evaluator runs.
//!
//! ```text
//! for c in 0..RANKS {                     For { slot: 0, over: 0..Known(Ranks), body: [
//!     data[(c + 1) % RANKS][c] = ..           Move(data[Binary(Rem, (Binary(Add, ..), ..))][Local(0)] = ..)
//! }                                       ] }
//! ```
//!
//! 1. Names are resolved: a variable is a slot of its fn's frame. A tuple or array takes neighbouring slots.
//! 2. Types are checked. Every number is an `i64`; an integer type of the text is a range, which [`Expr::Fit`] demands of
//!    a value where it is stored.
//! 3. Every [`Loc`] is a place in the text from which the body was parsed.
//! 4. A body is plain data. [`Body::to_bytes`] and [`Body::from_bytes`] carry it from the macro, which parses, to the
//!    program that was compiled, which runs it.
//!
//! The parser establishes the first three; the evaluator relies on them.

pub mod arithmetic;
mod bytes;
mod expression;
mod types;

pub use bytes::BadBytes;
pub use expression::{ArrayIndex, Expr, FnCall, KnownName, PARTS, ReadName, VariablePart};
pub use types::Type;

use crate::body::arithmetic::{BinaryOp, IntType};
use crate::diagnostic::Loc;
use crate::options::{ScheduleOptions, StatementOptions};
use crate::program::ids::Buffer;
use crate::program::kind::Kind;
use serde::{Deserialize, Serialize};

/// A collective's fn with its attributes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Body {
    /// The options of the attribute, known before the body runs.
    pub head: Head,
    /// The sizes that the attribute gives, each as a fn, by [`Size`].
    pub sizes: [BodyFn; 3],
    /// The fn itself, which has neither parameters nor a result.
    pub main: BodyFn,
    /// Fns inside the body, wherever they stand, and those that it shares with other collectives.
    pub functions: Vec<BodyFn>,
    /// The variables, for messages.
    pub variables: Vec<BodyVariable>,
    /// The names of the loops, for trails.
    pub loops: Vec<String>,
}

/// The name of a collective and the parts of its attributes that are no expressions.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Head {
    /// The fn's name.
    pub name: String,
    /// The place of the name.
    pub name_loc: Loc,
    /// The collective's kind.
    pub kind: Kind,
    /// The world sizes that the attribute lists, ascending, each once.
    pub ranks: Vec<u32>,
    /// One buffer named `data` instead of `input` and `output`.
    pub in_place: bool,
    /// Counts are promised to be multiples of the number of chunks.
    pub divisible: bool,
    /// Other world sizes, and other values of parameters, are refused.
    pub only: bool,
    /// Results are promised to depend on neither rank, message size nor schedule.
    pub reproducible: bool,
    /// The root; 0 where the kind has none.
    pub root: u32,
    /// The parameters.
    pub params: Vec<Param>,
    /// The `#[schedule(..)]` attributes, in order.
    pub schedules: Vec<ScheduleOptions>,
    /// The places of the sizes, by [`Size`]; the name's place where the attribute does not give the size.
    pub size_locs: [Loc; 3],
}

/// A named number that the program depends on: `params(k = 2..=4)`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Param {
    /// Its name.
    pub name: String,
    /// The values that are proved at every build, in the order listed; never empty. The first is the default.
    pub values: Vec<i64>,
    /// The value it has.
    pub value: i64,
}

/// A size that the attribute gives as an expression. Each may depend on those before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Size {
    /// `nodes = ..`; 1 by default.
    Nodes,
    /// `chunks = ..`; 1 by default.
    Chunks,
    /// `scratch = ..`; 0 by default.
    Scratch,
}

impl Size {
    /// Every size, in the order of their computation.
    pub const ALL: [Size; 3] = [Size::Nodes, Size::Chunks, Size::Scratch];

    /// The name of the option.
    pub fn name(self) -> &'static str {
        match self {
            Size::Nodes => "nodes",
            Size::Chunks => "chunks",
            Size::Scratch => "scratch",
        }
    }
}

/// A variable of the text; a shadowed one and its successor are two.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct BodyVariable {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: Type,
    /// Its first slot.
    pub slot: u32,
}

/// A fn, which runs in a frame of its own.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct BodyFn {
    /// Its name.
    pub name: String,
    /// The types of the parameters, which take the first slots.
    pub parameters: Vec<Type>,
    /// The type of its value.
    pub result: Type,
    /// Slots of the frame.
    pub frame: u32,
    /// Its statements and value.
    pub block: StmtBlock,
}

/// Statements, then perhaps a value.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct StmtBlock {
    /// The statements, in order.
    pub statements: Vec<Stmt>,
    /// The block's value with its place; `()` where there is none.
    pub value: Option<(Loc, Expr)>,
}

/// A statement.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Stmt {
    /// The place that errors underline: all of it with its semicolon; of a loop only the head.
    pub loc: Loc,
    /// Its attributes, which hold for everything inside.
    pub attributes: Option<Box<StmtAttributes>>,
    /// The action.
    pub kind: StmtKind,
}

/// The attributes of a statement or block.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct StmtAttributes {
    /// `#[on(..)]`.
    pub on: Option<Expr>,
    /// `#[channel(..)]`.
    pub channel: Option<Expr>,
    /// `#[block(..)]`.
    pub block: Option<Expr>,
    /// `#[schedule(..)]` and `#[multimem]`.
    pub how: StatementOptions,
}

/// The action of a statement.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum StmtKind {
    /// Stores a value: `let`, or an expression whose value is dropped.
    Set {
        /// The first slot of the value.
        slot: u32,
        /// The value.
        value: Expr,
    },
    /// `part = value`.
    Assign {
        /// The variable's part.
        part: VariablePart,
        /// The value.
        value: Expr,
    },
    /// `part op= value` on an integer.
    Update {
        /// The variable's part.
        part: VariablePart,
        /// The operator.
        op: BinaryOp,
        /// The right operand.
        value: Expr,
        /// The integer's type.
        ty: IntType,
    },
    /// `(p, q) = value`: the value goes to the slots from `temp`, then its items to the parts.
    Scatter {
        /// The first slot of the value.
        temp: u32,
        /// The value.
        value: Expr,
        /// The parts, each with the offset of its item in the value.
        parts: Vec<(u32, VariablePart)>,
    },
    /// `for x in range { .. }` or `for x in array { .. }`.
    For {
        /// The variable's slot.
        slot: u32,
        /// The number of its name in [`Body::loops`].
        name: u32,
        /// The values of the variable.
        over: LoopValues,
        /// The loop's block.
        body: StmtBlock,
    },
    /// `while condition { .. }`.
    While {
        /// The number of the name `while` in [`Body::loops`].
        name: u32,
        /// The condition.
        condition: Expr,
        /// The loop's block.
        body: StmtBlock,
    },
    /// `assert!(condition, "message")`.
    Assert {
        /// The condition.
        condition: Expr,
        /// The condition's place.
        condition_loc: Loc,
        /// The message, in pieces.
        message: Vec<MessagePiece>,
    },
    /// `dest = source` or `dest += source` on chunks.
    Move(Box<MoveStmt>),
    /// `(p, q) = (e, f)` on chunks: all are read before any is stored.
    Together(Vec<MoveStmt>),
    /// `expect!(dest == source)`.
    Expect(Box<MoveStmt>),
    /// `unspecified!(dest)`.
    Unspecified(Box<ChunksExpr>),
}

/// A piece of an `assert!`'s message.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum MessagePiece {
    /// Plain text.
    Text(String),
    /// `{name}`: a value with its type.
    Value(Expr, Type),
}

/// The values that a `for` runs over.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum LoopValues {
    /// The numbers of a range.
    Range(ForRange),
    /// The items of an array, in its order. The array is evaluated once, before the first iteration.
    Items {
        /// The array.
        value: Expr,
        /// The first of the slots that it is put to.
        at: u32,
        /// Its items.
        len: u32,
        /// Slots of an item.
        size: u32,
    },
}

/// The values of a `for`: `(start..end)`, then the adaptors in order.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ForRange {
    /// The first value.
    pub start: Expr,
    /// The end.
    pub end: Expr,
    /// `..=`: the end belongs to the range.
    pub inclusive: bool,
    /// The adaptors, in the order of the text.
    pub adaptors: Vec<RangeAdaptor>,
}

/// A method of a range.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum RangeAdaptor {
    /// `.rev()`.
    Rev,
    /// `.step_by(n)`.
    StepBy(Expr),
}

/// A statement that moves data.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MoveStmt {
    /// The left side.
    pub dest: ChunksExpr,
    /// `+=`: the destination is the first operand.
    pub accumulate: bool,
    /// The right side.
    pub source: MoveSource,
}

/// The right side of a statement that moves data.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum MoveSource {
    /// One operand, or several combined in order. Those of several ranks go pairwise with the destination's.
    Sum(Vec<ChunksExpr>),
    /// One operand of several ranks, combined over them.
    Reduce(ChunksExpr),
}

/// `buffer[ranks][start..end]`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ChunksExpr {
    /// The buffer.
    pub buffer: Buffer,
    /// The ranks whose buffer it is.
    pub ranks: RanksExpr,
    /// The first chunk.
    pub start: Expr,
    /// The end of a range of chunks, and true if it belongs to the range; one chunk where there is none.
    pub end: Option<(Expr, bool)>,
}

/// The ranks of an operand.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum RanksExpr {
    /// One rank.
    One(Expr),
    /// `[..]`: every rank.
    All,
    /// `[a..b]`: the ranks of a range.
    Range {
        /// The first rank; 0 if the text has none.
        start: Option<Expr>,
        /// The end, true if it belongs to the range; `RANKS` if the text has none.
        end: Option<(Expr, bool)>,
    },
    /// The ranks of an array, in its order.
    Group {
        /// The array.
        value: Expr,
        /// The first of the slots that it is put to.
        at: u32,
        /// Its items.
        len: u32,
    },
}
