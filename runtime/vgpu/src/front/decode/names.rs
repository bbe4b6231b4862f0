//! Operands -> registers.

use super::{Decoder, Result, Symbol};
use crate::arithmetic::tables::{BinaryOp, UnaryOp};
use crate::arithmetic::types::Ty;
use crate::fault::PtxProblemKind;
use crate::front::ast::{AstInst, AstOperand};
use crate::isa::{Address, LaneMask, PredOperand, Preset, PtxOp};
use crate::registers::{Bank, NO_NAME, Name};

/// Registers of one width that a function may name.
const MAX_REGISTERS: usize = 1 << 20;
/// Values that registers of a function have from the start: each takes a place in every warp for as long as it runs.
/// Those that come later in the text are given where they are needed.
const MAX_PRESETS: usize = 256;

impl<'m, 'a> Decoder<'m, 'a> {
    pub(super) fn new_reg(&mut self, ty: Ty) -> Result<Name> {
        let layout = &mut self.out.layout;
        let size = match ty {
            Ty::Pred => &mut layout.pred,
            _ => match Bank::of_bytes(ty.bytes()) {
                Some(Bank::B16) => &mut layout.b16,
                Some(Bank::B32) => &mut layout.b32,
                Some(Bank::B64) => &mut layout.b64,
                None => return Err(PtxProblemKind::Directive { directive: ".reg .b128".into() }),
            },
        };
        let limit = MAX_REGISTERS as u64;
        if *size >= MAX_REGISTERS {
            return Err(PtxProblemKind::Limit { what: "registers of one width", limit });
        }
        *size += 1;
        Ok(*size as Name - 1)
    }

    /// The symbol of a new register.
    pub(super) fn register(&mut self, ty: Ty) -> Result<Symbol> {
        Ok(match ty {
            Ty::B128 => Symbol::Wide([self.new_reg(Ty::U64)?, self.new_reg(Ty::U64)?]),
            _ => Symbol::Reg(ty, self.new_reg(ty)?),
        })
    }

    pub(super) fn temp(&mut self, bank: Bank) -> Result<Name> {
        self.new_reg(match bank {
            Bank::B16 => Ty::U16,
            Bank::B32 => Ty::U32,
            Bank::B64 => Ty::U64,
        })
    }

    /// A register with a value that is known when the activation begins.
    pub(super) fn preset(&mut self, bank: Bank, preset: Preset) -> Result<Name> {
        if let Some(&reg) = self.presets.get(&(bank, preset)) {
            return Ok(reg);
        }
        let reg = self.temp(bank)?;
        let layout = &mut self.out.layout;
        if layout.presets.len() >= MAX_PRESETS {
            layout.late.push(preset);
            let number = layout.late.len() as u32 - 1;
            self.push_before(PtxOp::Preset(bank, reg, number));
            return Ok(reg);
        }
        self.presets.insert((bank, preset), reg);
        self.out.layout.presets.push((bank, reg, preset));
        Ok(reg)
    }

    pub(super) fn constant(&mut self, bank: Bank, bits: u64) -> Result<Name> {
        let bits = match bank {
            Bank::B16 => bits & 0xffff,
            Bank::B32 => bits & 0xffff_ffff,
            Bank::B64 => bits,
        };
        self.preset(bank, Preset::Const(bits))
    }

    pub(super) fn find(&mut self, name: &'a str) -> Result<Symbol> {
        // A register of a range: the longest run of digits at the end is its number.
        let prefix = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let number: Option<u32> = name[prefix.len()..].parse().ok();
        for depth in (0..self.scopes.len()).rev() {
            if let Some(&symbol) = self.scopes[depth].symbols.get(name)
                && !matches!(symbol, Symbol::Range(..))
            {
                return Ok(symbol);
            }
            if let (Some(number), Some(&Symbol::Range(ty, count))) =
                (number, self.scopes[depth].symbols.get(prefix))
                && number < count
            {
                let symbol = self.register(ty)?;
                self.scopes[depth].symbols.insert(name, symbol);
                return Ok(symbol);
            }
        }
        match self.globals.symbols.get(name) {
            Some(&symbol) => Ok(symbol),
            None => Err(PtxProblemKind::Undeclared { name: name.into() }),
        }
    }

