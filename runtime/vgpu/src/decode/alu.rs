//! Instructions that compute.

use super::{Decoder, Result, Symbol};
use crate::alu::{Binary, Ternary, Unary};
use crate::ast::{AstInst, Operand, Ty};
use crate::float::Round;
use crate::isa::{Clock, Cmp, Convert, Logic, Op, PredOperand};
use crate::regs::{Bank, NO_REG, Reg};

impl<'m, 'a> Decoder<'m, 'a> {
    /// Instructions of the tables, and logic of predicates.
    pub(super) fn arithmetic(&mut self, inst: &'m AstInst<'a>) -> Result<()> {
        if let Some(head) = inst.op.strip_suffix(".pred") {
            return self.pred_logic(inst, head);
        }
        let mut parts = inst.op.split('.');
        let mut name = parts.next().unwrap_or_default().to_string();
        let last = inst.op.rsplit('.').next().and_then(Ty::parse);
        let float = last.is_some_and(|ty| ty.float() || matches!(ty, Ty::F16x2 | Ty::Bf16x2));
        let (mut flush, mut saturate) = (false, false);
        for part in parts {
            match part {
                "rn" | "approx" | "full" if float => {}
                "ftz" if float => flush = true,
                "sat" if float => saturate = true,
                _ => {
                    name.push('.');
                    name.push_str(part);
                }
            }
        }
        // Only f32 flushes here: the packed forms keep subnormals.
        if (flush || saturate) && !matches!(last, Some(Ty::F32 | Ty::F64)) {
            return self.unsupported(inst, "`.ftz` and `.sat` are executed for f32 only");
        }
        let finish = |this: &mut Self, d: Reg| {
            if flush {
                this.push(Op::Unary(Unary::FlushF32, [d, d]));
            }
            if saturate {
                let step = if last == Some(Ty::F64) { Unary::SatF64 } else { Unary::SatF32 };
                this.push(Op::Unary(step, [d, d]));
            }
        };
        if let Some(kind) = Unary::parse(&name) {
            let (to, [a]) = kind.banks();
            self.count(inst, 2..=2)?;
            let d = self.dst(inst, 0, to)?;
            let a = self.source(inst, 1, a, flush)?;
            self.push(Op::Unary(kind, [d, a]));
            finish(self, d);
        } else if let Some(kind) = Binary::parse(&name) {
            let (to, [a, b]) = kind.banks();
            self.count(inst, 3..=3)?;
            let d = self.dst(inst, 0, to)?;
            let (a, b) = (self.source(inst, 1, a, flush)?, self.source(inst, 2, b, flush)?);
            self.push(Op::Binary(kind, [d, a, b]));
            finish(self, d);
        } else if let Some(kind) = Ternary::parse(&name) {
            let (to, [a, b, c]) = kind.banks();
            self.count(inst, 4..=4)?;
            let d = self.dst(inst, 0, to)?;
            let (a, b) = (self.source(inst, 1, a, flush)?, self.source(inst, 2, b, flush)?);
            let c = self.source(inst, 3, c, flush)?;
            self.push(Op::Ternary(kind, [d, a, b, c]));
            finish(self, d);
        } else {
            return self.unsupported(inst, "the machine has no such instruction, or not this form of it");
        }
        Ok(())
    }

    fn source(&mut self, inst: &'m AstInst<'a>, index: usize, bank: Bank, flush: bool) -> Result<Reg> {
        let reg = self.src(inst, index, bank)?;
        if !flush || bank != Bank::B32 {
            return Ok(reg);
        }
        let flushed = self.temp(bank)?;
        self.push(Op::Unary(Unary::FlushF32, [flushed, reg]));
        Ok(flushed)
    }

    fn pred_logic(&mut self, inst: &'m AstInst<'a>, head: &str) -> Result<()> {
        let d = self.pred_dst(inst, 0)?;
        let a = self.pred_src(inst, 1)?;
        let logic = match head {
            "and" => Logic::And,
            "or" => Logic::Or,
            "xor" => Logic::Xor,
            "not" => {
                self.count(inst, 2..=2)?;
                self.push(Op::PredMov(d, PredOperand { negated: !a.negated, ..a }));
                return Ok(());
            }
            _ => return self.unsupported(inst, "the machine has no such instruction on predicates"),
        };
        self.count(inst, 3..=3)?;
        let b = self.pred_src(inst, 2)?;
        self.push(Op::PredLogic(logic, d, a, b));
        Ok(())
    }

