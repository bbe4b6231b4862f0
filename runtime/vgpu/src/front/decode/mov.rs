//! `mov`: copies, addresses, clocks, and vectors packed into registers.

use super::{Decoder, Result};
use crate::arithmetic::tables::{BinaryOp, UnaryOp};
use crate::arithmetic::types::Ty;
use crate::front::ast::{AstInst, AstOperand};
use crate::isa::{ClockUnit, PtxOp};
use crate::registers::{Bank, Name};

impl<'m, 'a> Decoder<'m, 'a> {
    pub(super) fn mov(&mut self, inst: &'m AstInst<'a>) -> Result<()> {
        self.count(inst, 2..=2)?;
        if inst.op == "mov.b128" {
            return self.mov_wide(inst);
        }
        let ty = self.last_ty(inst)?;
        if ty == Ty::Pred {
            let d = self.pred_dst(inst, 0)?;
            let a = self.pred_src(inst, 1)?;
            self.push(PtxOp::PredMov(d, a));
            return Ok(());
        }
        let bank = self.bank(inst, ty)?;
        match (self.operand(inst, 0)?, self.operand(inst, 1)?) {
            (AstOperand::Vector(parts), _) => {
                let a = self.src(inst, 1, bank)?;
                return self.unpack(inst, parts, a, bank);
            }
            (_, AstOperand::Vector(parts)) => {
                let d = self.dst(inst, 0, bank)?;
                return self.pack(inst, parts, d, bank);
            }
            (_, AstOperand::Name(name)) => {
                let clock = match *name {
                    "%clock" | "%clock64" => Some(ClockUnit::Cycles),
                    "%globaltimer" | "%globaltimer_lo" => Some(ClockUnit::Nanoseconds),
                    _ => None,
                };
                if let Some(what) = clock {
                    let d = self.dst(inst, 0, bank)?;
                    self.push(PtxOp::Clock { what, wide: bank == Bank::B64, d });
                    return Ok(());
                }
                let upper = match *name {
                    "%clock_hi" => Some(ClockUnit::Cycles),
                    "%globaltimer_hi" => Some(ClockUnit::Nanoseconds),
                    _ => None,
                };
                if let Some(what) = upper {
                    let (d, wide) = (self.dst(inst, 0, Bank::B32)?, self.temp(Bank::B64)?);
                    self.push(PtxOp::Clock { what, wide: true, d: wide });
                    self.push(PtxOp::Unary(UnaryOp::High32, [d, wide]));
                    return Ok(());
                }
            }
            _ => {}
        }
        let kind = match bank {
            Bank::B16 => UnaryOp::Mov16,
            Bank::B32 => UnaryOp::Mov32,
            Bank::B64 => UnaryOp::Mov64,
        };
        let d = self.dst(inst, 0, bank)?;
        let a = self.src(inst, 1, bank)?;
        self.push(PtxOp::Unary(kind, [d, a]));
        Ok(())
    }

    /// 128 bits: from register to register, and from and to two or four parts.
    fn mov_wide(&mut self, inst: &'m AstInst<'a>) -> Result<()> {
        match (self.operand(inst, 0)?, self.operand(inst, 1)?) {
            (AstOperand::Vector(parts), source) => {
                let halves = self.wide(inst, 1, source)?;
                match parts.len() {
                    2 => {
                        let d = [0, 1].map(|i| self.destination(inst, 0, &parts[i], Bank::B64));
                        let [low, high] = d;
                        self.push(PtxOp::Unary(UnaryOp::Mov64, [low?, halves[0]]));
                        self.push(PtxOp::Unary(UnaryOp::Mov64, [high?, halves[1]]));
                        Ok(())
                    }
                    4 => {
                        self.unpack(inst, &parts[..2], halves[0], Bank::B64)?;
                        self.unpack(inst, &parts[2..], halves[1], Bank::B64)
                    }
                    _ => self.unsupported(inst, "128 bits have two parts of 64 bits or four of 32"),
                }
            }
            (destination, AstOperand::Vector(parts)) => {
                let halves = self.wide(inst, 0, destination)?;
                match parts.len() {
                    2 => {
                        let [low, high] = [0, 1].map(|i| self.scalar(inst, 1, &parts[i], Bank::B64));
                        self.push(PtxOp::Unary(UnaryOp::Mov64, [halves[0], low?]));
                        self.push(PtxOp::Unary(UnaryOp::Mov64, [halves[1], high?]));
                        Ok(())
                    }
                    4 => {
                        self.pack(inst, &parts[..2], halves[0], Bank::B64)?;
                        self.pack(inst, &parts[2..], halves[1], Bank::B64)
                    }
                    _ => self.unsupported(inst, "128 bits have two parts of 64 bits or four of 32"),
                }
            }
            (destination, source) => {
                let (d, a) = (self.wide(inst, 0, destination)?, self.wide(inst, 1, source)?);
                self.push(PtxOp::Unary(UnaryOp::Mov64, [d[0], a[0]]));
                self.push(PtxOp::Unary(UnaryOp::Mov64, [d[1], a[1]]));
                Ok(())
            }
        }
    }

