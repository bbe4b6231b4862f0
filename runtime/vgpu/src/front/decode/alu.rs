//! Instructions that compute and have an entry in a table, and logic of predicates.

use super::{Decoder, Result, Symbol};
use crate::arithmetic::tables::{BinaryOp, TernaryOp, UnaryOp};
use crate::arithmetic::types::Ty;
use crate::front::ast::{AstInst, AstOperand};
use crate::isa::{Logic, PredOperand, PtxOp};
use crate::registers::Bank;

impl<'m, 'a> Decoder<'m, 'a> {
    /// Instructions of the tables, and logic of predicates.
    pub(super) fn arithmetic(&mut self, inst: &'m AstInst<'a>) -> Result<()> {
        if let Some(head) = inst.op.strip_suffix(".pred") {
            return self.pred_logic(inst, head);
        }
        if let Some(ty) = inst.op.rsplit('.').next().and_then(Ty::parse)
            && ty.elements().is_some()
            && !inst.op.starts_with("slct")
        {
            return self.float(inst, ty);
        }
        if self.carry_chain(inst)? {
            return Ok(());
        }
        if let Some(kind) = UnaryOp::parse(inst.op) {
            let (to, [a]) = kind.banks();
            self.count(inst, 2..=2)?;
            let d = self.dst(inst, 0, to)?;
            let a = self.src(inst, 1, a)?;
            self.push(PtxOp::Unary(kind, [d, a]));
        } else if let Some(kind) = BinaryOp::parse(inst.op) {
            let (to, [a, b]) = kind.banks();
            self.count(inst, 3..=3)?;
            let d = self.dst(inst, 0, to)?;
            let (a, b) = (self.src(inst, 1, a)?, self.src(inst, 2, b)?);
            self.push(PtxOp::Binary(kind, [d, a, b]));
        } else if let Some(kind) = TernaryOp::parse(inst.op) {
            let (to, [a, b, c]) = kind.banks();
            self.count(inst, 4..=4)?;
            let d = self.dst(inst, 0, to)?;
            let (a, b) = (self.src(inst, 1, a)?, self.src(inst, 2, b)?);
            let c = self.src(inst, 3, c)?;
            self.push(PtxOp::Ternary(kind, [d, a, b, c]));
        } else {
            return self.unsupported(inst, "the machine has no such instruction, or not this form of it");
        }
        Ok(())
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
                self.push(PtxOp::PredMov(d, PredOperand { negated: !a.negated, ..a }));
                return Ok(());
            }
            _ => return self.unsupported(inst, "the machine has no such instruction on predicates"),
        };
        self.count(inst, 3..=3)?;
        let b = self.pred_src(inst, 2)?;
        self.push(PtxOp::PredLogic(logic, d, a, b));
        Ok(())
    }

    pub(super) fn ty(&self, inst: &AstInst<'_>, name: &str) -> Result<Ty> {
        match Ty::parse(name) {
            Some(Ty::B128) | None => self.unsupported(inst, "its type is not supported"),
            Some(ty) => Ok(ty),
        }
    }

    pub(super) fn last_ty(&self, inst: &AstInst<'_>) -> Result<Ty> {
        self.ty(inst, inst.op.rsplit('.').next().unwrap_or_default())
    }

    pub(super) fn bank(&self, inst: &AstInst<'_>, ty: Ty) -> Result<Bank> {
        match Bank::of_bytes(ty.bytes()) {
            Some(bank) if ty.bytes() > 1 => Ok(bank),
            _ => self.unsupported(inst, "its type is not supported"),
        }
    }

    /// The name of a table of labels or a function; `None` if it is something else.
    pub(super) fn named(&mut self, inst: &'m AstInst<'a>, index: usize) -> Result<Option<Symbol>> {
        match *self.operand(inst, index)? {
            AstOperand::Name(name) => self.find(name).map(Some),
            _ => Ok(None),
        }
    }
}