    /// A special register with a constant value.
    fn special(name: &str) -> Option<Preset> {
        let component = |preset: fn(u8) -> Preset, axis: &str| match axis {
            "x" => Some(preset(0)),
            "y" => Some(preset(1)),
            "z" => Some(preset(2)),
            _ => None,
        };
        Some(match name {
            "%laneid" => Preset::LaneId,
            "%warpid" => Preset::WarpId,
            "%nwarpid" => Preset::NWarps,
            "%smid" => Preset::SmId,
            "%nsmid" => Preset::Nctaid(0),
            "%gridid" => Preset::GridId,
            "%lanemask_eq" => Preset::LaneMask(LaneMask::Eq),
            "%lanemask_lt" => Preset::LaneMask(LaneMask::Lt),
            "%lanemask_le" => Preset::LaneMask(LaneMask::Le),
            "%lanemask_gt" => Preset::LaneMask(LaneMask::Gt),
            "%lanemask_ge" => Preset::LaneMask(LaneMask::Ge),
            // A cluster is one block.
            "%cluster_ctarank" | "%current_graph_exec" => Preset::Const(0),
            "%cluster_nctarank" => Preset::Const(1),
            "%aggr_smem_size" => Preset::SharedBytes,
            "%dynamic_smem_size" => Preset::DynamicBytes,
            "%total_smem_size" => Preset::SharedBytes,
            "WARP_SZ" => Preset::Const(32),
            _ => {
                let (register, axis) = name.split_once('.')?;
                match register {
                    "%tid" => component(Preset::Tid, axis)?,
                    "%ntid" => component(Preset::Ntid, axis)?,
                    "%ctaid" => component(Preset::Ctaid, axis)?,
                    "%nctaid" => component(Preset::Nctaid, axis)?,
                    "%clusterid" => component(Preset::Ctaid, axis)?,
                    "%nclusterid" => component(Preset::Nctaid, axis)?,
                    "%cluster_ctaid" => component(|_| Preset::Const(0), axis)?,
                    "%cluster_nctaid" => component(|_| Preset::Const(1), axis)?,
                    _ => return None,
                }
            }
        })
    }

    /// The address that a variable's name stands for, in its own space.
    fn variable_address(&mut self, symbol: Symbol, offset: i64, bank: Bank) -> Result<Option<Name>> {
        let add = |at: u64| Preset::Const(at.wrapping_add(offset as u64));
        let preset = match symbol {
            Symbol::Var(number) if bank == Bank::B64 => Preset::Var(number, offset),
            Symbol::Shared(at) => add(at),
            Symbol::Param(at) if bank == Bank::B64 => add(at),
            Symbol::DynamicShared => {
                // Where it begins is known once all static variables are.
                let begin = self.preset(bank, Preset::DynamicBegin)?;
                if offset == 0 {
                    return Ok(Some(begin));
                }
                let (d, by) = (self.temp(bank)?, self.constant(bank, offset as u64)?);
                let add = if bank == Bank::B64 { BinaryOp::Add64 } else { BinaryOp::Add32 };
                self.push(PtxOp::Binary(add, [d, begin, by]));
                return Ok(Some(d));
            }
            Symbol::Local(at) => Preset::Local(at.wrapping_add(offset as u64)),
            _ => return Ok(None),
        };
        self.preset(bank, preset).map(Some)
    }

    pub(super) fn src(&mut self, inst: &'m AstInst<'a>, index: usize, bank: Bank) -> Result<Name> {
        let operand = self.operand(inst, index)?;
        self.scalar(inst, index, operand, bank)
    }

