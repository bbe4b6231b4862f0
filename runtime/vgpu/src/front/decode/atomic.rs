//! `atom` and `red`: scalars, vectors and 128 bits.

use super::memory::Qualifiers;
use super::{Decoder, Result};
use crate::arithmetic::types::Ty;
use crate::fault::Space;
use crate::front::ast::{AstInst, AstOperand};
use crate::isa::{AtomOp, AtomVector, MemoryAccess, PtxOp};
use crate::registers::{Bank, NO_NAME, Name};

impl<'m, 'a> Decoder<'m, 'a> {
    pub(super) fn atomic(&mut self, inst: &'m AstInst<'a>) -> Result<()> {
        let q = self.qualifiers(inst, true)?;
        let (Some(op), Some(ty)) = (q.op, q.ty) else {
            return self.unsupported(inst, "it has no operation or no type");
        };
        if matches!(q.space, Space::Const | Space::Param | Space::Local) {
            return self.unsupported(inst, "atomics access global and shared memory");
        }
        if q.vector != 1 {
            return self.atomic_vector(inst, &q, op, ty);
        }
        if ty == Ty::B128 {
            return self.atomic_wide(inst, &q, op);
        }
        let float = ty.elements().is_some();
        let admitted = match op {
            AtomOp::Inc | AtomOp::Dec => ty == Ty::U32,
            AtomOp::Cas | AtomOp::Exch => ty.bytes() >= 2 && !float,
            AtomOp::Add => ty.bytes() >= 4 || float,
            AtomOp::Min | AtomOp::Max => ty.bytes() >= 4 && !float || half(ty),
            _ => ty.bytes() >= 4 && !float,
        };
        if !admitted {
            return self.unsupported(inst, "this operation does not exist for its type");
        }
        let Some(bank) = Bank::of_bytes(ty.bytes()) else {
            return self.unsupported(inst, "its type is not supported");
        };
        let first = usize::from(inst.op.starts_with("atom"));
        let operands = first + 2 + usize::from(op == AtomOp::Cas);
        self.count(inst, operands..=operands + usize::from(q.policy))?;
        let d = if first == 1 { self.dst(inst, 0, bank)? } else { NO_NAME };
        let address = self.address(inst, first)?;
        let b = self.src(inst, first + 1, bank)?;
        let c = if op == AtomOp::Cas { self.src(inst, first + 2, bank)? } else { NO_NAME };
        let Qualifiers { space, order, scope, .. } = q;
        let access = MemoryAccess { space, ty, count: 1, whole: true, order, scope, bank };
        self.push(PtxOp::Atom(op, access, address, d, [b, c]));
        Ok(())
    }

    /// Elements are atomic one by one.
    fn atomic_vector(&mut self, inst: &'m AstInst<'a>, q: &Qualifiers, op: AtomOp, ty: Ty) -> Result<()> {
        let admitted = match ty {
            Ty::F32 => matches!(q.vector, 2 | 4) && op == AtomOp::Add,
            Ty::F16 | Ty::Bf16 => matches!(op, AtomOp::Add | AtomOp::Min | AtomOp::Max),
            Ty::F16x2 | Ty::Bf16x2 => {
                matches!(q.vector, 2 | 4) && matches!(op, AtomOp::Add | AtomOp::Min | AtomOp::Max)
            }
            _ => false,
        };
        if !admitted || !matches!(q.space, Space::Global | Space::Generic) {
            return self.unsupported(inst, "this operation does not exist for its type or state space");
        }
        let first = usize::from(inst.op.starts_with("atom"));
        self.count(inst, first + 2..=first + 2 + usize::from(q.policy))?;
        let bank = self.bank(inst, ty)?;
        let (mut d, mut b) = ([NO_NAME; 8], [NO_NAME; 8]);
        for (index, regs) in [(0, &mut d), (first + 1, &mut b)] {
            if first == 0 && index == 0 {
                continue;
            }
            let AstOperand::Vector(parts) = self.operand(inst, index)? else {
                return self.bad(inst, index, "must be a vector in braces");
            };
            if parts.len() != usize::from(q.vector) {
                return self.bad(inst, index, "must have as many parts as the vector");
            }
            for (reg, part) in regs.iter_mut().zip(parts) {
                *reg = if index == 0 {
                    self.destination(inst, index, part, bank)?
                } else {
                    self.scalar(inst, index, part, bank)?
                };
            }
        }
        // `red` has its vector where `atom` has the destination's successor.
        let address = self.address(inst, first)?;
        let Qualifiers { space, order, scope, vector: count, .. } = *q;
        let access = MemoryAccess { space, ty, count, whole: false, order, scope, bank };
        self.push_atom(AtomVector { op, access, address, d, b, c: [NO_NAME; 8] });
        Ok(())
    }

    fn atomic_wide(&mut self, inst: &'m AstInst<'a>, q: &Qualifiers, op: AtomOp) -> Result<()> {
        if !matches!(op, AtomOp::Cas | AtomOp::Exch) || !inst.op.starts_with("atom") {
            return self.unsupported(inst, "this operation does not exist for its type");
        }
        let operands = 3 + usize::from(op == AtomOp::Cas);
        self.count(inst, operands..=operands + usize::from(q.policy))?;
        let mut regs = [[NO_NAME; 8]; 3];
        for (regs, index) in regs.iter_mut().zip([0, 2, 3]) {
            if index < operands {
                let halves = self.wide(inst, index, self.operand(inst, index)?)?;
                regs[..2].copy_from_slice(&halves);
            }
        }
        let [d, b, c] = regs;
        let address = self.address(inst, 1)?;
        let Qualifiers { space, order, scope, .. } = *q;
        let access =
            MemoryAccess { space, ty: Ty::B128, count: 1, whole: true, order, scope, bank: Bank::B64 };
        self.push_atom(AtomVector { op, access, address, d, b, c });
        Ok(())
    }

    fn push_atom(&mut self, atom: AtomVector<Name>) {
        self.out.atoms.push(atom);
        let number = self.out.atoms.len() as u32 - 1;
        self.push(PtxOp::AtomVector(number));
    }
}

fn half(ty: Ty) -> bool {
    matches!(ty, Ty::F16 | Ty::Bf16 | Ty::F16x2 | Ty::Bf16x2)
}
