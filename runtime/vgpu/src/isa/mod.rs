//! Decoded instructions: register numbers resolved, types in the operation, immediates in constant registers.
//!
//! Registers are `Name`s until they share their places (`compact`), and `Reg`s then.
//!
//! Invariants, all made by the decoder: every register number is below its bank's size in `Layout` (or `NO_REG` where
//! the field admits it), every target is below the code's length, every table index exists.

mod addresses;
mod class;
mod function;
mod operands;

pub(crate) use addresses::{FRAME_PARAMS, LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW, WINDOW_SHIFT};
pub use class::InstructionClass;
pub(crate) use function::{CallSite, FunctionParam, LaneMask, Preset, PtxFunction, RegisterLayout};
pub(crate) use operands::{InstOperands, OperandLists};

use crate::arithmetic::float::Round;
use crate::arithmetic::float_ops::FloatOp;
use crate::arithmetic::tables::{BinaryOp, TernaryOp, UnaryOp};
use crate::arithmetic::types::Ty;
use crate::fault::{AccessKind, Space};
use crate::registers::{Bank, Index, Reg};

/// A program counter that no instruction has: paths that meet only at the end of the function.
pub(crate) const NEVER: u32 = u32::MAX;

/// The memory order of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemoryOrder {
    Weak,
    Relaxed,
    Acquire,
    Release,
    AcqRel,
    Volatile,
    Mmio,
    /// Of fences only.
    SeqCst,
}

/// The threads that see the order of an access; wider scopes are greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Scope {
    Cta,
    Gpu,
    Sys,
}

/// The properties of all memory instructions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemoryAccess {
    pub(crate) space: Space,
    pub(crate) ty: Ty,
    /// Elements of the vector: 1, 2, 4 or 8.
    pub(crate) count: u8,
    /// The elements are one value: they are accessed together, not as scalars in any order.
    pub(crate) whole: bool,
    pub(crate) order: MemoryOrder,
    pub(crate) scope: Scope,
    /// Bank of the registers on the other side.
    pub(crate) bank: Bank,
}

impl MemoryAccess {
    pub(crate) fn bytes(&self) -> u64 {
        self.ty.bytes() as u64 * u64::from(self.count)
    }
}