    /// The register of a source operand, which has the width of `bank`.
    pub(super) fn scalar(
        &mut self,
        inst: &'m AstInst<'a>,
        index: usize,
        operand: &'m AstOperand<'a>,
        bank: Bank,
    ) -> Result<Name> {
        match *operand {
            AstOperand::Int(bits) => self.constant(bank, bits),
            AstOperand::F32(bits) if bank == Bank::B32 => self.constant(bank, bits.into()),
            AstOperand::F64(bits) if bank == Bank::B64 => self.constant(bank, bits),
            AstOperand::F64(bits) if bank == Bank::B32 => {
                self.constant(bank, (f64::from_bits(bits) as f32).to_bits().into())
            }
            AstOperand::Name(name) => {
                if let Some(preset) = Self::special(name) {
                    let reg = self.preset(Bank::B32, preset)?;
                    return match bank {
                        Bank::B32 => Ok(reg),
                        Bank::B64 => {
                            let wide = self.temp(Bank::B64)?;
                            self.push(PtxOp::Unary(UnaryOp::U32ToU64, [wide, reg]));
                            Ok(wide)
                        }
                        Bank::B16 => {
                            let narrow = self.temp(Bank::B16)?;
                            self.push(PtxOp::Unary(UnaryOp::U32ToU16, [narrow, reg]));
                            Ok(narrow)
                        }
                    };
                }
                match self.find(name)? {
                    Symbol::Reg(ty, reg) if ty != Ty::Pred => {
                        if Bank::of_bytes(ty.bytes()) == Some(bank) {
                            Ok(reg)
                        } else {
                            self.bad(inst, index, "is a register of another width")
                        }
                    }
                    symbol => match self.variable_address(self.as_value(symbol), 0, bank)? {
                        Some(reg) => Ok(reg),
                        None => self.bad(inst, index, "is not a value of the instruction's width"),
                    },
                }
            }
            AstOperand::NamePlus(name, offset) => {
                let symbol = self.find(name)?;
                match self.variable_address(self.as_value(symbol), offset, bank)? {
                    Some(reg) => Ok(reg),
                    None => self.bad(inst, index, "is not the address of a variable"),
                }
            }
            _ => self.bad(inst, index, "must be a register or a constant of the instruction's type"),
        }
    }

    /// A register of any width, with its bank; `least` bytes wide.
    pub(super) fn any_width(
        &mut self,
        inst: &'m AstInst<'a>,
        index: usize,
        operand: &'m AstOperand<'a>,
        least: usize,
    ) -> Result<Option<(Bank, Name)>> {
        let AstOperand::Name(name) = *operand else { return Ok(None) };
        if Self::special(name).is_some() {
            return Ok(None);
        }
        match self.find(name)? {
            Symbol::Reg(ty, reg) if ty != Ty::Pred => match Bank::of_bytes(ty.bytes()) {
                Some(bank) if bank.bytes() >= least => Ok(Some((bank, reg))),
                _ => self.bad(inst, index, "is a register narrower than the instruction's type"),
            },
            _ => Ok(None),
        }
    }

    pub(super) fn dst(&mut self, inst: &'m AstInst<'a>, index: usize, bank: Bank) -> Result<Name> {
        let operand = self.operand(inst, index)?;
        self.destination(inst, index, operand, bank)
    }

    pub(super) fn destination(
        &mut self,
        inst: &'m AstInst<'a>,
        index: usize,
        operand: &'m AstOperand<'a>,
        bank: Bank,
    ) -> Result<Name> {
        let AstOperand::Name(name) = *operand else {
            return self.bad(inst, index, "must be a register");
        };
        if name == "_" {
            return self.temp(bank);
        }
        match self.find(name)? {
            Symbol::Reg(ty, reg) if ty != Ty::Pred && Bank::of_bytes(ty.bytes()) == Some(bank) => Ok(reg),
            Symbol::Reg(..) => self.bad(inst, index, "is a register of another width"),
            _ => self.bad(inst, index, "must be a register"),
        }
    }

