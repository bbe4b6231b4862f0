//! The syntax tree of a module: directives and instructions, names not yet resolved.

use crate::arithmetic::types::Ty;
use crate::fault::Space;

#[derive(Clone, Debug)]
pub(crate) enum AstOperand<'a> {
    /// Register, special register, variable, label, function.
    Name(&'a str),
    /// Name plus a constant: the address of a variable.
    NamePlus(&'a str, i64),
    Not(&'a str),
    Int(u64),
    F32(u32),
    F64(u64),
    /// `[base + offset]`; no base is an absolute address.
    Address(Option<&'a str>, i64),
    Vector(Vec<AstOperand<'a>>),
    /// `(a, b)` of a call.
    List(Vec<&'a str>),
    /// `d|p`
    Pair(&'a str, &'a str),
}

#[derive(Clone, Debug)]
pub(crate) struct AstStatement<'a> {
    pub(crate) line: u32,
    pub(crate) kind: AstStatementKind<'a>,
}

#[derive(Clone, Debug)]
pub(crate) enum AstStatementKind<'a> {
    Label(&'a str),
    /// Registers `name` (no count) or `name0 .. name(count-1)`.
    Reg {
        ty: Ty,
        name: &'a str,
        count: Option<u32>,
    },
    Var(Var<'a>),
    Open,
    Close,
    Loc {
        file: u32,
        at: u32,
        column: u32,
        inlined_at: Option<(u32, u32, u32)>,
    },
    /// `name: .branchtargets a, b;`
    Targets {
        name: &'a str,
        labels: Vec<&'a str>,
    },
    Inst(AstInst<'a>),
}

#[derive(Clone, Debug)]
pub(crate) struct AstInst<'a> {
    /// Predicate and whether it is negated.
    pub(crate) guard: Option<(&'a str, bool)>,
    /// The instruction with all qualifiers.
    pub(crate) op: &'a str,
    pub(crate) operands: Vec<AstOperand<'a>>,
}

/// A variable or parameter.
#[derive(Clone, Debug)]
pub(crate) struct Var<'a> {
    pub(crate) name: &'a str,
    pub(crate) line: u32,
    pub(crate) space: Space,
    pub(crate) ty: Ty,
    pub(crate) align: u32,
    /// Bytes in all; 0 for an unsized array.
    pub(crate) bytes: u64,
    pub(crate) is_extern: bool,
    pub(crate) init: Vec<Init<'a>>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Init<'a> {
    Bits(u64),
    /// Address of a variable plus an offset.
    Address(&'a str, i64),
}

#[derive(Clone, Debug)]
pub(crate) struct AstFunction<'a> {
    pub(crate) name: &'a str,
    pub(crate) line: u32,
    pub(crate) entry: bool,
    pub(crate) returns: Vec<Var<'a>>,
    pub(crate) params: Vec<Var<'a>>,
    /// `None` for a declaration.
    pub(crate) body: Option<Vec<AstStatement<'a>>>,
    /// Threads a block needs exactly (`.reqntid`) or may have at most (`.maxntid`).
    pub(crate) max_threads: Option<u32>,
}

#[derive(Debug, Default)]
pub(crate) struct AstModule<'a> {
    pub(crate) files: Vec<(u32, &'a str)>,
    pub(crate) vars: Vec<Var<'a>>,
    pub(crate) functions: Vec<AstFunction<'a>>,
}
