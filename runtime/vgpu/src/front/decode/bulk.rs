//! Asynchronous copies: `cp.async` and `cp.async.bulk`.

use super::{Decoder, Result, Symbol};
use crate::arithmetic::types::Ty;
use crate::fault::Space;
use crate::front::ast::{AstInst, AstOperand};
use crate::isa::{Address, Async, AsyncCopy, PredOperand, PtxOp};
use crate::registers::{Bank, NO_NAME, Name};

const NO_PREDICATE: PredOperand<Name> = PredOperand { reg: NO_NAME, negated: false };

impl<'m, 'a> Decoder<'m, 'a> {
    pub(super) fn copy(&mut self, inst: &'m AstInst<'a>) -> Result<()> {
        let parts: Vec<&str> = inst.op.split('.').collect();
        let hint = |part: &&str| part.starts_with("L2::");
        let copy = match parts.as_slice() {
            ["cp", "async", "commit_group"] => self.group(inst, Async::Commit { bulk: false })?,
            ["cp", "async", "bulk", "commit_group"] => self.group(inst, Async::Commit { bulk: true })?,
            // Everything so far belongs to a group then.
            ["cp", "async", "wait_all"] => {
                self.group(inst, Async::Commit { bulk: false })?;
                self.push_async(Async::Commit { bulk: false });
                Async::Wait { bulk: false, read: false, pending: 0 }
            }
            ["cp", "async", "wait_group"] => {
                Async::Wait { bulk: false, read: false, pending: self.pending(inst)? }
            }
            ["cp", "async", "bulk", "wait_group"] => {
                Async::Wait { bulk: true, read: false, pending: self.pending(inst)? }
            }
            ["cp", "async", "bulk", "wait_group", "read"] => {
                Async::Wait { bulk: true, read: true, pending: self.pending(inst)? }
            }
            ["cp", "async", "mbarrier", "arrive", rest @ ..] => self.async_arrive(inst, rest)?,
            ["cp", "async", "bulk", "prefetch", "L2", "global", rest @ ..] if rest.iter().all(hint) => {
                self.address(inst, 0)?;
                self.src(inst, 1, Bank::B32)?;
                self.push(PtxOp::Nop);
                return Ok(());
            }
            ["cp", "async", "bulk", to, from, "mbarrier::complete_tx::bytes", rest @ ..]
                if rest.iter().all(|p| *p == "L2::cache_hint") =>
            {
                match (*to, *from) {
                    ("shared::cta" | "shared::cluster", "global") | ("shared::cluster", "shared::cta") => {}
                    _ => return self.unsupported(inst, "nothing is copied from there to there in this way"),
                }
                self.count(inst, 4..=4 + rest.len())?;
                let mbarrier = Some((Space::Shared, self.address(inst, 3)?));
                let from = if *from == "global" { Space::Global } else { Space::Shared };
                self.bulk(inst, Space::Shared, from, mbarrier)?
            }
            ["cp", "async", "bulk", "global", "shared::cta", "bulk_group", rest @ ..]
                if rest.iter().all(|p| *p == "L2::cache_hint") =>
            {
                self.count(inst, 3..=3 + rest.len())?;
                self.bulk(inst, Space::Global, Space::Shared, None)?
            }
            ["cp", "async", cache @ ("ca" | "cg"), "shared" | "shared::cta", "global", rest @ ..]
                if rest.iter().all(hint) =>
            {
                self.small_copy(inst, *cache == "cg", rest.contains(&"L2::cache_hint"))?
            }
            _ => {
                return self.unsupported(inst, "the machine has no such instruction, or not this form of it");
            }
        };
        self.push_async(copy);
        Ok(())
    }

    fn push_async(&mut self, copy: Async<Name>) {
        self.out.asyncs.push(copy);
        let number = self.out.asyncs.len() as u32 - 1;
        self.push(PtxOp::Async(number));
    }

    fn group(&self, inst: &AstInst<'_>, copy: Async<Name>) -> Result<Async<Name>> {
        self.count(inst, 0..=0)?;
        Ok(copy)
    }

    /// Groups that may stay pending.
    fn pending(&self, inst: &'m AstInst<'a>) -> Result<u64> {
        self.count(inst, 1..=1)?;
        match *self.operand(inst, 0)? {
            AstOperand::Int(pending) => Ok(pending),
            _ => self.bad(inst, 0, "must be a constant"),
        }
    }

    fn bulk(
        &mut self,
        inst: &'m AstInst<'a>,
        to: Space,
        from: Space,
        mbarrier: Option<(Space, Address<Name>)>,
    ) -> Result<Async<Name>> {
        let (to, from) = ((to, self.address(inst, 0)?), (from, self.address(inst, 1)?));
        let size = self.src(inst, 2, Bank::B32)?;
        Ok(Async::Copy(AsyncCopy {
            bulk: true,
            to,
            from,
            size,
            read: NO_NAME,
            ignore: NO_PREDICATE,
            mbarrier,
        }))
    }

    /// `cp.async.ca` of 4, 8 or 16 bytes and `cp.async.cg` of 16.
    fn small_copy(&mut self, inst: &'m AstInst<'a>, sixteen: bool, policy: bool) -> Result<Async<Name>> {
        self.count(inst, 3 + usize::from(policy)..=4 + usize::from(policy))?;
        let to = (Space::Shared, self.address(inst, 0)?);
        let from = (Space::Global, self.address(inst, 1)?);
        let size = match *self.operand(inst, 2)? {
            AstOperand::Int(bytes @ 16) => bytes,
            AstOperand::Int(bytes @ (4 | 8)) if !sixteen => bytes,
            _ => return self.bad(inst, 2, "must be 16, or 4 or 8 if it is `.ca`"),
        };
        let size = self.constant(Bank::B32, size)?;
        let (mut read, mut ignore) = (NO_NAME, NO_PREDICATE);
        if inst.operands.len() == 4 + usize::from(policy) {
            let predicate = match *self.operand(inst, 3)? {
                AstOperand::Not(_) => true,
                AstOperand::Name(name) => matches!(self.find(name)?, Symbol::Reg(Ty::Pred, _)),
                _ => false,
            };
            if predicate {
                ignore = self.pred_src(inst, 3)?;
            } else {
                read = self.src(inst, 3, Bank::B32)?;
            }
        }
        Ok(Async::Copy(AsyncCopy { bulk: false, to, from, size, read, ignore, mbarrier: None }))
    }

    fn async_arrive(&mut self, inst: &'m AstInst<'a>, rest: &[&str]) -> Result<Async<Name>> {
        let [middle @ .., "b64"] = rest else {
            return self.unsupported(inst, "the machine has no such instruction, or not this form of it");
        };
        let (mut space, mut counted) = (Space::Generic, false);
        for &part in middle {
            match part {
                "noinc" => counted = true,
                "shared" | "shared::cta" => space = Space::Shared,
                _ => return self.unsupported(inst, "it has a qualifier that is not supported"),
            }
        }
        self.count(inst, 1..=1)?;
        let mbarrier = (space, self.address(inst, 0)?);
        Ok(Async::Arrive { mbarrier, counted })
    }
}