/// `[base + offset]`
#[derive(Clone, Copy, Debug)]
pub(crate) struct Address<R = Reg> {
    pub(crate) base: R,
    /// `base` is a 64-bit register, not a 32-bit one.
    pub(crate) wide: bool,
    pub(crate) offset: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cmp {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    Equ,
    Neu,
    Ltu,
    Leu,
    Gtu,
    Geu,
    Num,
    Nan,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Logic {
    And,
    Or,
    Xor,
}

impl Logic {
    #[inline(always)]
    pub(crate) fn apply(self, a: u32, b: u32) -> u32 {
        match self {
            Logic::And => a & b,
            Logic::Or => a | b,
            Logic::Xor => a ^ b,
        }
    }
}

/// A predicate as an operand: its register and whether it is negated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PredOperand<R = Reg> {
    pub(crate) reg: R,
    pub(crate) negated: bool,
}

/// Read-modify-write operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AtomOp {
    Add,
    Min,
    Max,
    And,
    Or,
    Xor,
    Inc,
    Dec,
    Exch,
    Cas,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShflMode {
    Up,
    Down,
    Bfly,
    Idx,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VoteMode {
    All,
    Any,
    Uni,
    Ballot,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReduxOp {
    Add,
    Min,
    Max,
    And,
    Or,
    Xor,
    FloatMin { abs: bool, nan: bool },
    FloatMax { abs: bool, nan: bool },
}

/// An operation of the lanes of a mask together.
#[derive(Clone, Copy, Debug)]
pub(crate) enum WarpCollective<R = Reg> {
    /// `p` may be `NO_REG`.
    Shfl {
        mode: ShflMode,
        d: R,
        p: R,
        a: R,
        b: R,
        c: R,
    },
    /// Destination is a predicate, for `Ballot` a 32-bit register.
    Vote {
        mode: VoteMode,
        d: R,
        a: PredOperand<R>,
    },
    /// `all` compares with every member and sets `p`; else every lane gets those with its value.
    Match {
        all: bool,
        wide: bool,
        d: R,
        p: R,
        a: R,
    },
    Redux {
        op: ReduxOp,
        signed: bool,
        d: R,
        a: R,
    },
    /// `d` may be `NO_REG`.
    Elect {
        d: R,
        p: R,
    },
    Sync,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BarrierMode {
    Sync,
    Arrive,
    Popc,
    And,
    Or,
}

/// A barrier instruction; `count` is `NO_REG` for all threads of the block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Barrier<R = Reg> {
    pub(crate) mode: BarrierMode,
    /// All threads of the warp take part at once.
    pub(crate) aligned: bool,
    pub(crate) id: R,
    pub(crate) count: R,
    /// Destination: a 32-bit register for `Popc`, a predicate for `And` and `Or`.
    pub(crate) d: R,
    pub(crate) a: PredOperand<R>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClockUnit {
    Cycles,
    Nanoseconds,
}

/// An atomic on a vector, or on 128 bits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AtomVector<R = Reg> {
    pub(crate) op: AtomOp,
    pub(crate) access: MemoryAccess,
    pub(crate) address: Address<R>,
    /// A register an element; 128 bits are two of them. `NO_REG` for `red`.
    pub(crate) d: [R; 8],
    pub(crate) b: [R; 8],
    pub(crate) c: [R; 8],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MultimemKind {
    LoadReduce,
    Store,
    Reduce,
}

impl MultimemKind {
    pub(crate) fn access(self) -> AccessKind {
        match self {
            MultimemKind::LoadReduce => AccessKind::Load,
            MultimemKind::Store => AccessKind::Store,
            MultimemKind::Reduce => AccessKind::Atomic,
        }
    }
}

/// A `multimem` instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Multimem<R = Reg> {
    pub(crate) kind: MultimemKind,
    /// Of `LoadReduce` and `Reduce`.
    pub(crate) op: AtomOp,
    pub(crate) access: MemoryAccess,
    /// The type that sums are kept in.
    pub(crate) sums: Ty,
    pub(crate) address: Address<R>,
    pub(crate) regs: [R; 8],
}

/// Low bits of a state: arrivals that were pending; the phase's number stands above.
pub(crate) const PENDING_BITS: u32 = 24;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MbarrierKind {
    Init,
    Inval,
    Arrive {
        /// The expected count of later phases falls, too.
        drop: bool,
        /// `a` is a number of bytes that are expected before the one arrival.
        expect: bool,
        no_complete: bool,
    },
    ExpectTx,
    CompleteTx,
    /// `a` is a state, or a parity.
    Wait {
        parity: bool,
    },
}

/// An instruction on an mbarrier.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mbarrier<R = Reg> {
    pub(crate) kind: MbarrierKind,
    pub(crate) space: Space,
    pub(crate) address: Address<R>,
    /// The state, or the predicate of a wait; may be `NO_REG`.
    pub(crate) d: R,
    /// Count, bytes, parity (32 bits) or state (64 bits); may be `NO_REG`.
    pub(crate) a: R,
    pub(crate) order: MemoryOrder,
    /// Of no effect: an mbarrier is of one block, which every scope includes.
    pub(crate) scope: Scope,
}

/// An asynchronous copy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AsyncCopy<R = Reg> {
    pub(crate) bulk: bool,
    pub(crate) to: (Space, Address<R>),
    pub(crate) from: (Space, Address<R>),
    /// Bytes, 32 bits.
    pub(crate) size: R,
    /// Bytes to read, the rest becomes zeros; may be `NO_REG`.
    pub(crate) read: R,
    /// Nothing is read where it holds; may be `NO_REG`.
    pub(crate) ignore: PredOperand<R>,
    /// The mbarrier that is told of the bytes.
    pub(crate) mbarrier: Option<(Space, Address<R>)>,
}

/// Asynchronous copies and what belongs to them. Bulk copies have groups of their own.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Async<R = Reg> {
    Copy(AsyncCopy<R>),
    Commit {
        bulk: bool,
    },
    /// Waits until at most `pending` of the thread's groups are not complete, or not read.
    Wait {
        bulk: bool,
        read: bool,
        pending: u64,
    },
    /// An arrival once all earlier copies of the thread (not the bulk ones) are complete.
    Arrive {
        mbarrier: (Space, Address<R>),
        /// The arrival is one of those that the phase expects anyway.
        counted: bool,
    },
}

/// The question of a `testp`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TestKind {
    Finite,
    Infinite,
    Number,
    NotANumber,
    /// Zeros are normal.
    Normal,
    Subnormal,
}

/// An instruction of a carry chain; the carry is a predicate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Carry<R = Reg> {
    pub(crate) kind: CarryKind,
    pub(crate) wide: bool,
    pub(crate) signed: bool,
    /// Reads the carry (a borrow, for differences).
    pub(crate) reads: bool,
    pub(crate) writes: bool,
    pub(crate) carry: R,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CarryKind {
    Add,
    Sub,
    MadLow,
    MadHigh,
}

