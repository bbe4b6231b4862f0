//! Fences, and instructions that are hints only.

use super::{Decoder, Result};
use crate::arithmetic::tables::UnaryOp;
use crate::front::ast::AstInst;
use crate::isa::{MemoryOrder, ProxyKind, PtxOp, Scope};
use crate::registers::Bank;

impl<'m, 'a> Decoder<'m, 'a> {
    pub(super) fn fence(&mut self, inst: &'m AstInst<'a>) -> Result<()> {
        self.count(inst, 0..=0)?;
        let parts: Vec<&str> = inst.op.split('.').collect();
        let scope = |name: &str| {
            Some(match name {
                // Every cluster has one block.
                "cta" | "cluster" => Scope::Cta,
                "gpu" => Scope::Gpu,
                "sys" => Scope::Sys,
                _ => return None,
            })
        };
        let order = |name: &str| {
            Some(match name {
                "sc" => MemoryOrder::SeqCst,
                "acq_rel" => MemoryOrder::AcqRel,
                "acquire" => MemoryOrder::Acquire,
                "release" => MemoryOrder::Release,
                _ => return None,
            })
        };
        let op = match parts.as_slice() {
            // `membar` is another name of `fence.sc`.
            ["membar", level @ ("cta" | "gl" | "sys")] => {
                let scope = match *level {
                    "cta" => Scope::Cta,
                    "gl" => Scope::Gpu,
                    _ => Scope::Sys,
                };
                PtxOp::Fence { order: MemoryOrder::SeqCst, scope }
            }
            ["fence" | "membar", "proxy", kind @ ..] => PtxOp::ProxyFence(match kind {
                ["alias"] => ProxyKind::Alias,
                ["async"] => ProxyKind::Async,
                ["async", "global"] => ProxyKind::AsyncGlobal,
                ["async", "shared::cta" | "shared::cluster"] => ProxyKind::AsyncShared,
                _ => return self.unsupported(inst, "the machine has no such proxy"),
            }),
            ["fence", "mbarrier_init", "release", "cluster"] => PtxOp::MbarrierInitFence,
            ["fence", name] if scope(name).is_some() => {
                PtxOp::Fence { order: MemoryOrder::AcqRel, scope: scope(name).unwrap_or(Scope::Sys) }
            }
            ["fence", first, second] => match (order(first), scope(second)) {
                (Some(order), Some(scope)) => PtxOp::Fence { order, scope },
                _ => return self.unsupported(inst, "the machine has no such fence"),
            },
            _ => return self.unsupported(inst, "the machine has no such fence"),
        };
        self.push(op);
        Ok(())
    }

    /// Hints: checked for their names and what they refer to, and executed as nothing.
    pub(super) fn hint(&mut self, inst: &'m AstInst<'a>) -> Result<()> {
        let parts: Vec<&str> = inst.op.split('.').skip(1).collect();
        let head = inst.op.split('.').next().unwrap_or_default();
        let level = |part: &str| part.starts_with("L1") || part.starts_with("L2");
        let known = match (head, parts.as_slice()) {
            ("griddepcontrol", ["launch_dependents" | "wait"]) => {
                self.count(inst, 0..=0)?;
                true
            }
            ("pmevent", []) | ("pmevent", ["mask"]) => {
                self.count(inst, 1..=1)?;
                true
            }
            ("setmaxnreg", ["inc" | "dec", "sync", "aligned", "u32"]) => {
                self.count(inst, 1..=1)?;
                true
            }
            ("prefetchu", ["L1"]) => {
                self.address(inst, 0)?;
                true
            }
            ("prefetch", ["global" | "local", rest @ ..] | rest) if rest.len() == 1 && level(rest[0]) => {
                self.address(inst, 0)?;
                true
            }
            ("applypriority" | "discard", ["global", part] | [part]) if level(part) => {
                self.address(inst, 0)?;
                true
            }
            ("createpolicy", ["fractional" | "range" | "cvt", .., "b64"]) => {
                // A cache policy is a hint; no instruction looks into its value.
                let (d, zero) = (self.dst(inst, 0, Bank::B64)?, self.constant(Bank::B64, 0)?);
                self.push(PtxOp::Unary(UnaryOp::Mov64, [d, zero]));
                return Ok(());
            }
            _ => false,
        };
        if !known {
            return self.unsupported(inst, "the machine has no such instruction, or not this form of it");
        }
        self.push(PtxOp::Nop);
        Ok(())
    }
}
