//! Which registers an instruction reads and writes.

use crate::ast::Ty;
use crate::isa::{
    Address, Async, Collective, Function, Inst, Layout, Mbarrier, MbarrierKind, MultimemKind, NEVER, Op,
    PredOperand,
};
use crate::regs::{Bank, NO_REG, Reg};

/// Registers of an instruction, as numbers over all banks of its function.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Operands {
    list: [u32; 16],
    reads: usize,
    /// Those written stand at the end.
    writes: usize,
    /// Not all are known: it reads whatever is on its way.
    pub(super) all: bool,
}

impl Operands {
    pub(super) fn reads(&self) -> &[u32] {
        &self.list[..self.reads]
    }

    pub(super) fn writes(&self) -> &[u32] {
        &self.list[self.list.len() - self.writes..]
    }

    fn read(&mut self, number: u32) {
        if number != NEVER {
            self.list[self.reads] = number;
            self.reads += 1;
        }
    }

    fn write(&mut self, number: u32) {
        if number != NEVER {
            self.writes += 1;
            self.list[self.list.len() - self.writes] = number;
        }
    }
}

/// Registers of a function.
pub(super) fn count(layout: &Layout) -> usize {
    layout.b16 + layout.b32 + layout.b64 + layout.pred
}

/// The number of a register.
pub(super) fn number(layout: &Layout, bank: Bank, reg: Reg) -> u32 {
    if reg == NO_REG {
        return NEVER;
    }
    let before = match bank {
        Bank::B16 => 0,
        Bank::B32 => layout.b16,
        Bank::B64 => layout.b16 + layout.b32,
    };
    (before + usize::from(reg)) as u32
}

fn pred(layout: &Layout, reg: Reg) -> u32 {
    if reg == NO_REG { NEVER } else { (layout.b16 + layout.b32 + layout.b64 + usize::from(reg)) as u32 }
}

/// What an instruction on an mbarrier writes: a predicate, or a state.
pub(super) fn of_mbarrier(layout: &Layout, m: &Mbarrier) -> u32 {
    match m.kind {
        MbarrierKind::Wait { .. } => pred(layout, m.d),
        _ => number(layout, Bank::B64, m.d),
    }
}

