//! `multimem`: instructions on multicast ranges.

use super::{Decoder, Result};
use crate::arithmetic::types::Ty;
use crate::fault::Space;
use crate::front::ast::{AstInst, AstOperand};
use crate::isa::{AtomOp, MemoryAccess, MemoryOrder, Multimem, MultimemKind, PtxOp, Scope};
use crate::registers::{Bank, NO_NAME};

impl<'m, 'a> Decoder<'m, 'a> {
    pub(super) fn multimem(&mut self, inst: &'m AstInst<'a>) -> Result<()> {
        let parts: Vec<&str> = inst.op.split('.').collect();
        let (kind, rest) = match parts.as_slice() {
            ["multimem", "ld_reduce", rest @ ..] => (MultimemKind::LoadReduce, rest),
            ["multimem", "st", rest @ ..] => (MultimemKind::Store, rest),
            ["multimem", "red", rest @ ..] => (MultimemKind::Reduce, rest),
            _ => {
                return self.unsupported(inst, "the machine has no such instruction, or not this form of it");
            }
        };
        let (mut order, mut scope, mut op, mut sums, mut count, mut ty) = (None, None, None, None, 1, None);
        let mut space = Space::Generic;
        for &part in rest {
            match part {
                "weak" if kind != MultimemKind::Reduce => order = Some(MemoryOrder::Weak),
                "relaxed" => order = Some(MemoryOrder::Relaxed),
                "acquire" if kind == MultimemKind::LoadReduce => order = Some(MemoryOrder::Acquire),
                "release" if kind != MultimemKind::LoadReduce => order = Some(MemoryOrder::Release),
                "cta" | "cluster" => scope = Some(Scope::Cta),
                "gpu" => scope = Some(Scope::Gpu),
                "sys" => scope = Some(Scope::Sys),
                "global" => space = Space::Global,
                "add" => op = Some(AtomOp::Add),
                "min" => op = Some(AtomOp::Min),
                "max" => op = Some(AtomOp::Max),
                "and" => op = Some(AtomOp::And),
                "or" => op = Some(AtomOp::Or),
                "xor" => op = Some(AtomOp::Xor),
                "acc::f32" if kind == MultimemKind::LoadReduce => sums = Some(Ty::F32),
                "acc::f16" if kind == MultimemKind::LoadReduce => sums = Some(Ty::F16),
                "v2" => count = 2,
                "v4" => count = 4,
                "v8" => count = 8,
                _ => match Ty::parse(part) {
                    Some(found)
                        if ty.is_none() && !matches!(found, Ty::Pred | Ty::B128 | Ty::Tf32 | Ty::F32x2) =>
                    {
                        ty = Some((found, part));
                    }
                    _ => return self.unsupported(inst, "it has a qualifier that is not supported"),
                },
            }
        }
        let Some((ty, name)) = ty else { return self.unsupported(inst, "it has no type") };
        if (kind == MultimemKind::Store) != op.is_none() {
            return self.unsupported(inst, "loads and reductions have an operation, stores have none");
        }
        // Weak accesses have no scope, and the others have one; `red` is relaxed and of the system unless told.
        let default = if kind == MultimemKind::Reduce { MemoryOrder::Relaxed } else { MemoryOrder::Weak };
        let order = order.unwrap_or(default);
        if order == MemoryOrder::Weak && scope.is_some()
            || order != MemoryOrder::Weak && scope.is_none() && kind != MultimemKind::Reduce
        {
            return self.unsupported(inst, "an order other than `.weak` and a scope go together");
        }
        let op = op.unwrap_or(AtomOp::Exch);
        if let Some(reason) = refusal(kind, op, ty, name, count, sums) {
            return self.unsupported(inst, reason);
        }
        self.count(inst, 2..=2)?;
        let load = kind == MultimemKind::LoadReduce;
        let (data_index, address_index) = (usize::from(!load), usize::from(load));
        let Some(bank) = Bank::of_bytes(ty.bytes()) else {
            return self.unsupported(inst, "its type is not supported");
        };
        let data = self.operand(inst, data_index)?;
        let single = std::slice::from_ref(data);
        let operands: &'m [AstOperand<'a>] =
            if let AstOperand::Vector(parts) = data { parts } else { single };
        if operands.len() != usize::from(count) {
            return self.bad(inst, data_index, "must have as many parts as the vector");
        }
        let mut regs = [NO_NAME; 8];
        for (reg, operand) in regs.iter_mut().zip(operands) {
            *reg = if load {
                self.destination(inst, data_index, operand, bank)?
            } else {
                self.scalar(inst, data_index, operand, bank)?
            };
        }
        let address = self.address(inst, address_index)?;
        let scope = scope.unwrap_or(Scope::Sys);
        let access = MemoryAccess { space, ty, count, whole: count == 1, order, scope, bank };
        let element = ty.elements().map_or(ty, |(ty, _)| ty);
        let sums = sums.unwrap_or(element);
        self.out.multimems.push(Multimem { kind, op, access, sums, address, regs });
        let number = self.out.multimems.len() as u32 - 1;
        self.push(PtxOp::Multimem(number));
        Ok(())
    }

    /// A cluster has one block, number 0, so that its shared memory is the block's own.
    pub(super) fn cluster(&mut self, inst: &'m AstInst<'a>) -> Result<()> {
        let parts: Vec<&str> = inst.op.split('.').collect();
        let wide = match parts.last() {
            Some(&"u64") => true,
            Some(&"u32") => false,
            _ => return self.unsupported(inst, "its type is not supported"),
        };
        match parts.as_slice() {
            ["getctarank", ..] if !wide => {
                self.count(inst, 2..=2)?;
                self.any_width(inst, 1, self.operand(inst, 1)?, 4)?;
                let (d, zero) = (self.dst(inst, 0, Bank::B32)?, self.constant(Bank::B32, 0)?);
                self.push(PtxOp::Unary(crate::arithmetic::tables::UnaryOp::Mov32, [d, zero]));
            }
            ["mapa", ..] => {
                self.count(inst, 3..=3)?;
                let bank = if wide { Bank::B64 } else { Bank::B32 };
                let (d, a) = (self.dst(inst, 0, bank)?, self.src(inst, 1, bank)?);
                let rank = self.src(inst, 2, Bank::B32)?;
                self.push(PtxOp::ClusterRank(rank));
                let kind = if wide {
                    crate::arithmetic::tables::UnaryOp::Mov64
                } else {
                    crate::arithmetic::tables::UnaryOp::Mov32
                };
                self.push(PtxOp::Unary(kind, [d, a]));
            }
            _ => {
                return self.unsupported(inst, "the machine has no such instruction, or not this form of it");
            }
        }
        Ok(())
    }
}