    fn ty(&self, inst: &AstInst<'_>, name: &str) -> Result<Ty> {
        match Ty::parse(name) {
            Some(Ty::B128) | None => self.unsupported(inst, "its type is not supported"),
            Some(ty) => Ok(ty),
        }
    }

    fn last_ty(&self, inst: &AstInst<'_>) -> Result<Ty> {
        self.ty(inst, inst.op.rsplit('.').next().unwrap_or_default())
    }

    fn bank(&self, inst: &AstInst<'_>, ty: Ty) -> Result<Bank> {
        match Bank::of_bytes(ty.bytes()) {
            Some(bank) if ty.bytes() > 1 => Ok(bank),
            _ => self.unsupported(inst, "its type is not supported"),
        }
    }

    pub(super) fn mov(&mut self, inst: &'m AstInst<'a>) -> Result<()> {
        self.count(inst, 2..=2)?;
        let ty = self.last_ty(inst)?;
        if ty == Ty::Pred {
            let d = self.pred_dst(inst, 0)?;
            let a = self.pred_src(inst, 1)?;
            self.push(Op::PredMov(d, a));
            return Ok(());
        }
        let bank = self.bank(inst, ty)?;
        match (self.operand(inst, 0)?, self.operand(inst, 1)?) {
            (Operand::Vector(parts), _) => {
                let a = self.src(inst, 1, bank)?;
                return self.unpack(inst, parts, a, bank);
            }
            (_, Operand::Vector(parts)) => {
                let d = self.dst(inst, 0, bank)?;
                return self.pack(inst, parts, d, bank);
            }
            (_, Operand::Name(name)) => {
                let clock = match *name {
                    "%clock" | "%clock64" => Some(Clock::Cycles),
                    "%globaltimer" | "%globaltimer_lo" => Some(Clock::Nanoseconds),
                    _ => None,
                };
                if let Some(what) = clock {
                    let d = self.dst(inst, 0, bank)?;
                    self.push(Op::Clock { what, wide: bank == Bank::B64, d });
                    return Ok(());
                }
                if let Some(("%clock_hi" | "%globaltimer_hi", _)) = Some((*name, ())) {
                    return self.unsupported(inst, "read the 64-bit register instead");
                }
            }
            _ => {}
        }
        let kind = match bank {
            Bank::B16 => Unary::Mov16,
            Bank::B32 => Unary::Mov32,
            Bank::B64 => Unary::Mov64,
        };
        let d = self.dst(inst, 0, bank)?;
        let a = self.src(inst, 1, bank)?;
        self.push(Op::Unary(kind, [d, a]));
        Ok(())
    }