    fn unpack(
        &mut self,
        inst: &'m AstInst<'a>,
        parts: &'m [AstOperand<'a>],
        a: Name,
        bank: Bank,
    ) -> Result<()> {
        let d = |this: &mut Self, i: usize, bank| this.destination(inst, 0, &parts[i], bank);
        match (bank, parts.len()) {
            (Bank::B32, 2) => {
                let (low, high) = (d(self, 0, Bank::B16)?, d(self, 1, Bank::B16)?);
                self.push(PtxOp::Unary(UnaryOp::U32ToU16, [low, a]));
                self.push(PtxOp::Unary(UnaryOp::High16, [high, a]));
            }
            (Bank::B64, 2) => {
                let (low, high) = (d(self, 0, Bank::B32)?, d(self, 1, Bank::B32)?);
                self.push(PtxOp::Unary(UnaryOp::U64ToU32, [low, a]));
                self.push(PtxOp::Unary(UnaryOp::High32, [high, a]));
            }
            (Bank::B64, 4) => {
                let halves = [self.temp(Bank::B32)?, self.temp(Bank::B32)?];
                self.push(PtxOp::Unary(UnaryOp::U64ToU32, [halves[0], a]));
                self.push(PtxOp::Unary(UnaryOp::High32, [halves[1], a]));
                for i in 0..4 {
                    let part = d(self, i, Bank::B16)?;
                    let kind = if i % 2 == 0 { UnaryOp::U32ToU16 } else { UnaryOp::High16 };
                    self.push(PtxOp::Unary(kind, [part, halves[i / 2]]));
                }
            }
            _ => return self.unsupported(inst, "vectors of 2 or 4 parts of 16 or 32 bits are unpacked"),
        }
        Ok(())
    }

    fn pack(
        &mut self,
        inst: &'m AstInst<'a>,
        parts: &'m [AstOperand<'a>],
        d: Name,
        bank: Bank,
    ) -> Result<()> {
        let a = |this: &mut Self, i: usize, bank| this.scalar(inst, 1, &parts[i], bank);
        match (bank, parts.len()) {
            (Bank::B32, 2) => {
                let (low, high) = (a(self, 0, Bank::B16)?, a(self, 1, Bank::B16)?);
                self.push(PtxOp::Binary(BinaryOp::Pack16, [d, low, high]));
            }
            (Bank::B64, 2) => {
                let (low, high) = (a(self, 0, Bank::B32)?, a(self, 1, Bank::B32)?);
                self.push(PtxOp::Binary(BinaryOp::Pack32, [d, low, high]));
            }
            (Bank::B64, 4) => {
                let halves = [self.temp(Bank::B32)?, self.temp(Bank::B32)?];
                for (i, &half) in halves.iter().enumerate() {
                    let (low, high) = (a(self, 2 * i, Bank::B16)?, a(self, 2 * i + 1, Bank::B16)?);
                    self.push(PtxOp::Binary(BinaryOp::Pack16, [half, low, high]));
                }
                self.push(PtxOp::Binary(BinaryOp::Pack32, [d, halves[0], halves[1]]));
            }
            _ => return self.unsupported(inst, "vectors of 2 or 4 parts of 16 or 32 bits are packed"),
        }
        Ok(())
    }
}
