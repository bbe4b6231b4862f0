//! `cvt` in all its forms.

use super::{Decoder, Result};
use crate::arithmetic::float::{Round, format};
use crate::arithmetic::tables::{BinaryOp, UnaryOp};
use crate::arithmetic::types::Ty;
use crate::front::ast::AstInst;
use crate::isa::{Convert, PtxOp};
use crate::registers::Bank;

/// Returns true if some values of the first type have no equal in the second.
fn loses(from: Ty, to: Ty) -> bool {
    match (format(from), format(to)) {
        (Some(from), Some(to)) => from.exponent > to.exponent || from.mantissa > to.mantissa,
        (None, Some(_)) => true,
        _ => false,
    }
}

impl<'m, 'a> Decoder<'m, 'a> {
    pub(super) fn cvt(&mut self, inst: &'m AstInst<'a>) -> Result<()> {
        let parts: Vec<&str> = inst.op.split('.').collect();
        let [_, modifiers @ .., to, from] = parts.as_slice() else {
            return self.unsupported(inst, "it has no two types");
        };
        let (to_ty, from_ty) = (self.ty(inst, to)?, self.ty(inst, from)?);
        let mut c = Convert {
            from: from_ty,
            to: to_ty,
            from_bank: Bank::B32,
            to_bank: Bank::B32,
            round: Round::Nearest,
            integral: false,
            saturate: false,
            finite: false,
            relu: false,
            flush: false,
        };
        let mut rounds = 0;
        for modifier in modifiers {
            let round = match *modifier {
                "rn" => Some((Round::Nearest, false)),
                "rz" => Some((Round::Zero, false)),
                "rm" => Some((Round::Down, false)),
                "rp" => Some((Round::Up, false)),
                "rna" if to_ty == Ty::Tf32 => Some((Round::NearestAway, false)),
                "rni" => Some((Round::Nearest, true)),
                "rzi" => Some((Round::Zero, true)),
                "rmi" => Some((Round::Down, true)),
                "rpi" => Some((Round::Up, true)),
                _ => None,
            };
            match (round, *modifier) {
                (Some((round, integral)), _) => {
                    (c.round, c.integral) = (round, integral);
                    rounds += 1;
                }
                (None, "sat") => c.saturate = true,
                (None, "satfinite") => c.finite = true,
                (None, "relu") => c.relu = true,
                (None, "ftz") => c.flush = true,
                _ => return self.unsupported(inst, "it has a modifier that is not supported"),
            }
        }
        if rounds > 1 {
            return self.unsupported(inst, "it rounds twice");
        }
        let element = |ty: Ty| ty.elements().map_or(ty, |(ty, _)| ty);
        (c.from, c.to) = (element(from_ty), element(to_ty));
        let narrow = matches!(c.to, Ty::F16 | Ty::Bf16 | Ty::Tf32 | Ty::E4m3 | Ty::E5m2);
        if (c.finite || c.relu) && !(narrow && c.from.elements().is_some()) {
            return self.unsupported(inst, "`.satfinite` and `.relu` go with narrow floats");
        }
        if loses(c.from, c.to) && rounds == 0 {
            return self.unsupported(inst, "it must say how it rounds");
        }
        match (to_ty, from_ty) {
            (Ty::F16x2 | Ty::Bf16x2 | Ty::E4m3x2 | Ty::E5m2x2, Ty::F32) => self.cvt_pair(inst, c, to_ty),
            (Ty::E4m3x2 | Ty::E5m2x2, Ty::F16x2 | Ty::Bf16x2) | (Ty::F16x2, Ty::E4m3x2 | Ty::E5m2x2) => {
                self.cvt_each(inst, c, to_ty, from_ty, rounds == 1)
            }
            (Ty::Tf32, Ty::F32) => {
                self.count(inst, 2..=2)?;
                if c.saturate || c.flush || c.integral {
                    return self.unsupported(inst, "it has a modifier that its types do not admit");
                }
                let (d, a) = (self.dst(inst, 0, Bank::B32)?, self.src(inst, 1, Bank::B32)?);
                self.push(PtxOp::Convert(c, d, a));
                Ok(())
            }
            _ if to_ty.elements().is_some_and(|(_, n)| n > 1)
                || from_ty.elements().is_some_and(|(_, n)| n > 1)
                || to_ty.special()
                || from_ty.special()
                || to_ty == Ty::Pred
                || from_ty == Ty::Pred =>
            {
                self.unsupported(inst, "its types do not go together")
            }
            _ => self.cvt_one(inst, c, [to, from]),
        }
    }

