//! Branches, calls, barriers and what the lanes of a warp do together.

use super::{Decoder, Result, Symbol};
use crate::arithmetic::types::Ty;
use crate::fault::PtxProblemKind;
use crate::front::ast::{AstInst, AstOperand};
use crate::isa::{
    Barrier, BarrierMode, CallSite, FRAME_PARAMS, PredOperand, PtxOp, ReduxOp, ShflMode, VoteMode,
    WarpCollective,
};
use crate::registers::{Bank, NO_NAME};

impl<'m, 'a> Decoder<'m, 'a> {
    pub(super) fn control(&mut self, inst: &'m AstInst<'a>, head: &str) -> Result<()> {
        match (head, inst.op) {
            ("bra", "bra" | "bra.uni") => {
                self.count(inst, 1..=1)?;
                let AstOperand::Name(label) = *self.operand(inst, 0)? else {
                    return self.bad(inst, 0, "must be a label");
                };
                let (at, line) = (self.out.code.len(), self.line);
                self.push(PtxOp::Branch(0));
                self.scope().branches.push((at, label, line));
            }
            ("brx", "brx.idx" | "brx.idx.uni") => {
                self.count(inst, 2..=2)?;
                let index = self.src(inst, 0, Bank::B32)?;
                match self.named(inst, 1)? {
                    Some(Symbol::Targets(table)) => self.push(PtxOp::BranchIndexed(index, table)),
                    _ => return self.bad(inst, 1, "must be a list of `.branchtargets`"),
                }
            }
            ("ret", "ret" | "ret.uni") => self.push(PtxOp::Ret),
            ("exit", "exit") => self.push(PtxOp::Exit),
            ("trap", "trap") => self.push(PtxOp::Trap),
            ("call", "call" | "call.uni") => self.call(inst)?,
            _ => {
                return self.unsupported(inst, "the machine has no such instruction, or not this form of it");
            }
        }
        Ok(())
    }

    fn call(&mut self, inst: &'m AstInst<'a>) -> Result<()> {
        self.count(inst, 1..=3)?;
        let has_results = matches!(inst.operands[0], AstOperand::List(_));
        let at = usize::from(has_results);
        let Some(Symbol::Function(function)) = self.named(inst, at)? else {
            return self.unsupported(inst, "only direct calls of functions of this module are supported");
        };
        let callee = self.functions[function as usize];
        if callee.body.is_none() || callee.entry {
            return self.unsupported(inst, "the function called has no body in this module");
        }
        let mut lists = [Vec::new(), Vec::new()];
        for (list, operand) in
            lists.iter_mut().zip([has_results.then(|| &inst.operands[0]), inst.operands.get(at + 1)])
        {
            if let Some(AstOperand::List(names)) = operand {
                list.clone_from(names);
            }
        }
        let mut top = 0u64;
        let mut transfers = [Vec::new(), Vec::new()];
        for (which, declared) in [&callee.returns, &callee.params].into_iter().enumerate() {
            if declared.len() != lists[which].len() {
                return self.bad(
                    inst,
                    if which == 0 { 0 } else { at + 1 },
                    "has another length than the function's",
                );
            }
            for (var, &name) in declared.iter().zip(&lists[which]) {
                let offset = top.next_multiple_of(u64::from(var.align.max(1)));
                top = offset + var.bytes;
                let here = match self.find(name)? {
                    Symbol::Param(address) if address >= FRAME_PARAMS => address - FRAME_PARAMS,
                    _ => return Err(PtxProblemKind::Undeclared { name: name.into() }),
                };
                let (here, there, bytes) = (here as u32, offset as u32, var.bytes as u32);
                transfers[which].push(if which == 0 { (there, here, bytes) } else { (here, there, bytes) });
            }
        }
        let [results, arguments] = transfers;
        self.out.calls.push(CallSite { function, arguments, results });
        let number = self.out.calls.len() as u32 - 1;
        self.push(PtxOp::Call(number));
        Ok(())
    }

    pub(super) fn barrier(&mut self, inst: &'m AstInst<'a>) -> Result<()> {
        let mut parts: Vec<&str> = inst.op.split('.').collect();
        if parts[1..] == ["warp", "sync"] {
            self.count(inst, 1..=1)?;
            let members = self.src(inst, 0, Bank::B32)?;
            self.push(PtxOp::Collective(WarpCollective::Sync, members));
            return Ok(());
        }
        parts.retain(|&part| part != "cta");
        let explicit = parts.iter().position(|&part| part == "aligned").map(|i| parts.remove(i)).is_some();
        let aligned = parts[0] == "bar" || explicit;
        let (mode, ty) = match parts[1..] {
            ["sync"] => (BarrierMode::Sync, None),
            ["arrive"] => (BarrierMode::Arrive, None),
            ["red", "popc", "u32"] => (BarrierMode::Popc, Some(Ty::U32)),
            ["red", "and", "pred"] => (BarrierMode::And, Some(Ty::Pred)),
            ["red", "or", "pred"] => (BarrierMode::Or, Some(Ty::Pred)),
            _ => return self.unsupported(inst, "the machine has no such barrier"),
        };
        let mut barrier = Barrier {
            mode,
            aligned,
            id: NO_NAME,
            count: NO_NAME,
            d: NO_NAME,
            a: PredOperand { reg: NO_NAME, negated: false },
        };
        let reduces = usize::from(ty.is_some());
        let least = 1 + 2 * reduces + usize::from(mode == BarrierMode::Arrive);
        self.count(inst, least..=2 + 2 * reduces)?;
        barrier.d = match ty {
            None => NO_NAME,
            Some(Ty::Pred) => self.pred_dst(inst, 0)?,
            Some(_) => self.dst(inst, 0, Bank::B32)?,
        };
        barrier.id = self.src(inst, reduces, Bank::B32)?;
        if inst.operands.len() == 2 + 2 * reduces {
            barrier.count = self.src(inst, reduces + 1, Bank::B32)?;
        }
        if reduces == 1 {
            barrier.a = self.pred_src(inst, inst.operands.len() - 1)?;
        }
        self.push(PtxOp::Barrier(barrier));
        Ok(())
    }

