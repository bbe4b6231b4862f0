//! Parameters of entries and device functions, and the copies of those whose address is a value.

use super::{Decoder, MAX_LOCAL_BYTES, MAX_PARAM_BYTES, Result, Symbol, align_up};
use crate::arithmetic::types::Ty;
use crate::fault::{PtxProblemKind, Space};
use crate::front::ast::{AstOperand, AstStatementKind, Var};
use crate::isa::{Address, FRAME_PARAMS, FunctionParam, MemoryAccess, MemoryOrder, Preset, PtxOp, Scope};
use crate::registers::{Bank, NO_NAME};
use rustc_hash::FxHashSet;

impl<'m, 'a> Decoder<'m, 'a> {
    /// Places the parameters: those of kernels one after another, those of device functions in each activation.
    pub(super) fn parameters(&mut self) -> Result<()> {
        let ast = self.ast;
        let mut top = 0;
        for (list, returns) in [(&ast.returns, true), (&ast.params, false)] {
            for var in list {
                let offset = align_up(top, var.align);
                top = offset + var.bytes;
                let limit = MAX_PARAM_BYTES;
                if top > limit {
                    return Err(PtxProblemKind::Limit { what: "bytes of parameters", limit });
                }
                let param = FunctionParam { offset: offset as u32, bytes: var.bytes as u32 };
                if returns { &mut self.out.returns } else { &mut self.out.params }.push(param);
                let address = if ast.entry { offset } else { FRAME_PARAMS + offset };
                self.declare(var.name, Symbol::Param(address))?;
            }
        }
        if ast.entry {
            self.out.param_bytes = top as u32;
            return Ok(());
        }
        self.frame_params = top;
        self.out.frame_param_bytes = top as u32;
        let values = self.values();
        let params = ast.params.iter().zip(self.out.params.clone());
        for (var, param) in params.filter(|(var, _)| values.contains(var.name)) {
            self.copy_param(var, FRAME_PARAMS + u64::from(param.offset))?;
        }
        Ok(())
    }

    /// The names that the function uses as values, not as what a load or a call names.
    fn values(&self) -> FxHashSet<&'a str> {
        let mut values = FxHashSet::default();
        let mut waiting: Vec<&AstOperand<'a>> = Vec::new();
        for statement in self.ast.body.iter().flatten() {
            let AstStatementKind::Inst(inst) = &statement.kind else { continue };
            waiting.extend(&inst.operands);
            while let Some(operand) = waiting.pop() {
                match operand {
                    AstOperand::Name(name) | AstOperand::NamePlus(name, _) => {
                        values.insert(*name);
                    }
                    AstOperand::Vector(parts) => waiting.extend(parts),
                    _ => {}
                }
            }
        }
        values
    }

    /// Copies a parameter of a device function to local memory when the function begins: its address lies there.
    fn copy_param(&mut self, var: &'m Var<'a>, from: u64) -> Result<()> {
        let to = align_up(self.out.local_bytes, var.align);
        self.out.local_bytes = to + var.bytes;
        let limit = MAX_LOCAL_BYTES;
        if self.out.local_bytes > limit {
            return Err(PtxProblemKind::Limit { what: "bytes of local memory", limit });
        }
        let mut offset = 0;
        while offset < var.bytes {
            let widest = [(8, Ty::U64), (4, Ty::U32), (2, Ty::U16)];
            let fits = |(bytes, _): &(u64, Ty)| u64::from(var.align).is_multiple_of(*bytes);
            let rest = var.bytes - offset;
            let (bytes, ty) =
                widest.into_iter().find(|width| fits(width) && width.0 <= rest).unwrap_or((1, Ty::U8));
            let mut regs = [NO_NAME; 8];
            regs[0] = self.temp(Bank::B64)?;
            let access = |space| MemoryAccess {
                space,
                ty,
                count: 1,
                whole: true,
                order: MemoryOrder::Weak,
                scope: Scope::Sys,
                bank: Bank::B64,
            };
            let at = |base| Address { base, wide: true, offset: 0 };
            let source = self.preset(Bank::B64, Preset::Const(from + offset))?;
            let dest = self.preset(Bank::B64, Preset::Local(to + offset))?;
            self.push_before(PtxOp::Load(access(Space::Param), at(source), regs));
            self.push_before(PtxOp::Store(access(Space::Local), at(dest), regs));
            offset += bytes;
        }
        self.addressed.insert(from, to);
        Ok(())
    }

    /// The variable whose address is the value of a name: of a parameter that has a copy it is the copy.
    pub(super) fn as_value(&self, symbol: Symbol) -> Symbol {
        match symbol {
            Symbol::Param(at) => self.addressed.get(&at).map_or(symbol, |copy| Symbol::Local(*copy)),
            _ => symbol,
        }
    }
}