    /// The halves of a 128-bit register; `_` as a destination gives fresh ones.
    pub(super) fn wide(
        &mut self,
        inst: &'m AstInst<'a>,
        index: usize,
        operand: &'m AstOperand<'a>,
    ) -> Result<[Name; 2]> {
        let AstOperand::Name(name) = *operand else {
            return self.bad(inst, index, "must be a 128-bit register");
        };
        if name == "_" {
            return Ok([self.temp(Bank::B64)?, self.temp(Bank::B64)?]);
        }
        match self.find(name)? {
            Symbol::Wide(halves) => Ok(halves),
            _ => self.bad(inst, index, "must be a 128-bit register"),
        }
    }

    pub(super) fn pred_reg(&mut self, inst: &AstInst<'_>, index: usize, name: &'a str) -> Result<Name> {
        if name == "_" {
            return self.new_reg(Ty::Pred);
        }
        match self.find(name)? {
            Symbol::Reg(Ty::Pred, reg) => Ok(reg),
            _ => self.bad(inst, index, "must be a predicate"),
        }
    }

    pub(super) fn pred_dst(&mut self, inst: &'m AstInst<'a>, index: usize) -> Result<Name> {
        match *self.operand(inst, index)? {
            AstOperand::Name(name) => self.pred_reg(inst, index, name),
            _ => self.bad(inst, index, "must be a predicate"),
        }
    }

    pub(super) fn pred_src(&mut self, inst: &'m AstInst<'a>, index: usize) -> Result<PredOperand<Name>> {
        match *self.operand(inst, index)? {
            AstOperand::Name(name) => {
                Ok(PredOperand { reg: self.pred_reg(inst, index, name)?, negated: false })
            }
            AstOperand::Not(name) => {
                Ok(PredOperand { reg: self.pred_reg(inst, index, name)?, negated: true })
            }
            AstOperand::Int(value) => {
                let reg = self.new_reg(Ty::Pred)?;
                self.push(PtxOp::PredConst(reg, value != 0));
                Ok(PredOperand { reg, negated: false })
            }
            _ => self.bad(inst, index, "must be a predicate"),
        }
    }

    /// `d` or `d|p`: a register of `bank` (none if it is `_`) and a predicate (none if absent).
    pub(super) fn dst_and_pred(
        &mut self,
        inst: &'m AstInst<'a>,
        index: usize,
        bank: Bank,
    ) -> Result<(Name, Name)> {
        match self.operand(inst, index)? {
            AstOperand::Pair(d, p) => {
                let p = self.pred_reg(inst, index, p)?;
                if *d == "_" {
                    return Ok((NO_NAME, p));
                }
                match self.find(d)? {
                    Symbol::Reg(ty, reg) if ty != Ty::Pred && Bank::of_bytes(ty.bytes()) == Some(bank) => {
                        Ok((reg, p))
                    }
                    _ => self.bad(inst, index, "is not a register of the instruction's width"),
                }
            }
            _ => Ok((self.dst(inst, index, bank)?, NO_NAME)),
        }
    }

    pub(super) fn address(&mut self, inst: &'m AstInst<'a>, index: usize) -> Result<Address<Name>> {
        let AstOperand::Address(base, offset) = *self.operand(inst, index)? else {
            return self.bad(inst, index, "must be an address in brackets");
        };
        let Some(name) = base else {
            return Ok(Address { base: self.constant(Bank::B64, offset as u64)?, wide: true, offset: 0 });
        };
        match self.find(name)? {
            Symbol::Reg(ty, reg) if (ty.bytes() == 8 || ty.bytes() == 4) => match i32::try_from(offset) {
                Ok(offset) => Ok(Address { base: reg, wide: ty.bytes() == 8, offset }),
                Err(_) => self.bad(inst, index, "has an offset beyond 32 bits"),
            },
            symbol => match self.variable_address(symbol, offset, Bank::B64)? {
                Some(base) => Ok(Address { base, wide: true, offset: 0 }),
                None => self.bad(inst, index, "is not an address"),
            },
        }
    }
}