/// The ways of accessing memory between which a proxy fence orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProxyKind {
    /// Different virtual addresses of one location.
    Alias,
    /// Generic and asynchronous accesses, of all memory.
    Async,
    AsyncGlobal,
    AsyncShared,
}

/// A conversion that has no entry in the table of unary instructions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Convert {
    pub(crate) from: Ty,
    pub(crate) to: Ty,
    /// Banks of the registers, which may be wider than the types.
    pub(crate) from_bank: Bank,
    pub(crate) to_bank: Bank,
    pub(crate) round: Round,
    /// A float result is rounded to an integer (`.rni` and its like).
    pub(crate) integral: bool,
    pub(crate) saturate: bool,
    /// `.satfinite`: overflow gives the largest finite value.
    pub(crate) finite: bool,
    pub(crate) relu: bool,
    pub(crate) flush: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum PtxOp<R = Reg> {
    Unary(UnaryOp, [R; 2]),
    Binary(BinaryOp, [R; 3]),
    Ternary(TernaryOp, [R; 4]),
    Lop3([R; 4], u8),
    /// d, a, b, position, length
    Bfi {
        wide: bool,
        ops: [R; 5],
    },
    /// `d = (a cmp b) logic c`, `q = !(a cmp b) logic c`; `q` may be `NO_REG`.
    Setp {
        cmp: Cmp,
        ty: Ty,
        d: R,
        q: R,
        a: R,
        b: R,
        logic: Option<(Logic, PredOperand<R>)>,
    },
    Selp {
        bank: Bank,
        d: R,
        a: R,
        b: R,
        p: PredOperand<R>,
    },
    PredLogic(Logic, R, PredOperand<R>, PredOperand<R>),
    /// Also `mov` and `not`.
    PredMov(R, PredOperand<R>),
    PredConst(R, bool),
    Convert(Convert, R, R),
    /// d = {a: high, b: low}, each from f32
    ConvertPair(Convert, R, R, R),
    /// The halves of d from those of a.
    ConvertEach(Convert, R, R),
    /// d, a, b, c
    Float(FloatOp, [R; 4]),
    Carry(Carry<R>, [R; 4]),
    Test {
        kind: TestKind,
        wide: bool,
        d: R,
        a: R,
    },
    Load(MemoryAccess, Address<R>, [R; 8]),
    Store(MemoryAccess, Address<R>, [R; 8]),
    /// `d` is `NO_REG` for `red`; operands b and c.
    Atom(AtomOp, MemoryAccess, Address<R>, R, [R; 2]),
    // Numbers in the function's lists of such instructions.
    AtomVector(u32),
    Multimem(u32),
    Mbarrier(u32),
    Async(u32),
    Branch(u32),
    /// Index register and number of the table.
    BranchIndexed(R, u32),
    Call(u32),
    Ret,
    Exit,
    Trap,
    Collective(WarpCollective<R>, R),
    Barrier(Barrier<R>),
    ActiveMask(R),
    Clock {
        what: ClockUnit,
        wide: bool,
        d: R,
    },
    Fence {
        order: MemoryOrder,
        scope: Scope,
    },
    ProxyFence(ProxyKind),
    /// Makes the initialization of mbarriers visible to the asynchronous proxy.
    MbarrierInitFence,
    /// The register must be 0, the number of the only block of a cluster.
    ClusterRank(R),
    /// Gives a register the value of a preset, by its number in the function's list of those that come late.
    Preset(Bank, R, u32),
    /// Hints.
    Nop,
    /// Nanoseconds.
    Nanosleep(R),
}

/// An instruction with what surrounds it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Inst<R = Reg> {
    pub(crate) op: PtxOp<R>,
    /// Predicate that must hold, or `NO_REG`.
    pub(crate) guard: PredOperand<R>,
    /// The program counter at which the paths of a branch meet again, or `NEVER`.
    pub(crate) meet: u32,
    /// Line of the PTX text.
    pub(crate) line: u32,
    /// Index into the function's lines, or `NEVER`.
    pub(crate) loc: u32,
    pub(crate) class: InstructionClass,
    /// 1 for the first step of a PTX instruction, 0 for further steps of the same.
    pub(crate) weight: u8,
}

impl<R: Index> Inst<R> {
    pub(crate) fn guarded(&self) -> bool {
        self.guard.reg != R::NONE
    }
}
