//! The registers that an instruction reads and writes, and the one way to put others in their places.
//!
//! Both are one function, `map`: it tells of every register of an instruction and takes what stands in its place. The
//! result is of another type than the instruction, so that no register can be left out of one and not of the other.

use crate::arithmetic::types::Ty;
use crate::isa::{
    Address, Async, AsyncCopy, AtomVector, Barrier, BarrierMode, Carry, Inst, Mbarrier, MbarrierKind,
    Multimem, MultimemKind, PredOperand, PtxFunction, PtxOp, VoteMode, WarpCollective,
};
use crate::registers::{Bank, Index};

/// Registers of one kind: a bank, or the predicates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RegisterFile {
    B16,
    B32,
    B64,
    Pred,
}

impl RegisterFile {
    pub(crate) const ALL: [RegisterFile; 4] =
        [RegisterFile::B16, RegisterFile::B32, RegisterFile::B64, RegisterFile::Pred];
}

impl From<Bank> for RegisterFile {
    fn from(bank: Bank) -> RegisterFile {
        match bank {
            Bank::B16 => RegisterFile::B16,
            Bank::B32 => RegisterFile::B32,
            Bank::B64 => RegisterFile::B64,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    Read,
    /// In the lanes that execute the instruction, and in all of those.
    Write,
}

use Use::{Read, Write};

/// The bank of the operands of a `setp`.
pub(crate) fn compared(ty: Ty) -> Bank {
    match ty {
        Ty::U16 | Ty::S16 | Ty::F16 | Ty::Bf16 => Bank::B16,
        Ty::U64 | Ty::S64 | Ty::F64 => Bank::B64,
        _ => Bank::B32,
    }
}

fn words(wide: bool) -> Bank {
    if wide { Bank::B64 } else { Bank::B32 }
}

fn one<R: Index, S: Index>(
    f: &mut impl FnMut(RegisterFile, Use, R) -> S,
    usage: Use,
    file: impl Into<RegisterFile>,
    r: R,
) -> S {
    if r == R::NONE { S::NONE } else { f(file.into(), usage, r) }
}

fn each<R: Index, S: Index, const N: usize>(
    f: &mut impl FnMut(RegisterFile, Use, R) -> S,
    usage: Use,
    bank: Bank,
    regs: [R; N],
) -> [S; N] {
    regs.map(|r| one(f, usage, bank, r))
}

/// The first `count` of the registers; the others are none.
fn first<R: Index, S: Index, const N: usize>(
    f: &mut impl FnMut(RegisterFile, Use, R) -> S,
    usage: Use,
    bank: Bank,
    regs: [R; N],
    count: u8,
) -> [S; N] {
    std::array::from_fn(|i| if i < count.into() { one(f, usage, bank, regs[i]) } else { S::NONE })
}

fn flag<R: Index, S: Index>(
    f: &mut impl FnMut(RegisterFile, Use, R) -> S,
    p: PredOperand<R>,
) -> PredOperand<S> {
    PredOperand { reg: one(f, Read, RegisterFile::Pred, p.reg), negated: p.negated }
}

fn address<R: Index, S: Index>(f: &mut impl FnMut(RegisterFile, Use, R) -> S, a: Address<R>) -> Address<S> {
    Address { base: one(f, Read, words(a.wide), a.base), wide: a.wide, offset: a.offset }
}

impl<R: Index> PtxOp<R> {
    /// The operation with other registers. Those of instructions in the function's lists are not among them.
    pub(crate) fn map<S: Index>(self, f: &mut impl FnMut(RegisterFile, Use, R) -> S) -> PtxOp<S> {
        match self {
            PtxOp::Unary(kind, [d, a]) => {
                let (to, [from]) = kind.banks();
                let a = one(f, Read, from, a);
                PtxOp::Unary(kind, [one(f, Write, to, d), a])
            }
            PtxOp::Binary(kind, [d, a, b]) => {
                let (to, from) = kind.banks();
                let [a, b] = [(a, from[0]), (b, from[1])].map(|(r, bank)| one(f, Read, bank, r));
                PtxOp::Binary(kind, [one(f, Write, to, d), a, b])
            }
            PtxOp::Ternary(kind, [d, a, b, c]) => {
                let (to, from) = kind.banks();
                let sources = [(a, from[0]), (b, from[1]), (c, from[2])];
                let [a, b, c] = sources.map(|(r, bank)| one(f, Read, bank, r));
                PtxOp::Ternary(kind, [one(f, Write, to, d), a, b, c])
            }
            PtxOp::Lop3([d, a, b, c], table) => {
                let [a, b, c] = each(f, Read, Bank::B32, [a, b, c]);
                PtxOp::Lop3([one(f, Write, Bank::B32, d), a, b, c], table)
            }
            PtxOp::Bfi { wide, ops: [d, a, b, position, length] } => {
                let [a, b] = each(f, Read, words(wide), [a, b]);
                let [position, length] = each(f, Read, Bank::B32, [position, length]);
                PtxOp::Bfi { wide, ops: [one(f, Write, words(wide), d), a, b, position, length] }
            }
            PtxOp::Setp { cmp, ty, d, q, a, b, logic } => {
                let [a, b] = each(f, Read, compared(ty), [a, b]);
                let logic = logic.map(|(logic, c)| (logic, flag(f, c)));
                let [d, q] = [d, q].map(|p| one(f, Write, RegisterFile::Pred, p));
                PtxOp::Setp { cmp, ty, d, q, a, b, logic }
            }
            PtxOp::Selp { bank, d, a, b, p } => {
                let [a, b] = each(f, Read, bank, [a, b]);
                let p = flag(f, p);
                PtxOp::Selp { bank, d: one(f, Write, bank, d), a, b, p }
            }
            PtxOp::PredLogic(logic, d, a, b) => {
                let [a, b] = [a, b].map(|p| flag(f, p));
                PtxOp::PredLogic(logic, one(f, Write, RegisterFile::Pred, d), a, b)
            }
            PtxOp::PredMov(d, a) => {
                let a = flag(f, a);
                PtxOp::PredMov(one(f, Write, RegisterFile::Pred, d), a)
            }
            PtxOp::PredConst(d, value) => PtxOp::PredConst(one(f, Write, RegisterFile::Pred, d), value),
            PtxOp::Convert(c, d, a) => {
                let a = one(f, Read, c.from_bank, a);
                PtxOp::Convert(c, one(f, Write, c.to_bank, d), a)
            }
            PtxOp::ConvertPair(c, d, high, low) => {
                let [high, low] = each(f, Read, Bank::B32, [high, low]);
                PtxOp::ConvertPair(c, one(f, Write, c.to_bank, d), high, low)
            }
            PtxOp::ConvertEach(c, d, a) => {
                let a = one(f, Read, c.from_bank, a);
                PtxOp::ConvertEach(c, one(f, Write, c.to_bank, d), a)
            }
            PtxOp::Float(op, [d, a, b, c]) => {
                let [a, b, c] = first(f, Read, op.bank, [a, b, c], op.sources);
                PtxOp::Float(op, [one(f, Write, op.bank, d), a, b, c])
            }
            PtxOp::Carry(op, [d, a, b, c]) => {
                let bank = words(op.wide);
                let [a, b, c] = each(f, Read, bank, [a, b, c]);
                let mut carry = S::NONE;
                if op.reads {
                    carry = one(f, Read, RegisterFile::Pred, op.carry);
                }
                if op.writes {
                    carry = one(f, Write, RegisterFile::Pred, op.carry);
                }
                let Carry { kind, wide, signed, reads, writes, .. } = op;
                let op = Carry { kind, wide, signed, reads, writes, carry };
                PtxOp::Carry(op, [one(f, Write, bank, d), a, b, c])
            }
            PtxOp::Test { kind, wide, d, a } => {
                let a = one(f, Read, words(wide), a);
                PtxOp::Test { kind, wide, d: one(f, Write, RegisterFile::Pred, d), a }
            }
            PtxOp::Load(access, at, to) => {
                let at = address(f, at);
                PtxOp::Load(access, at, first(f, Write, access.bank, to, access.count))
            }
            PtxOp::Store(access, at, from) => {
                let at = address(f, at);
                PtxOp::Store(access, at, first(f, Read, access.bank, from, access.count))
            }
            PtxOp::Atom(op, access, at, d, sources) => {
                let at = address(f, at);
                let sources = each(f, Read, access.bank, sources);
                PtxOp::Atom(op, access, at, one(f, Write, access.bank, d), sources)
            }
            PtxOp::AtomVector(n) => PtxOp::AtomVector(n),
            PtxOp::Multimem(n) => PtxOp::Multimem(n),
            PtxOp::Mbarrier(n) => PtxOp::Mbarrier(n),
            PtxOp::Async(n) => PtxOp::Async(n),
            PtxOp::Branch(target) => PtxOp::Branch(target),
            PtxOp::BranchIndexed(index, table) => PtxOp::BranchIndexed(one(f, Read, Bank::B32, index), table),
            PtxOp::Call(n) => PtxOp::Call(n),
            PtxOp::Ret => PtxOp::Ret,
            PtxOp::Exit => PtxOp::Exit,
            PtxOp::Trap => PtxOp::Trap,
            PtxOp::Collective(collective, members) => {
                let members = one(f, Read, Bank::B32, members);
                PtxOp::Collective(collective.map(f), members)
            }
            PtxOp::Barrier(Barrier { mode, aligned, id, count, d, a }) => {
                let [id, count] = each(f, Read, Bank::B32, [id, count]);
                let a = flag(f, a);
                let file = if mode == BarrierMode::Popc { RegisterFile::B32 } else { RegisterFile::Pred };
                PtxOp::Barrier(Barrier { mode, aligned, id, count, d: one(f, Write, file, d), a })
            }
            PtxOp::ActiveMask(d) => PtxOp::ActiveMask(one(f, Write, Bank::B32, d)),
            PtxOp::Clock { what, wide, d } => PtxOp::Clock { what, wide, d: one(f, Write, words(wide), d) },
            PtxOp::Fence { order, scope } => PtxOp::Fence { order, scope },
            PtxOp::ProxyFence(kind) => PtxOp::ProxyFence(kind),
            PtxOp::MbarrierInitFence => PtxOp::MbarrierInitFence,
            PtxOp::ClusterRank(rank) => PtxOp::ClusterRank(one(f, Read, Bank::B32, rank)),
            PtxOp::Preset(bank, d, n) => PtxOp::Preset(bank, one(f, Write, bank, d), n),
            PtxOp::Nop => PtxOp::Nop,
            PtxOp::Nanosleep(time) => PtxOp::Nanosleep(one(f, Read, Bank::B32, time)),
        }
    }
}

impl<R: Index> WarpCollective<R> {
    fn map<S: Index>(self, f: &mut impl FnMut(RegisterFile, Use, R) -> S) -> WarpCollective<S> {
        match self {
            WarpCollective::Shfl { mode, d, p, a, b, c } => {
                let [a, b, c] = each(f, Read, Bank::B32, [a, b, c]);
                let (d, p) = (one(f, Write, Bank::B32, d), one(f, Write, RegisterFile::Pred, p));
                WarpCollective::Shfl { mode, d, p, a, b, c }
            }
            WarpCollective::Vote { mode, d, a } => {
                let a = flag(f, a);
                let file = if mode == VoteMode::Ballot { RegisterFile::B32 } else { RegisterFile::Pred };
                WarpCollective::Vote { mode, d: one(f, Write, file, d), a }
            }
            WarpCollective::Match { all, wide, d, p, a } => {
                let a = one(f, Read, words(wide), a);
                // Without `all` the predicate stays as it is.
                let flags = if all { Write } else { Read };
                let (d, p) = (one(f, Write, Bank::B32, d), one(f, flags, RegisterFile::Pred, p));
                WarpCollective::Match { all, wide, d, p, a }
            }
            WarpCollective::Redux { op, signed, d, a } => {
                let a = one(f, Read, Bank::B32, a);
                WarpCollective::Redux { op, signed, d: one(f, Write, Bank::B32, d), a }
            }
            WarpCollective::Elect { d, p } => WarpCollective::Elect {
                d: one(f, Write, Bank::B32, d),
                p: one(f, Write, RegisterFile::Pred, p),
            },
            WarpCollective::Sync => WarpCollective::Sync,
        }
    }
}

impl<R: Index> AtomVector<R> {
    pub(crate) fn map<S: Index>(self, f: &mut impl FnMut(RegisterFile, Use, R) -> S) -> AtomVector<S> {
        let AtomVector { op, access, address: at, d, b, c } = self;
        let at = address(f, at);
        let [b, c] = [b, c].map(|regs| each(f, Read, access.bank, regs));
        AtomVector { op, access, address: at, d: each(f, Write, access.bank, d), b, c }
    }
}

impl<R: Index> Multimem<R> {
    pub(crate) fn map<S: Index>(self, f: &mut impl FnMut(RegisterFile, Use, R) -> S) -> Multimem<S> {
        let Multimem { kind, op, access, sums, address: at, regs } = self;
        let usage = if kind == MultimemKind::LoadReduce { Write } else { Read };
        let at = address(f, at);
        let regs = first(f, usage, access.bank, regs, access.count);
        Multimem { kind, op, access, sums, address: at, regs }
    }
}

impl<R: Index> Mbarrier<R> {
    pub(crate) fn map<S: Index>(self, f: &mut impl FnMut(RegisterFile, Use, R) -> S) -> Mbarrier<S> {
        let Mbarrier { kind, space, address: at, d, a, order, scope } = self;
        let state = matches!(kind, MbarrierKind::Wait { parity: false });
        let to =
            if matches!(kind, MbarrierKind::Wait { .. }) { RegisterFile::Pred } else { RegisterFile::B64 };
        let (at, a) = (address(f, at), one(f, Read, words(state), a));
        Mbarrier { kind, space, address: at, d: one(f, Write, to, d), a, order, scope }
    }
}

impl<R: Index> Async<R> {
    pub(crate) fn map<S: Index>(self, f: &mut impl FnMut(RegisterFile, Use, R) -> S) -> Async<S> {
        match self {
            Async::Copy(AsyncCopy { bulk, to, from, size, read, ignore, mbarrier }) => {
                Async::Copy(AsyncCopy {
                    bulk,
                    to: (to.0, address(f, to.1)),
                    from: (from.0, address(f, from.1)),
                    size: one(f, Read, Bank::B32, size),
                    read: one(f, Read, Bank::B32, read),
                    ignore: flag(f, ignore),
                    mbarrier: mbarrier.map(|(space, at)| (space, address(f, at))),
                })
            }
            Async::Commit { bulk } => Async::Commit { bulk },
            Async::Wait { bulk, read, pending } => Async::Wait { bulk, read, pending },
            Async::Arrive { mbarrier: (space, at), counted } => {
                Async::Arrive { mbarrier: (space, address(f, at)), counted }
            }
        }
    }
}

impl<R: Index> Inst<R> {
    /// The instruction with other registers, but for those in the function's lists.
    pub(crate) fn map<S: Index>(self, f: &mut impl FnMut(RegisterFile, Use, R) -> S) -> Inst<S> {
        let Inst { op, guard, meet, line, loc, class, weight } = self;
        let guard = flag(f, guard);
        Inst { op: op.map(f), guard, meet, line, loc, class, weight }
    }
}

impl<R: Index> PtxFunction<R> {
    /// Tells of every register of an instruction, including those in the function's lists.
    pub(crate) fn uses(&self, inst: &Inst<R>, mut tell: impl FnMut(RegisterFile, Use, R)) {
        let mut f = |file, usage, r| {
            tell(file, usage, r);
            r
        };
        match inst.map(&mut f).op {
            PtxOp::AtomVector(n) => drop(self.atoms[n as usize].map(&mut f)),
            PtxOp::Multimem(n) => drop(self.multimems[n as usize].map(&mut f)),
            PtxOp::Mbarrier(n) => drop(self.mbarriers[n as usize].map(&mut f)),
            PtxOp::Async(n) => drop(self.asyncs[n as usize].map(&mut f)),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
