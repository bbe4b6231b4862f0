//! Instructions on mbarriers.

use super::{Decoder, Result};
use crate::arithmetic::tables::{BinaryOp, UnaryOp};
use crate::fault::Space;
use crate::front::ast::{AstInst, AstOperand};
use crate::isa::{Mbarrier, MbarrierKind, MemoryOrder, PENDING_BITS, PtxOp, Scope};
use crate::registers::{Bank, NO_NAME};

impl<'m, 'a> Decoder<'m, 'a> {
    pub(super) fn mbarrier(&mut self, inst: &'m AstInst<'a>) -> Result<()> {
        let parts: Vec<&str> = inst.op.split('.').collect();
        let [_, verb, middle @ .., "b64"] = parts.as_slice() else {
            return self.unsupported(inst, "the machine has no such instruction, or not this form of it");
        };
        if *verb == "pending_count" {
            return self.pending_count(inst, middle);
        }
        let drop = *verb == "arrive_drop";
        let mut kind = match *verb {
            "init" => MbarrierKind::Init,
            "inval" => MbarrierKind::Inval,
            "arrive" | "arrive_drop" => MbarrierKind::Arrive { drop, expect: false, no_complete: false },
            "expect_tx" => MbarrierKind::ExpectTx,
            "complete_tx" => MbarrierKind::CompleteTx,
            "test_wait" | "try_wait" => MbarrierKind::Wait { parity: false },
            _ => {
                return self.unsupported(inst, "the machine has no such instruction, or not this form of it");
            }
        };
        let waits = matches!(kind, MbarrierKind::Wait { .. });
        let ordered = waits || matches!(kind, MbarrierKind::Arrive { .. });
        let changes = matches!(kind, MbarrierKind::ExpectTx | MbarrierKind::CompleteTx);
        let (mut space, mut remote) = (Space::Generic, false);
        let (mut order, mut scope) = (None, None);
        for &part in middle {
            match (part, &mut kind) {
                ("shared" | "shared::cta", _) => space = Space::Shared,
                ("shared::cluster", _) => (space, remote) = (Space::Shared, true),
                ("expect_tx", MbarrierKind::Arrive { expect, .. }) => *expect = true,
                ("noComplete", MbarrierKind::Arrive { no_complete, .. }) => *no_complete = true,
                ("parity", MbarrierKind::Wait { parity }) => *parity = true,
                ("relaxed", _) if ordered || changes => order = Some(MemoryOrder::Relaxed),
                ("release", _) if ordered && !waits => order = Some(MemoryOrder::Release),
                ("acquire", _) if waits => order = Some(MemoryOrder::Acquire),
                ("cta" | "cluster", _) if ordered || changes => scope = Some(Scope::Cta),
                _ => return self.unsupported(inst, "it has a qualifier that is not supported"),
            }
        }
        if order.is_some() != scope.is_some() {
            return self.unsupported(inst, "an order and a scope go together");
        }
        let default = match kind {
            MbarrierKind::Wait { .. } => MemoryOrder::Acquire,
            MbarrierKind::Arrive { .. } => MemoryOrder::Release,
            _ => MemoryOrder::Relaxed,
        };
        let (mut d, mut a) = (NO_NAME, NO_NAME);
        let at = usize::from(ordered);
        match kind {
            MbarrierKind::Init | MbarrierKind::ExpectTx | MbarrierKind::CompleteTx => {
                self.count(inst, 2..=2)?;
                a = self.src(inst, 1, Bank::B32)?;
            }
            MbarrierKind::Inval => self.count(inst, 1..=1)?,
            MbarrierKind::Arrive { expect, no_complete, .. } => {
                let least = 2 + usize::from(expect || no_complete);
                self.count(inst, least..=3)?;
                let sink = matches!(self.operand(inst, 0)?, AstOperand::Name("_"));
                if remote && !sink {
                    return self.bad(inst, 0, "must be `_`: an mbarrier of the cluster gives no state");
                }
                if !sink {
                    d = self.dst(inst, 0, Bank::B64)?;
                }
                if inst.operands.len() == 3 {
                    a = self.src(inst, 2, Bank::B32)?;
                }
            }
            MbarrierKind::Wait { parity } => {
                self.count(inst, 3..=3 + usize::from(*verb == "try_wait"))?;
                d = self.pred_dst(inst, 0)?;
                a = self.src(inst, 2, if parity { Bank::B32 } else { Bank::B64 })?;
            }
        }
        let address = self.address(inst, at)?;
        let (order, scope) = (order.unwrap_or(default), scope.unwrap_or(Scope::Cta));
        self.out.mbarriers.push(Mbarrier { kind, space, address, d, a, order, scope });
        let number = self.out.mbarriers.len() as u32 - 1;
        self.push(PtxOp::Mbarrier(number));
        Ok(())
    }

    /// Arrivals that were pending when the state was given.
    fn pending_count(&mut self, inst: &'m AstInst<'a>, middle: &[&str]) -> Result<()> {
        if !middle.is_empty() {
            return self.unsupported(inst, "the machine has no such instruction, or not this form of it");
        }
        self.count(inst, 2..=2)?;
        let (d, state) = (self.dst(inst, 0, Bank::B32)?, self.src(inst, 1, Bank::B64)?);
        let (kept, mask) = (self.temp(Bank::B64)?, self.constant(Bank::B64, (1 << PENDING_BITS) - 1)?);
        self.push(PtxOp::Binary(BinaryOp::And64, [kept, state, mask]));
        self.push(PtxOp::Unary(UnaryOp::U64ToU32, [d, kept]));
        Ok(())
    }
}