    fn unpack(&mut self, inst: &'m AstInst<'a>, parts: &'m [Operand<'a>], a: Reg, bank: Bank) -> Result<()> {
        let d = |this: &mut Self, i: usize, bank| this.destination(inst, 0, &parts[i], bank);
        match (bank, parts.len()) {
            (Bank::B32, 2) => {
                let (low, high) = (d(self, 0, Bank::B16)?, d(self, 1, Bank::B16)?);
                self.push(Op::Unary(Unary::U32ToU16, [low, a]));
                self.push(Op::Unary(Unary::High16, [high, a]));
            }
            (Bank::B64, 2) => {
                let (low, high) = (d(self, 0, Bank::B32)?, d(self, 1, Bank::B32)?);
                self.push(Op::Unary(Unary::U64ToU32, [low, a]));
                self.push(Op::Unary(Unary::High32, [high, a]));
            }
            (Bank::B64, 4) => {
                let halves = [self.temp(Bank::B32)?, self.temp(Bank::B32)?];
                self.push(Op::Unary(Unary::U64ToU32, [halves[0], a]));
                self.push(Op::Unary(Unary::High32, [halves[1], a]));
                for i in 0..4 {
                    let part = d(self, i, Bank::B16)?;
                    let kind = if i % 2 == 0 { Unary::U32ToU16 } else { Unary::High16 };
                    self.push(Op::Unary(kind, [part, halves[i / 2]]));
                }
            }
            _ => return self.unsupported(inst, "vectors of 2 or 4 parts of 16 or 32 bits are unpacked"),
        }
        Ok(())
    }

    fn pack(&mut self, inst: &'m AstInst<'a>, parts: &'m [Operand<'a>], d: Reg, bank: Bank) -> Result<()> {
        let a = |this: &mut Self, i: usize, bank| this.scalar(inst, 1, &parts[i], bank);
        match (bank, parts.len()) {
            (Bank::B32, 2) => {
                let (low, high) = (a(self, 0, Bank::B16)?, a(self, 1, Bank::B16)?);
                self.push(Op::Binary(Binary::Pack16, [d, low, high]));
            }
            (Bank::B64, 2) => {
                let (low, high) = (a(self, 0, Bank::B32)?, a(self, 1, Bank::B32)?);
                self.push(Op::Binary(Binary::Pack32, [d, low, high]));
            }
            (Bank::B64, 4) => {
                let halves = [self.temp(Bank::B32)?, self.temp(Bank::B32)?];
                for (i, &half) in halves.iter().enumerate() {
                    let (low, high) = (a(self, 2 * i, Bank::B16)?, a(self, 2 * i + 1, Bank::B16)?);
                    self.push(Op::Binary(Binary::Pack16, [half, low, high]));
                }
                self.push(Op::Binary(Binary::Pack32, [d, halves[0], halves[1]]));
            }
            _ => return self.unsupported(inst, "vectors of 2 or 4 parts of 16 or 32 bits are packed"),
        }
        Ok(())
    }

    pub(super) fn cvt(&mut self, inst: &'m AstInst<'a>) -> Result<()> {
        let parts: Vec<&str> = inst.op.split('.').collect();
        let [_, modifiers @ .., to, from] = parts.as_slice() else {
            return self.unsupported(inst, "it has no two types");
        };
        let (to, from) = (self.ty(inst, to)?, self.ty(inst, from)?);
        let mut c = Convert {
            from,
            to,
            from_bank: Bank::B32,
            to_bank: Bank::B32,
            round: Round::Nearest,
            integral: false,
            saturate: false,
            finite: false,
            relu: false,
            flush: false,
        };
        for modifier in modifiers {
            match *modifier {
                "rn" => {}
                "rz" => c.round = Round::Zero,
                "rm" => c.round = Round::Down,
                "rp" => c.round = Round::Up,
                "rna" => c.round = Round::NearestAway,
                "rni" => c.integral = true,
                "rzi" => (c.round, c.integral) = (Round::Zero, true),
                "rmi" => (c.round, c.integral) = (Round::Down, true),
                "rpi" => (c.round, c.integral) = (Round::Up, true),
                "sat" => c.saturate = true,
                "satfinite" => c.finite = true,
                "relu" => c.relu = true,
                "ftz" => c.flush = true,
                _ => return self.unsupported(inst, "it has a modifier that is not supported"),
            }
        }
        if let Ty::F16x2 | Ty::Bf16x2 = to {
            self.count(inst, 3..=3)?;
            if from != Ty::F32 {
                return self.unsupported(inst, "packed conversions start from f32");
            }
            c.to = if to == Ty::F16x2 { Ty::F16 } else { Ty::Bf16 };
            let d = self.dst(inst, 0, Bank::B32)?;
            let (high, low) = (self.src(inst, 1, Bank::B32)?, self.src(inst, 2, Bank::B32)?);
            let plain = c.round == Round::Nearest && !c.saturate && !c.finite && !c.relu && !c.flush;
            if plain {
                let halves = [self.temp(Bank::B16)?, self.temp(Bank::B16)?];
                let kind = if to == Ty::F16x2 { Unary::F32ToF16 } else { Unary::F32ToBf16 };
                self.push(Op::Unary(kind, [halves[0], low]));
                self.push(Op::Unary(kind, [halves[1], high]));
                self.push(Op::Binary(Binary::Pack16, [d, halves[0], halves[1]]));
            } else {
                self.push(Op::ConvertPair(c, d, high, low));
            }
            return Ok(());
        }
        self.count(inst, 2..=2)?;
        if matches!(from, Ty::F16x2 | Ty::Bf16x2 | Ty::Pred) || to == Ty::Pred {
            return self.unsupported(inst, "its type is not supported");
        }
        let source = self.operand(inst, 1)?;
        let (from_bank, a) = match self.any_width(inst, 1, source, from.bytes())? {
            Some(found) => found,
            None => {
                let bank = Bank::of_bytes(from.bytes()).unwrap_or(Bank::B16);
                (bank, self.scalar(inst, 1, source, bank)?)
            }
        };
        let destination = self.operand(inst, 0)?;
        let Some((to_bank, d)) = self.any_width(inst, 0, destination, to.bytes())? else {
            return self.bad(inst, 0, "must be a register");
        };
        (c.from_bank, c.to_bank) = (from_bank, to_bank);
        let exact = from_bank.bytes() == from.bytes() && to_bank.bytes() == to.bytes();
        let plain =
            c.round == Round::Nearest && !c.integral && !c.saturate && !c.finite && !c.relu && !c.flush;
        if exact
            && plain
            && let Some(kind) =
                Unary::parse(&format!("cvt.{}.{}", parts[parts.len() - 2], parts[parts.len() - 1]))
        {
            self.push(Op::Unary(kind, [d, a]));
            return Ok(());
        }
        if c.from.float() && !c.to.float() && !c.integral {
            return self
                .unsupported(inst, "a float becomes an integer only with `.rni`, `.rzi`, `.rmi` or `.rpi`");
        }
        self.push(Op::Convert(c, d, a));
        Ok(())
    }

    /// Comparison and, where there is one, the logic with a further predicate.
    fn comparison(&self, inst: &AstInst<'_>, parts: &[&str]) -> Result<(Cmp, Option<Logic>, bool)> {
        let (mut cmp, mut logic, mut flush) = (None, None, false);
        for part in parts {
            let found = match *part {
                "eq" => Cmp::Eq,
                "ne" => Cmp::Ne,
                "lt" | "lo" => Cmp::Lt,
                "le" | "ls" => Cmp::Le,
                "gt" | "hi" => Cmp::Gt,
                "ge" | "hs" => Cmp::Ge,
                "equ" => Cmp::Equ,
                "neu" => Cmp::Neu,
                "ltu" => Cmp::Ltu,
                "leu" => Cmp::Leu,
                "gtu" => Cmp::Gtu,
                "geu" => Cmp::Geu,
                "num" => Cmp::Num,
                "nan" => Cmp::Nan,
                "and" => {
                    logic = Some(Logic::And);
                    continue;
                }
                "or" => {
                    logic = Some(Logic::Or);
                    continue;
                }
                "xor" => {
                    logic = Some(Logic::Xor);
                    continue;
                }
                "ftz" => {
                    flush = true;
                    continue;
                }
                _ => return self.unsupported(inst, "it has a modifier that is not supported"),
            };
            cmp = Some(found);
        }
        match cmp {
            Some(cmp) => Ok((cmp, logic, flush)),
            None => self.unsupported(inst, "it has no comparison"),
        }
    }

    pub(super) fn setp(&mut self, inst: &'m AstInst<'a>) -> Result<()> {
        let parts: Vec<&str> = inst.op.split('.').collect();
        let ty = self.last_ty(inst)?;
        let (cmp, logic, flush) = self.comparison(inst, &parts[1..parts.len() - 1])?;
        let bank = self.bank(inst, ty)?;
        if let Ty::F16x2 | Ty::Bf16x2 = ty {
            return self.unsupported(inst, "packed comparisons are not supported");
        }
        self.count(inst, if logic.is_some() { 4..=4 } else { 3..=3 })?;
        let (d, q) = match self.operand(inst, 0)? {
            Operand::Pair(d, q) => (self.pred_reg(inst, 0, d)?, self.pred_reg(inst, 0, q)?),
            _ => (self.pred_dst(inst, 0)?, NO_REG),
        };
        let flush = flush && ty == Ty::F32;
        let (a, b) = (self.source(inst, 1, bank, flush)?, self.source(inst, 2, bank, flush)?);
        let logic = match logic {
            Some(logic) => Some((logic, self.pred_src(inst, 3)?)),
            None => None,
        };
        self.push(Op::Setp { cmp, ty, d, q, a, b, logic });
        Ok(())
    }

    pub(super) fn set(&mut self, inst: &'m AstInst<'a>) -> Result<()> {
        let parts: Vec<&str> = inst.op.split('.').collect();
        let [_, modifiers @ .., to, from] = parts.as_slice() else {
            return self.unsupported(inst, "it has no two types");
        };
        let (to, from) = (self.ty(inst, to)?, self.ty(inst, from)?);
        let (cmp, logic, flush) = self.comparison(inst, modifiers)?;
        let (to_bank, from_bank) = (self.bank(inst, to)?, self.bank(inst, from)?);
        let (yes, no) = match to {
            Ty::F32 => (1f32.to_bits().into(), 0),
            Ty::U32 | Ty::S32 | Ty::U16 | Ty::S16 => (u64::MAX, 0),
            _ => return self.unsupported(inst, "its result type is not supported"),
        };
        if matches!(from, Ty::F16x2 | Ty::Bf16x2) {
            return self.unsupported(inst, "packed comparisons are not supported");
        }
        self.count(inst, if logic.is_some() { 4..=4 } else { 3..=3 })?;
        let out = self.dst(inst, 0, to_bank)?;
        let flush = flush && from == Ty::F32;
        let (a, b) = (self.source(inst, 1, from_bank, flush)?, self.source(inst, 2, from_bank, flush)?);
        let logic = match logic {
            Some(logic) => Some((logic, self.pred_src(inst, 3)?)),
            None => None,
        };
        let d = self.new_reg(Ty::Pred)?;
        let (yes, no) = (self.constant(to_bank, yes)?, self.constant(to_bank, no)?);
        self.push(Op::Setp { cmp, ty: from, d, q: NO_REG, a, b, logic });
        self.push(Op::Selp {
            bank: to_bank,
            d: out,
            a: yes,
            b: no,
            p: PredOperand { reg: d, negated: false },
        });
        Ok(())
    }

    pub(super) fn selp(&mut self, inst: &'m AstInst<'a>) -> Result<()> {
        self.count(inst, 4..=4)?;
        let ty = self.last_ty(inst)?;
        let bank = self.bank(inst, ty)?;
        let d = self.dst(inst, 0, bank)?;
        let (a, b) = (self.src(inst, 1, bank)?, self.src(inst, 2, bank)?);
        let p = self.pred_src(inst, 3)?;
        self.push(Op::Selp { bank, d, a, b, p });
        Ok(())
    }

    pub(super) fn lop3(&mut self, inst: &'m AstInst<'a>) -> Result<()> {
        if inst.op != "lop3.b32" {
            return self.unsupported(inst, "only `lop3.b32` is supported");
        }
        self.count(inst, 5..=5)?;
        let d = self.dst(inst, 0, Bank::B32)?;
        let (a, b) = (self.src(inst, 1, Bank::B32)?, self.src(inst, 2, Bank::B32)?);
        let c = self.src(inst, 3, Bank::B32)?;
        match *self.operand(inst, 4)? {
            Operand::Int(table) if table < 256 => self.push(Op::Lop3([d, a, b, c], table as u8)),
            _ => return self.bad(inst, 4, "must be a constant from 0 to 255"),
        }
        Ok(())
    }

    pub(super) fn bfi(&mut self, inst: &'m AstInst<'a>) -> Result<()> {
        self.count(inst, 5..=5)?;
        let bank = match inst.op {
            "bfi.b32" => Bank::B32,
            "bfi.b64" => Bank::B64,
            _ => {
                return self.unsupported(inst, "the machine has no such instruction, or not this form of it");
            }
        };
        let d = self.dst(inst, 0, bank)?;
        let (a, b) = (self.src(inst, 1, bank)?, self.src(inst, 2, bank)?);
        let (position, length) = (self.src(inst, 3, Bank::B32)?, self.src(inst, 4, Bank::B32)?);
        self.push(Op::Bfi { wide: bank == Bank::B64, ops: [d, a, b, position, length] });
        Ok(())
    }

    /// The name of a table of labels or a function; `None` if it is something else.
    pub(super) fn named(&mut self, inst: &'m AstInst<'a>, index: usize) -> Result<Option<Symbol>> {
        match *self.operand(inst, index)? {
            Operand::Name(name) => self.find(name).map(Some),
            _ => Ok(None),
        }
    }
}
