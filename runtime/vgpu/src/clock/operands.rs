//! Which registers an instruction waits for and gives values, as the text names them: that two share a place here makes
//! no warp wait.

use crate::front::isa::{
    Address, Async, AtomVector, Collective, Function, Inst, MbarrierKind, MultimemKind, NEVER, Op,
    PredOperand,
};
use crate::front::liveness::Numbering;
use crate::front::uses::{File, compared};
use crate::registers::{Bank, NO_NAME, Name};

use super::topology::Picoseconds;

/// The registers of an instruction, as numbers over all files of its function.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operands<'f> {
    pub(super) reads: &'f [u32],
    pub(super) writes: &'f [u32],
    /// Those that have their values once memory has given them.
    pub(super) loads: &'f [u32],
    /// Not all are known: it reads whatever is on its way.
    pub(super) all: bool,
}

/// The registers of all instructions of a function.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flight {
    list: Vec<u32>,
    insts: Vec<Entry>,
}

/// Where the registers of an instruction begin in the list, and how many there are of each kind.
#[derive(Clone, Copy, Debug)]
struct Entry {
    start: u32,
    reads: u8,
    writes: u8,
    loads: u8,
    all: bool,
}

impl Flight {
    pub(crate) fn new(function: &Function<Name>) -> Flight {
        let numbering = Numbering::new(function);
        let mut flight = Flight { list: Vec::new(), insts: Vec::with_capacity(function.code.len()) };
        for inst in &function.code {
            let found = operands(function, &numbering, inst);
            let (start, count) = (flight.list.len() as u32, |list: &[u32]| list.len() as u8);
            let [reads, writes, loads] = [&found.reads[..], &found.writes[..], &found.loads[..]];
            flight.insts.push(Entry {
                start,
                reads: count(reads),
                writes: count(writes),
                loads: count(loads),
                all: found.all,
            });
            [reads, writes, loads].into_iter().for_each(|list| flight.list.extend(list));
        }
        flight
    }

    pub(super) fn operands(&self, pc: u32) -> Operands<'_> {
        let Entry { start, reads, writes, loads, all } = self.insts[pc as usize];
        let (reads, rest) = self.list[start as usize..].split_at(reads.into());
        let (writes, rest) = rest.split_at(writes.into());
        Operands { reads, writes, loads: &rest[..loads.into()], all }
    }
}

/// When the registers of an activation that are on their way have their values.
#[derive(Clone, Debug, Default)]
pub(super) struct Ready {
    registers: Vec<(u32, Picoseconds)>,
}

impl Ready {
    /// When a register has its value; 0 if that is long ago.
    pub(super) fn of(&self, register: u32) -> Picoseconds {
        self.registers.iter().find(|(other, _)| *other == register).map_or(0, |(_, at)| *at)
    }

    /// A register has its value at `at`. The warp issues nothing before `next`: what is there then is forgotten.
    pub(super) fn set(&mut self, register: u32, at: Picoseconds, next: Picoseconds) {
        if let Some((_, ready)) = self.registers.iter_mut().find(|(other, _)| *other == register) {
            *ready = at;
            return;
        }
        if self.registers.len() == self.registers.capacity() {
            self.registers.retain(|(_, ready)| *ready > next);
        }
        self.registers.push((register, at));
    }
}

/// Registers of one instruction.
#[derive(Debug, Default)]
struct Found {
    reads: Vec<u32>,
    writes: Vec<u32>,
    loads: Vec<u32>,
    all: bool,
}

impl Found {
    fn read(&mut self, number: u32) {
        self.reads.extend((number != NEVER).then_some(number));
    }

    fn write(&mut self, number: u32) {
        self.writes.extend((number != NEVER).then_some(number));
    }

    fn load(&mut self, number: u32) {
        self.loads.extend((number != NEVER).then_some(number));
    }
}

/// What an instruction reads and writes. Loads write later: their destinations are left out.
fn operands(function: &Function<Name>, numbering: &Numbering, inst: &Inst<Name>) -> Found {
    let mut found = Found::default();
    let number = |file: File, name: Name| if name == NO_NAME { NEVER } else { numbering.of(file, name) };
    let reg = |bank: Bank, name: Name| number(bank.into(), name);
    let pred = |name: Name| number(File::Pred, name);
    let flag = |p: PredOperand<Name>| pred(p.reg);
    let base = |a: Address<Name>| reg(if a.wide { Bank::B64 } else { Bank::B32 }, a.base);
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
            [a, b].into_iter().for_each(|r| found.read(reg(compared(ty), r)));
            if let Some((_, c)) = logic {
                found.read(flag(c));
            }
            [d, q].into_iter().for_each(|p| found.write(pred(p)));
        }
        Op::Selp { bank, d, a, b, p } => {
            [a, b].into_iter().for_each(|r| found.read(reg(bank, r)));
            found.read(flag(p));
            found.write(reg(bank, d));
        }
        Op::PredLogic(_, d, a, b) => {
            [a, b].into_iter().for_each(|p| found.read(flag(p)));
            found.write(pred(d));
        }
        Op::PredMov(d, a) => {
            found.read(flag(a));
            found.write(pred(d));
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
        Op::Load(access, address, to) => {
            found.read(base(address));
            to.into_iter().take(access.count.into()).for_each(|r| found.load(reg(access.bank, r)));
        }
        Op::Store(access, address, sources) => {
            found.read(base(address));
            let sources = sources.into_iter().take(access.count.into());
            sources.for_each(|r| found.read(reg(access.bank, r)));
        }
        Op::Atom(_, access, address, d, sources) => {
            found.read(base(address));
            sources.into_iter().for_each(|r| found.read(reg(access.bank, r)));
            found.load(reg(access.bank, d));
        }
        Op::AtomVector(n) => {
            let AtomVector { access, address, d, b, c, .. } = function.atoms[n as usize];
            found.read(base(address));
            b.into_iter().chain(c).for_each(|r| found.read(reg(access.bank, r)));
            d.into_iter().for_each(|r| found.load(reg(access.bank, r)));
        }
        Op::Multimem(n) => {
            let m = &function.multimems[n as usize];
            found.read(base(m.address));
            for r in m.regs.into_iter().map(|r| reg(m.access.bank, r)) {
                if m.kind == MultimemKind::LoadReduce { found.load(r) } else { found.read(r) }
            }
        }
        Op::Mbarrier(n) => {
            let m = &function.mbarriers[n as usize];
            found.read(base(m.address));
            let state = matches!(m.kind, MbarrierKind::Wait { parity: false });
            found.read(reg(if state { Bank::B64 } else { Bank::B32 }, m.a));
            let waits = matches!(m.kind, MbarrierKind::Wait { .. });
            found.write(if waits { pred(m.d) } else { reg(Bank::B64, m.d) });
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
            found.write(pred(p));
        }
        Op::Barrier(barrier) => found.read(flag(barrier.a)),
        Op::Branch(_)
        | Op::Exit
        | Op::Trap
        | Op::Nop
        | Op::PredConst(..)
        | Op::ActiveMask(_)
        | Op::Clock { .. }
        | Op::Preset(..)
        | Op::Fence { .. }
        | Op::ProxyFence(_) => {}
        // Calls and returns hand over what parameters were given, and the rest is rare.
        _ => found.all = true,
    }
    found
}