    pub(super) fn collective(&mut self, inst: &'m AstInst<'a>, head: &str) -> Result<()> {
        let parts: Vec<&str> = inst.op.split('.').skip(1).collect();
        let (collective, members) = match (head, parts.as_slice()) {
            ("activemask", ["b32"]) => {
                self.count(inst, 1..=1)?;
                let d = self.dst(inst, 0, Bank::B32)?;
                self.push(PtxOp::ActiveMask(d));
                return Ok(());
            }
            ("shfl", ["sync", mode, "b32"]) => {
                let mode = match *mode {
                    "up" => ShflMode::Up,
                    "down" => ShflMode::Down,
                    "bfly" => ShflMode::Bfly,
                    "idx" => ShflMode::Idx,
                    _ => return self.unsupported(inst, "it has no such mode"),
                };
                self.count(inst, 5..=5)?;
                let (d, p) = self.dst_and_pred(inst, 0, Bank::B32)?;
                let (a, b) = (self.src(inst, 1, Bank::B32)?, self.src(inst, 2, Bank::B32)?);
                let c = self.src(inst, 3, Bank::B32)?;
                let d = if d == NO_NAME { self.temp(Bank::B32)? } else { d };
                (WarpCollective::Shfl { mode, d, p, a, b, c }, self.src(inst, 4, Bank::B32)?)
            }
            ("vote", ["sync", mode, ty]) => {
                let mode = match (*mode, *ty) {
                    ("all", "pred") => VoteMode::All,
                    ("any", "pred") => VoteMode::Any,
                    ("uni", "pred") => VoteMode::Uni,
                    ("ballot", "b32") => VoteMode::Ballot,
                    _ => return self.unsupported(inst, "it has no such mode"),
                };
                self.count(inst, 3..=3)?;
                let d = if mode == VoteMode::Ballot {
                    self.dst(inst, 0, Bank::B32)?
                } else {
                    self.pred_dst(inst, 0)?
                };
                let a = self.pred_src(inst, 1)?;
                (WarpCollective::Vote { mode, d, a }, self.src(inst, 2, Bank::B32)?)
            }
            ("match", [mode @ ("any" | "all"), "sync", ty @ ("b32" | "b64")]) => {
                self.count(inst, 3..=3)?;
                let (d, p) = self.dst_and_pred(inst, 0, Bank::B32)?;
                let d = if d == NO_NAME { self.temp(Bank::B32)? } else { d };
                let wide = *ty == "b64";
                let a = self.src(inst, 1, if wide { Bank::B64 } else { Bank::B32 })?;
                let all = *mode == "all";
                (WarpCollective::Match { all, wide, d, p, a }, self.src(inst, 2, Bank::B32)?)
            }
            ("redux", ["sync", op, ty]) => {
                let (op, signed) = match (*op, *ty) {
                    ("add", "u32" | "s32") => (ReduxOp::Add, false),
                    ("min", "u32") => (ReduxOp::Min, false),
                    ("min", "s32") => (ReduxOp::Min, true),
                    ("max", "u32") => (ReduxOp::Max, false),
                    ("max", "s32") => (ReduxOp::Max, true),
                    ("and", "b32") => (ReduxOp::And, false),
                    ("or", "b32") => (ReduxOp::Or, false),
                    ("xor", "b32") => (ReduxOp::Xor, false),
                    ("min", "f32") => (ReduxOp::FloatMin { abs: false, nan: false }, false),
                    ("max", "f32") => (ReduxOp::FloatMax { abs: false, nan: false }, false),
                    _ => return self.unsupported(inst, "this operation does not exist for its type"),
                };
                self.count(inst, 3..=3)?;
                let (d, a) = (self.dst(inst, 0, Bank::B32)?, self.src(inst, 1, Bank::B32)?);
                (WarpCollective::Redux { op, signed, d, a }, self.src(inst, 2, Bank::B32)?)
            }
            ("redux", ["sync", op @ ("min" | "max"), modifiers @ .., "f32"]) => {
                let (abs, nan) = match modifiers {
                    ["abs"] => (true, false),
                    ["NaN"] => (false, true),
                    ["abs", "NaN"] => (true, true),
                    _ => return self.unsupported(inst, "it has a modifier that is not supported"),
                };
                self.count(inst, 3..=3)?;
                let op = if *op == "min" {
                    ReduxOp::FloatMin { abs, nan }
                } else {
                    ReduxOp::FloatMax { abs, nan }
                };
                let (d, a) = (self.dst(inst, 0, Bank::B32)?, self.src(inst, 1, Bank::B32)?);
                (WarpCollective::Redux { op, signed: false, d, a }, self.src(inst, 2, Bank::B32)?)
            }
            ("elect", ["sync"]) => {
                self.count(inst, 2..=2)?;
                let (d, p) = self.dst_and_pred(inst, 0, Bank::B32)?;
                if p == NO_NAME {
                    return self.bad(inst, 0, "must be `d|p`");
                }
                (WarpCollective::Elect { d, p }, self.src(inst, 1, Bank::B32)?)
            }
            _ => {
                return self.unsupported(inst, "the machine has no such instruction, or not this form of it");
            }
        };
        self.push(PtxOp::Collective(collective, members));
        Ok(())
    }
}