    /// Two f32 -> two narrow values in one register, the first operand in the upper half.
    fn cvt_pair(&mut self, inst: &'m AstInst<'a>, mut c: Convert, to: Ty) -> Result<()> {
        self.count(inst, 3..=3)?;
        let eight = to.bytes() == 2;
        if c.integral || c.saturate || c.flush || eight && (!c.finite || c.round != Round::Nearest) {
            return self.unsupported(inst, "it lacks a modifier, or has one that its types do not admit");
        }
        c.to_bank = self.bank(inst, to)?;
        let d = self.dst(inst, 0, c.to_bank)?;
        let (high, low) = (self.src(inst, 1, Bank::B32)?, self.src(inst, 2, Bank::B32)?);
        if c.round == Round::Nearest && !c.finite && !c.relu {
            let halves = [self.temp(Bank::B16)?, self.temp(Bank::B16)?];
            let kind = if to == Ty::F16x2 { UnaryOp::F32ToF16 } else { UnaryOp::F32ToBf16 };
            self.push(PtxOp::Unary(kind, [halves[0], low]));
            self.push(PtxOp::Unary(kind, [halves[1], high]));
            self.push(PtxOp::Binary(BinaryOp::Pack16, [d, halves[0], halves[1]]));
        } else {
            self.push(PtxOp::ConvertPair(c, d, high, low));
        }
        Ok(())
    }

    /// Both halves of a register.
    fn cvt_each(
        &mut self,
        inst: &'m AstInst<'a>,
        mut c: Convert,
        to: Ty,
        from: Ty,
        rounds: bool,
    ) -> Result<()> {
        self.count(inst, 2..=2)?;
        let to_eight = to.bytes() == 2;
        if c.integral || c.saturate || c.flush || !rounds || c.round != Round::Nearest || c.finite != to_eight
        {
            return self.unsupported(inst, "it lacks a modifier, or has one that its types do not admit");
        }
        (c.from_bank, c.to_bank) = (self.bank(inst, from)?, self.bank(inst, to)?);
        let (d, a) = (self.dst(inst, 0, c.to_bank)?, self.src(inst, 1, c.from_bank)?);
        self.push(PtxOp::ConvertEach(c, d, a));
        Ok(())
    }

    fn cvt_one(&mut self, inst: &'m AstInst<'a>, mut c: Convert, [to, from]: [&str; 2]) -> Result<()> {
        self.count(inst, 2..=2)?;
        let source = self.operand(inst, 1)?;
        let (from_bank, a) = match self.any_width(inst, 1, source, c.from.bytes())? {
            Some(found) => found,
            None => {
                let bank = Bank::of_bytes(c.from.bytes()).unwrap_or(Bank::B16);
                (bank, self.scalar(inst, 1, source, bank)?)
            }
        };
        let destination = self.operand(inst, 0)?;
        let Some((to_bank, d)) = self.any_width(inst, 0, destination, c.to.bytes())? else {
            return self.bad(inst, 0, "must be a register");
        };
        (c.from_bank, c.to_bank) = (from_bank, to_bank);
        let exact = from_bank.bytes() == c.from.bytes() && to_bank.bytes() == c.to.bytes();
        let plain =
            c.round == Round::Nearest && !c.integral && !c.saturate && !c.finite && !c.relu && !c.flush;
        if exact
            && plain
            && let Some(kind) = UnaryOp::parse(&format!("cvt.{to}.{from}"))
        {
            self.push(PtxOp::Unary(kind, [d, a]));
            return Ok(());
        }
        if c.from.float() && !c.to.float() && !c.integral {
            return self
                .unsupported(inst, "a float becomes an integer only with `.rni`, `.rzi`, `.rmi` or `.rpi`");
        }
        if c.integral && c.from != c.to && c.to.float() {
            return self.unsupported(inst, "rounding to an integer keeps the type or gives an integer");
        }
        self.push(PtxOp::Convert(c, d, a));
        Ok(())
    }
}
