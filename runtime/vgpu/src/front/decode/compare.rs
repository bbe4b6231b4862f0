//! Comparisons, and tests of the kind of a float.

use super::{Decoder, Result};
use crate::arithmetic::tables::{BinaryOp, UnaryOp};
use crate::arithmetic::types::Ty;
use crate::front::ast::{AstInst, AstOperand};
use crate::isa::{Cmp, Logic, PredOperand, PtxOp, TestKind};
use crate::registers::{Bank, NO_NAME, Name};

/// Comparison, type, operands, and what the result is combined with.
type Comparison = (Cmp, Ty, Name, Name, Option<(Logic, PredOperand<Name>)>);

impl<'m, 'a> Decoder<'m, 'a> {
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

    /// The halves of a packed source as 16-bit registers.
    fn halves(&mut self, inst: &'m AstInst<'a>, index: usize) -> Result<[Name; 2]> {
        let a = self.src(inst, index, Bank::B32)?;
        let halves = [self.temp(Bank::B16)?, self.temp(Bank::B16)?];
        self.push(PtxOp::Unary(UnaryOp::U32ToU16, [halves[0], a]));
        self.push(PtxOp::Unary(UnaryOp::High16, [halves[1], a]));
        Ok(halves)
    }

    /// The predicate that a comparison is combined with.
    fn combined(
        &mut self,
        inst: &'m AstInst<'a>,
        logic: Option<Logic>,
    ) -> Result<Option<(Logic, PredOperand<Name>)>> {
        self.count(inst, if logic.is_some() { 4..=4 } else { 3..=3 })?;
        match logic {
            Some(logic) => Ok(Some((logic, self.pred_src(inst, 3)?))),
            None => Ok(None),
        }
    }

    /// Checks `.ftz`; returns true if it has an effect.
    fn flushes(&self, inst: &AstInst<'_>, flush: bool, ty: Ty) -> Result<bool> {
        match ty {
            Ty::F32 => Ok(flush),
            _ if !flush => Ok(false),
            // Subnormal halves compare with zero as they are.
            _ => self.unsupported(inst, "`.ftz` of comparisons is executed for f32 only"),
        }
    }

    pub(super) fn setp(&mut self, inst: &'m AstInst<'a>) -> Result<()> {
        let parts: Vec<&str> = inst.op.split('.').collect();
        let ty = self.last_ty(inst)?;
        let (cmp, logic, flush) = self.comparison(inst, &parts[1..parts.len() - 1])?;
        let bank = self.bank(inst, ty)?;
        let flush = self.flushes(inst, flush, ty)?;
        let logic = self.combined(inst, logic)?;
        let (d, q) = match self.operand(inst, 0)? {
            AstOperand::Pair(d, q) => (self.pred_reg(inst, 0, d)?, self.pred_reg(inst, 0, q)?),
            _ => (self.pred_dst(inst, 0)?, NO_NAME),
        };
        if let Some((half, 2)) = ty.elements() {
            if q == NO_NAME {
                return self.bad(inst, 0, "must be `p|q`, a predicate for each half");
            }
            let (a, b) = (self.halves(inst, 1)?, self.halves(inst, 2)?);
            for (i, d) in [d, q].into_iter().enumerate() {
                self.push(PtxOp::Setp { cmp, ty: half, d, q: NO_NAME, a: a[i], b: b[i], logic });
            }
            return Ok(());
        }
        let (a, b) = (self.source(inst, 1, bank, flush)?, self.source(inst, 2, bank, flush)?);
        self.push(PtxOp::Setp { cmp, ty, d, q, a, b, logic });
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
        let flush = self.flushes(inst, flush, from)?;
        let packed = matches!(from, Ty::F16x2 | Ty::Bf16x2);
        // The value that stands for true, in each half of a packed result.
        let yes = match to {
            Ty::F32 => u64::from(1f32.to_bits()),
            Ty::F16 | Ty::F16x2 => 0x3c00,
            Ty::Bf16 | Ty::Bf16x2 => 0x3f80,
            Ty::U32 | Ty::S32 | Ty::U16 | Ty::S16 => u64::MAX,
            _ => return self.unsupported(inst, "its result type is not supported"),
        };
        let packed_result = matches!(to, Ty::F16x2 | Ty::Bf16x2) || packed && matches!(to, Ty::U32 | Ty::S32);
        if packed != packed_result {
            return self.unsupported(inst, "its types do not go together");
        }
        let logic = self.combined(inst, logic)?;
        let out = self.dst(inst, 0, to_bank)?;
        if let (true, Some((half, _))) = (packed, from.elements()) {
            let (a, b) = (self.halves(inst, 1)?, self.halves(inst, 2)?);
            let parts = [self.temp(Bank::B16)?, self.temp(Bank::B16)?];
            for i in 0..2 {
                self.chosen(Bank::B16, parts[i], yes, (cmp, half, a[i], b[i], logic))?;
            }
            self.push(PtxOp::Binary(BinaryOp::Pack16, [out, parts[0], parts[1]]));
            return Ok(());
        }
        let (a, b) = (self.source(inst, 1, from_bank, flush)?, self.source(inst, 2, from_bank, flush)?);
        self.chosen(to_bank, out, yes, (cmp, from, a, b, logic))
    }

    /// `out` = `yes` where the comparison holds, else 0.
    fn chosen(&mut self, bank: Bank, out: Name, yes: u64, (cmp, ty, a, b, logic): Comparison) -> Result<()> {
        let d = self.new_reg(Ty::Pred)?;
        let (yes, no) = (self.constant(bank, yes)?, self.constant(bank, 0)?);
        self.push(PtxOp::Setp { cmp, ty, d, q: NO_NAME, a, b, logic });
        self.push(PtxOp::Selp { bank, d: out, a: yes, b: no, p: PredOperand { reg: d, negated: false } });
        Ok(())
    }

    pub(super) fn testp(&mut self, inst: &'m AstInst<'a>) -> Result<()> {
        let parts: Vec<&str> = inst.op.split('.').collect();
        let (kind, wide) = match parts[1..] {
            [kind, ty @ ("f32" | "f64")] => (kind, ty == "f64"),
            _ => {
                return self.unsupported(inst, "the machine has no such instruction, or not this form of it");
            }
        };
        let kind = match kind {
            "finite" => TestKind::Finite,
            "infinite" => TestKind::Infinite,
            "number" => TestKind::Number,
            "notanumber" => TestKind::NotANumber,
            "normal" => TestKind::Normal,
            "subnormal" => TestKind::Subnormal,
            _ => return self.unsupported(inst, "there is no such test"),
        };
        self.count(inst, 2..=2)?;
        let d = self.pred_dst(inst, 0)?;
        let a = self.src(inst, 1, if wide { Bank::B64 } else { Bank::B32 })?;
        self.push(PtxOp::Test { kind, wide, d, a });
        Ok(())
    }

    pub(super) fn selp(&mut self, inst: &'m AstInst<'a>) -> Result<()> {
        self.count(inst, 4..=4)?;
        let ty = self.last_ty(inst)?;
        let bank = self.bank(inst, ty)?;
        let d = self.dst(inst, 0, bank)?;
        let (a, b) = (self.src(inst, 1, bank)?, self.src(inst, 2, bank)?);
        let p = self.pred_src(inst, 3)?;
        self.push(PtxOp::Selp { bank, d, a, b, p });
        Ok(())
    }
}
