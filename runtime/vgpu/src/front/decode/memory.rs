//! Instructions that access memory, and conversions of addresses.

use super::{Decoder, Result};
use crate::arithmetic::tables::{BinaryOp, UnaryOp};
use crate::arithmetic::types::Ty;
use crate::fault::Space;
use crate::front::ast::{AstInst, AstOperand};
use crate::isa::{
    AtomOp, Cmp, LOCAL_WINDOW, MemoryAccess, MemoryOrder, PARAM_WINDOW, PtxOp, SHARED_WINDOW, Scope,
    WINDOW_SHIFT,
};
use crate::registers::{Bank, NO_NAME, Name};

/// Qualifiers that all memory instructions share.
pub(super) struct Qualifiers {
    pub(super) space: Space,
    pub(super) order: MemoryOrder,
    pub(super) scope: Scope,
    pub(super) ty: Option<Ty>,
    pub(super) vector: u8,
    /// A cache policy follows the operands.
    pub(super) policy: bool,
    pub(super) op: Option<AtomOp>,
}

impl<'m, 'a> Decoder<'m, 'a> {
    pub(super) fn qualifiers(&self, inst: &AstInst<'_>, atomic: bool) -> Result<Qualifiers> {
        let mut q = Qualifiers {
            space: Space::Generic,
            order: if atomic { MemoryOrder::Relaxed } else { MemoryOrder::Weak },
            scope: if atomic { Scope::Gpu } else { Scope::Sys },
            ty: None,
            vector: 1,
            policy: false,
            op: None,
        };
        for part in inst.op.split('.').skip(1) {
            match part {
                "global" => q.space = Space::Global,
                "shared" | "shared::cta" | "shared::cluster" => q.space = Space::Shared,
                "local" => q.space = Space::Local,
                "const" => q.space = Space::Const,
                "param" | "param::entry" | "param::func" => q.space = Space::Param,
                "weak" => q.order = MemoryOrder::Weak,
                "relaxed" => q.order = MemoryOrder::Relaxed,
                "acquire" => q.order = MemoryOrder::Acquire,
                "release" => q.order = MemoryOrder::Release,
                "acq_rel" => q.order = MemoryOrder::AcqRel,
                "volatile" => q.order = MemoryOrder::Volatile,
                "mmio" => q.order = MemoryOrder::Mmio,
                // Every cluster has one block.
                "cta" | "cluster" => q.scope = Scope::Cta,
                "gpu" => q.scope = Scope::Gpu,
                "sys" => q.scope = Scope::Sys,
                "nc" | "ca" | "cg" | "cs" | "lu" | "cv" | "wb" | "wt" | "noftz" | "unified" => {}
                "v2" => q.vector = 2,
                "v4" => q.vector = 4,
                "v8" => q.vector = 8,
                "add" if atomic => q.op = Some(AtomOp::Add),
                "min" if atomic => q.op = Some(AtomOp::Min),
                "max" if atomic => q.op = Some(AtomOp::Max),
                "and" if atomic => q.op = Some(AtomOp::And),
                "or" if atomic => q.op = Some(AtomOp::Or),
                "xor" if atomic => q.op = Some(AtomOp::Xor),
                "inc" if atomic => q.op = Some(AtomOp::Inc),
                "dec" if atomic => q.op = Some(AtomOp::Dec),
                "exch" if atomic => q.op = Some(AtomOp::Exch),
                "cas" if atomic => q.op = Some(AtomOp::Cas),
                "level::cache_hint" => q.policy = true,
                _ if part.starts_with("L1::") || part.starts_with("L2::") => {
                    q.policy |= part.ends_with("::cache_hint");
                }
                _ => match Ty::parse(part) {
                    Some(ty) if ty != Ty::Pred && !ty.special() && q.ty.is_none() => q.ty = Some(ty),
                    _ => return self.unsupported(inst, "it has a qualifier that is not supported"),
                },
            }
        }
        Ok(q)
    }