/// What an instruction reads and writes. Loads write later: their destinations are left out.
pub(super) fn operands(function: &Function, inst: &Inst) -> Operands {
    let layout = &function.layout;
    let mut found = Operands::default();
    let reg = |bank, reg| number(layout, bank, reg);
    let flag = |p: PredOperand| pred(layout, p.reg);
    let base = |a: Address| reg(if a.wide { Bank::B64 } else { Bank::B32 }, a.base);
    let of = |ty: Ty| Bank::of_bytes(ty.bytes()).unwrap_or(Bank::B32);
    found.read(flag(inst.guard));
    match inst.op {
        Op::Unary(kind, [d, a]) => {
            let (to, [from]) = kind.banks();
            found.read(reg(from, a));
            found.write(reg(to, d));
        }
        Op::Binary(kind, [d, a, b]) => {
            let (to, from) = kind.banks();
            [a, b].into_iter().zip(from).for_each(|(r, bank)| found.read(reg(bank, r)));
            found.write(reg(to, d));
        }
        Op::Ternary(kind, [d, a, b, c]) => {
            let (to, from) = kind.banks();
            [a, b, c].into_iter().zip(from).for_each(|(r, bank)| found.read(reg(bank, r)));
            found.write(reg(to, d));
        }
        Op::Lop3([d, sources @ ..], _) => {
            sources.into_iter().for_each(|r| found.read(reg(Bank::B32, r)));
            found.write(reg(Bank::B32, d));
        }
        Op::Bfi { wide, ops: [d, a, b, position, length] } => {
            let bank = if wide { Bank::B64 } else { Bank::B32 };
            [a, b].into_iter().for_each(|r| found.read(reg(bank, r)));
            [position, length].into_iter().for_each(|r| found.read(reg(Bank::B32, r)));
            found.write(reg(bank, d));
        }
        Op::Setp { ty, d, q, a, b, logic, .. } => {
            [a, b].into_iter().for_each(|r| found.read(reg(of(ty), r)));
            if let Some((_, c)) = logic {
                found.read(flag(c));
            }
            [d, q].into_iter().for_each(|p| found.write(pred(layout, p)));
        }
        Op::Selp { bank, d, a, b, p } => {
            [a, b].into_iter().for_each(|r| found.read(reg(bank, r)));
            found.read(flag(p));
            found.write(reg(bank, d));
        }
        Op::PredLogic(_, d, a, b) => {
            [a, b].into_iter().for_each(|p| found.read(flag(p)));
            found.write(pred(layout, d));
        }
        Op::PredMov(d, a) => {
            found.read(flag(a));
            found.write(pred(layout, d));
        }
        Op::Convert(c, d, a) => {
            found.read(reg(c.from_bank, a));
            found.write(reg(c.to_bank, d));
        }
        Op::ConvertPair(_, d, high, low) => {
            [high, low].into_iter().for_each(|r| found.read(reg(Bank::B32, r)));
            found.write(reg(Bank::B32, d));
        }
        Op::Float(op, [d, sources @ ..]) => {
            let sources = sources.into_iter().take(op.sources.into());
            sources.for_each(|r| found.read(reg(op.bank, r)));
            found.write(reg(op.bank, d));
        }
        Op::Load(_, address, _) => found.read(base(address)),
        Op::Store(access, address, sources) => {
            found.read(base(address));
            let sources = sources.into_iter().take(access.count.into());
            sources.for_each(|r| found.read(reg(access.bank, r)));
        }
        Op::Atom(_, access, address, _, sources) => {
            found.read(base(address));
            sources.into_iter().for_each(|r| found.read(reg(access.bank, r)));
        }
        Op::AtomVector(n) => {
            let atom = &function.atoms[n as usize];
            found.read(base(atom.address));
            atom.b.into_iter().chain(atom.c).for_each(|r| found.read(reg(atom.access.bank, r)));
        }
        Op::Multimem(n) => {
            let m = &function.multimems[n as usize];
            found.read(base(m.address));
            if m.kind != MultimemKind::LoadReduce {
                m.regs.into_iter().for_each(|r| found.read(reg(m.access.bank, r)));
            }
        }
        Op::Mbarrier(n) => {
            let m = &function.mbarriers[n as usize];
            found.read(base(m.address));
            let state = matches!(m.kind, MbarrierKind::Wait { parity: false });
            found.read(reg(if state { Bank::B64 } else { Bank::B32 }, m.a));
            found.write(of_mbarrier(layout, m));
        }
        Op::Async(n) => match function.asyncs[n as usize] {
            Async::Copy { to, from, size, read, ignore, mbarrier, .. } => {
                [to, from].into_iter().chain(mbarrier).for_each(|(_, address)| found.read(base(address)));
                [size, read].into_iter().for_each(|r| found.read(reg(Bank::B32, r)));
                found.read(flag(ignore));
            }
            Async::Arrive { mbarrier: (_, address), .. } => found.read(base(address)),
            Async::Commit { .. } | Async::Wait { .. } => {}
        },
        Op::Nanosleep(r) | Op::BranchIndexed(r, _) => found.read(reg(Bank::B32, r)),
        Op::Collective(Collective::Shfl { d, p, a, b, c, .. }, _) => {
            [a, b, c].into_iter().for_each(|r| found.read(reg(Bank::B32, r)));
            found.write(reg(Bank::B32, d));
            found.write(pred(layout, p));
        }
        Op::Barrier(barrier) => found.read(flag(barrier.a)),
        Op::Branch(_)
        | Op::Exit
        | Op::Trap
        | Op::Nop
        | Op::PredConst(..)
        | Op::ActiveMask(_)
        | Op::Clock { .. }
        | Op::Fence { .. }
        | Op::ProxyFence(_) => {}
        // Calls and returns hand over what parameters were given, and the rest is rare.
        _ => found.all = true,
    }
    found
}