/// Why a combination of type, vector and operation does not exist.
fn refusal(
    kind: MultimemKind,
    op: AtomOp,
    ty: Ty,
    name: &str,
    count: u8,
    sums: Option<Ty>,
) -> Option<&'static str> {
    let eight = matches!(ty, Ty::E4m3 | Ty::E5m2 | Ty::E4m3x2 | Ty::E5m2x2 | Ty::E4m3x4 | Ty::E5m2x4);
    let half = matches!(ty, Ty::F16 | Ty::Bf16 | Ty::F16x2 | Ty::Bf16x2);
    let Some(_) = ty.elements() else {
        let bits = name.starts_with('b');
        let fits = match op {
            AtomOp::And | AtomOp::Or | AtomOp::Xor => bits,
            AtomOp::Add => !bits && name != "s64",
            AtomOp::Min | AtomOp::Max => !bits,
            _ => true,
        };
        return match (ty.bytes(), count) {
            (4 | 8, 1) if fits && sums.is_none() => None,
            (4 | 8, 1) => Some("this operation does not exist for its type"),
            _ => Some("integers are of 32 or 64 bits and have no vectors"),
        };
    };
    if !matches!(ty.bytes() * usize::from(count), 4 | 8 | 16) || ty == Ty::F64 && count != 1 {
        return Some("a vector of floats has 32, 64 or 128 bits");
    }
    let fits = match (kind, op) {
        (MultimemKind::Store, _) => true,
        (MultimemKind::Reduce, AtomOp::Add) => !eight,
        (MultimemKind::LoadReduce, AtomOp::Add) => true,
        (MultimemKind::LoadReduce, AtomOp::Min | AtomOp::Max) => half || eight,
        _ => false,
    };
    let precision = match sums {
        None => true,
        Some(Ty::F32) => half && op == AtomOp::Add,
        Some(_) => eight && op == AtomOp::Add,
    };
    (!fits || !precision).then_some("this operation does not exist for its type")
}