    pub(super) fn load_store(&mut self, inst: &'m AstInst<'a>) -> Result<()> {
        let load = !inst.op.starts_with("st");
        let q = self.qualifiers(inst, false)?;
        let Some(ty) = q.ty else { return self.unsupported(inst, "it has no type") };
        if u64::from(q.vector) * ty.bytes() as u64 > 32 {
            return self.unsupported(inst, "a vector has at most 32 bytes");
        }
        self.count(inst, 2..=2 + usize::from(q.policy))?;
        let order_fits = match q.order {
            MemoryOrder::Acquire => load,
            MemoryOrder::Release => !load,
            MemoryOrder::AcqRel => false,
            _ => true,
        };
        if !order_fits {
            return self.unsupported(inst, "loads acquire and stores release");
        }
        let data_index = usize::from(!load);
        if ty == Ty::B128 {
            return self.wide_access(inst, &q, load);
        }
        let data = self.operand(inst, data_index)?;
        let single = std::slice::from_ref(data);
        let parts: &'m [AstOperand<'a>] = if let AstOperand::Vector(parts) = data { parts } else { single };
        if parts.len() != usize::from(q.vector) {
            return self.bad(inst, data_index, "must have as many parts as the vector");
        }
        let natural = Bank::of_bytes(ty.bytes()).unwrap_or(Bank::B64);
        // The widest register decides; NVRTC uses one width in a vector.
        let mut bank = None;
        for part in parts {
            if let Some((found, _)) = self.data_register(inst, data_index, part, ty)?
                && *bank.get_or_insert(found) != found
            {
                return self.bad(inst, data_index, "mixes registers of different widths");
            }
        }
        let bank = bank.unwrap_or(natural);
        let mut regs = [NO_NAME; 8];
        for (i, part) in parts.iter().enumerate() {
            regs[i] = if load {
                self.destination(inst, data_index, part, bank)?
            } else {
                self.scalar(inst, data_index, part, bank)?
            };
        }
        let address = self.address(inst, usize::from(load))?;
        let Qualifiers { space, order, scope, vector: count, .. } = q;
        let access = MemoryAccess { space, ty, count, whole: count == 1, order, scope, bank };
        self.push(if load {
            PtxOp::Load(access, address, regs)
        } else {
            PtxOp::Store(access, address, regs)
        });
        Ok(())
    }

    /// One access of 128 bits.
    fn wide_access(&mut self, inst: &'m AstInst<'a>, q: &Qualifiers, load: bool) -> Result<()> {
        if q.vector != 1 {
            return self.unsupported(inst, "vectors of 128-bit values are not supported");
        }
        let data_index = usize::from(!load);
        let halves = self.wide(inst, data_index, self.operand(inst, data_index)?)?;
        let mut regs = [NO_NAME; 8];
        regs[..2].copy_from_slice(&halves);
        let address = self.address(inst, usize::from(load))?;
        let Qualifiers { space, order, scope, .. } = *q;
        let access =
            MemoryAccess { space, ty: Ty::U64, count: 2, whole: true, order, scope, bank: Bank::B64 };
        self.push(if load {
            PtxOp::Load(access, address, regs)
        } else {
            PtxOp::Store(access, address, regs)
        });
        Ok(())
    }

    fn data_register(
        &mut self,
        inst: &'m AstInst<'a>,
        index: usize,
        part: &'m AstOperand<'a>,
        ty: Ty,
    ) -> Result<Option<(Bank, Name)>> {
        if matches!(part, AstOperand::Name("_")) {
            return Ok(None);
        }
        self.any_width(inst, index, part, ty.bytes())
    }

    /// Distance between an address in the named space and the generic one.
    fn window(&self, inst: &AstInst<'_>) -> Result<u64> {
        for part in inst.op.split('.').skip(1) {
            return Ok(match part {
                "to" => continue,
                "global" | "const" => 0,
                "shared" | "shared::cta" | "shared::cluster" => SHARED_WINDOW,
                "local" => LOCAL_WINDOW,
                "param" | "param::entry" => PARAM_WINDOW,
                _ => break,
            });
        }
        self.unsupported(inst, "it names no supported state space")
    }

    pub(super) fn cvta(&mut self, inst: &'m AstInst<'a>) -> Result<()> {
        let window = self.window(inst)?;
        if !inst.op.ends_with(".u64") {
            return self.unsupported(inst, "addresses have 64 bits");
        }
        self.count(inst, 2..=2)?;
        let d = self.dst(inst, 0, Bank::B64)?;
        let a = self.src(inst, 1, Bank::B64)?;
        if window == 0 {
            self.push(PtxOp::Unary(UnaryOp::Mov64, [d, a]));
            return Ok(());
        }
        let by = self.constant(Bank::B64, window)?;
        let kind = if inst.op.contains(".to.") { BinaryOp::Sub64 } else { BinaryOp::Add64 };
        self.push(PtxOp::Binary(kind, [d, a, by]));
        Ok(())
    }

    pub(super) fn isspacep(&mut self, inst: &'m AstInst<'a>) -> Result<()> {
        let window = self.window(inst)?;
        self.count(inst, 2..=2)?;
        let d = self.pred_dst(inst, 0)?;
        let a = self.src(inst, 1, Bank::B64)?;
        let (top, shift) = (self.temp(Bank::B64)?, self.constant(Bank::B32, WINDOW_SHIFT.into())?);
        let b = self.constant(Bank::B64, window >> WINDOW_SHIFT)?;
        self.push(PtxOp::Binary(BinaryOp::ShrU64, [top, a, shift]));
        self.push(PtxOp::Setp { cmp: Cmp::Eq, ty: Ty::U64, d, q: NO_NAME, a: top, b, logic: None });
        Ok(())
    }
}
