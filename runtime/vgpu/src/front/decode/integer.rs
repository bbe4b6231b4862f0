//! Integer instructions outside the tables: carry chains, logic of three operands, bit fields.

use super::{Decoder, Result};
use crate::arithmetic::types::Ty;
use crate::front::ast::{AstInst, AstOperand};
use crate::isa::{Carry, CarryKind, Cmp, Logic, PtxOp};
use crate::registers::{Bank, NO_NAME, Name};

impl<'m, 'a> Decoder<'m, 'a> {
    /// `add.cc`, `addc`, `sub.cc`, `subc`, `mad.cc` and `madc`; `false` if the instruction is none of them.
    pub(super) fn carry_chain(&mut self, inst: &'m AstInst<'a>) -> Result<bool> {
        let parts: Vec<&str> = inst.op.split('.').collect();
        let (kind, reads, rest) = match parts.as_slice() {
            ["add", "cc", rest @ ..] => (CarryKind::Add, false, rest),
            ["sub", "cc", rest @ ..] => (CarryKind::Sub, false, rest),
            ["addc", rest @ ..] => (CarryKind::Add, true, rest),
            ["subc", rest @ ..] => (CarryKind::Sub, true, rest),
            ["mad", "lo", "cc", rest @ ..] => (CarryKind::MadLow, false, rest),
            ["mad", "hi", "cc", rest @ ..] => (CarryKind::MadHigh, false, rest),
            ["madc", "lo", rest @ ..] => (CarryKind::MadLow, true, rest),
            ["madc", "hi", rest @ ..] => (CarryKind::MadHigh, true, rest),
            _ => return Ok(false),
        };
        let (writes, ty) = match rest {
            [ty] => (!reads, *ty),
            ["cc", ty] if reads => (true, *ty),
            _ => {
                return self.unsupported(inst, "the machine has no such instruction, or not this form of it");
            }
        };
        let (wide, signed) = match ty {
            "u32" => (false, false),
            "s32" => (false, true),
            "u64" => (true, false),
            "s64" => (true, true),
            _ => return self.unsupported(inst, "its type is not supported"),
        };
        let sources = if matches!(kind, CarryKind::Add | CarryKind::Sub) { 2 } else { 3 };
        self.count(inst, sources + 1..=sources + 1)?;
        let bank = if wide { Bank::B64 } else { Bank::B32 };
        let mut ops = [NO_NAME; 4];
        ops[0] = self.dst(inst, 0, bank)?;
        for (i, op) in ops.iter_mut().enumerate().skip(1).take(sources) {
            *op = self.src(inst, i, bank)?;
        }
        let carry = self.carry_register()?;
        self.push(PtxOp::Carry(Carry { kind, wide, signed, reads, writes, carry }, ops));
        Ok(true)
    }

    /// The condition code register: one predicate of each activation.
    fn carry_register(&mut self) -> Result<Name> {
        if self.carry == NO_NAME {
            self.carry = self.new_reg(Ty::Pred)?;
        }
        Ok(self.carry)
    }

    pub(super) fn lop3(&mut self, inst: &'m AstInst<'a>) -> Result<()> {
        let logic = match inst.op {
            "lop3.b32" => None,
            "lop3.or.b32" => Some(Logic::Or),
            "lop3.and.b32" => Some(Logic::And),
            _ => {
                return self.unsupported(inst, "the machine has no such instruction, or not this form of it");
            }
        };
        let operands = if logic.is_some() { 6 } else { 5 };
        self.count(inst, operands..=operands)?;
        let (mut d, p) = self.dst_and_pred(inst, 0, Bank::B32)?;
        if logic.is_some() != (p != NO_NAME) {
            return self.bad(inst, 0, "must be `d|p` if, and only if, there is a logic operation");
        }
        if d == NO_NAME {
            d = self.temp(Bank::B32)?;
        }
        let (a, b) = (self.src(inst, 1, Bank::B32)?, self.src(inst, 2, Bank::B32)?);
        let c = self.src(inst, 3, Bank::B32)?;
        let AstOperand::Int(table @ 0..256) = *self.operand(inst, 4)? else {
            return self.bad(inst, 4, "must be a constant from 0 to 255");
        };
        self.push(PtxOp::Lop3([d, a, b, c], table as u8));
        if let Some(logic) = logic {
            let (q, zero) = (self.pred_src(inst, 5)?, self.constant(Bank::B32, 0)?);
            let logic = Some((logic, q));
            self.push(PtxOp::Setp { cmp: Cmp::Ne, ty: Ty::U32, d: p, q: NO_NAME, a: d, b: zero, logic });
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
        self.push(PtxOp::Bfi { wide: bank == Bank::B64, ops: [d, a, b, position, length] });
        Ok(())
    }
}
