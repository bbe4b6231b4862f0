//! Judges a plan as MSCCL++'s executor runs it (microsoft/mscclpp at 1f5f065): its limits, what it reads otherwise than a
//! plan says, and calls in a row.

use super::channel::Channel;
use super::document::Document;
use super::judge;
use super::lay::locate;
use super::most;
use super::ops::{Op, Sort};
use super::plan::Plan;
use super::run::PlanOrder;
use crate::diagnostic::{Check, Diagnostic, Loc};
use crate::interop::executor::ExecutorVerdict;
use crate::interop::{finding, shown};
use crate::program::dtype::RedOp;
use crate::program::kind::{Kind, Shape};

/// The name of the executor.
const NAME: &str = "MSCCL++";
/// Bytes of scratch that plans share.
const SHARED_SCRATCH: u64 = 64 << 20;

/// Judges a plan that runs to its end.
pub(super) fn executed(plan: &Plan, order: &PlanOrder) -> ExecutorVerdict {
    let document = &plan.document;
    let mut shape = Shape::new(document.kind, document.gpus.len() as u32, plan.unit_chunks);
    shape.in_place = document.in_place && document.kind.has_in_place();
    shape.scratch = plan.scratch;
    let mut findings = beyond(document);
    findings.extend(every_op(document).filter_map(otherwise));
    let mut remarks = remarks(document);
    // Races of one call are those of every executor.
    if judge::judge(plan, order, |at| locate(&shape, at)).is_ok() {
        let own = judge::own(plan, order, |at| locate(&shape, at));
        findings.extend(plan.named(own.findings));
        if own.trailing {
            let remark =
                "puts by port may still read a GPU's own buffer when its kernel ends, without a flush";
            remarks.push(remark.to_owned());
        }
    }
    ExecutorVerdict { executor: NAME, findings: shown(findings), remarks }
}

/// All operations, those of pipelines behind them.
fn every_op(document: &Document) -> impl Iterator<Item = &Op> {
    document.gpus.iter().flat_map(|gpu| &gpu.blocks).flat_map(|block| flat(&block.ops))
}

fn flat(ops: &[Op]) -> impl Iterator<Item = &Op> {
    ops.iter().flat_map(|op| std::iter::once(op).chain(&op.body))
}

/// A number of things and the most that the executor takes.
struct Limited {
    count: usize,
    what: &'static str,
    most: usize,
    at: Loc,
}

/// The limits that a plan is beyond.
fn beyond(document: &Document) -> Vec<Diagnostic> {
    let mut findings = Vec::new();
    let mut judge = |whose: &str, limited: Limited| {
        let Limited { count, what, most, at } = limited;
        if count > most {
            let message = format!("{whose} has {count} {what}, and {NAME}'s executor takes {most}");
            findings.push(finding(Check::Unsupported, at, message));
        }
    };
    for (gpu, rank) in document.gpus.iter().zip(0..) {
        for (block, number) in gpu.blocks.iter().zip(0..) {
            let whose = format!("gpu {rank}, tb {number},");
            let ops = flat(&block.ops).count();
            let at = flat(&block.ops).nth(most::MOST_OPS).map_or(block.loc, |op| op.loc);
            judge(&whose, Limited { count: ops, what: "operations", most: most::MOST_OPS, at });
            let lists = [
                (Channel::Memory, "channels in memory", "remote buffers in memory"),
                (Channel::Port, "channels by port", "remote buffers by port"),
                (Channel::Switch, "switch channels", "remote buffers of switches"),
            ];
            for (sort, channels, buffers) in lists {
                for (list, what) in
                    [(&block.channels[sort as usize], channels), (&block.remote[sort as usize], buffers)]
                {
                    let at = list.get(most::MOST_CHANNELS).map_or(block.loc, |(_, at)| *at);
                    judge(&whose, Limited { count: list.len(), what, most: most::MOST_CHANNELS, at });
                }
            }
        }
    }
    for op in every_op(document) {
        let whose = format!("`{}`", op.name);
        let semaphores = matches!(op.sort, Sort::Acquire | Sort::Release);
        let (what, most) = match semaphores {
            true => ("semaphores", most::MOST_SEMAPHORES_OF_OP),
            false => ("channels", most::MOST_CHANNELS_OF_OP),
        };
        judge(&whose, Limited { count: op.ids.len(), what, most, at: op.loc });
        for (list, what) in [(&op.sources, "sources"), (&op.dests, "destinations")] {
            judge(&whose, Limited { count: list.len(), what, most: most::MOST_ENDS, at: op.loc });
        }
    }
    let barriers = every_op(document).filter(|op| op.sort == Sort::Barrier);
    for op in barriers.filter(|op| op.numbers.0 >= most::MOST_BARRIERS) {
        let last = most::MOST_BARRIERS - 1;
        let message = format!("barrier {}, and {NAME}'s executor has barriers 0 to {last}", op.numbers.0);
        findings.push(finding(Check::Unsupported, op.loc, message));
    }
    findings
}

/// An operation that does something else there than it says.
fn otherwise(op: &Op) -> Option<Diagnostic> {
    let found = |message: String, note: &str| Some(finding(Check::Translation, op.loc, message).note(note));
    let name = &op.name;
    if let Some(wish) = op.combines.filter(|wish| *wish != RedOp::Sum) {
        let message = format!("`{name}` adds in {NAME}, and the plan says {}", wish.name());
        return found(message, "its executor does not read `reduce_op`");
    }
    match (name.as_str(), op.channel) {
        ("pws" | "pwsf", Channel::Memory) => found(
            format!("`{name}` on a memory channel does not signal in {NAME}"),
            "take `put`, `nop` and `signal`",
        ),
        ("put" | "ppkt", Channel::Memory) => {
            let other = op.sources.iter().find(|source| source.base != op.sources[0].base)?;
            let message = format!("`{name}` reads every source from the buffer of the first in {NAME}");
            Some(finding(Check::Translation, other.loc, message).help("take an operation for each buffer"))
        }
        ("get", _) => {
            let mut pairs = op.sources.iter().zip(&op.dests);
            let (source, _) = pairs.find(|(source, dest)| source.index != dest.index)?;
            let message = format!("`get` takes its chunks' places for each other's in {NAME}");
            let note = "its executor adds the offset of the source to the destination, and that of the destination to the source";
            Some(finding(Check::Translation, source.loc, message).note(note))
        }
        _ => None,
    }
}

/// The things to know besides.
fn remarks(document: &Document) -> Vec<String> {
    let mut remarks = Vec::new();
    if every_op(document).any(|op| op.sort == Sort::Flush) {
        remarks.push(
            "`flush` is taken as it is meant; at 1f5f065 it waits for as many channels as it has destinations, which is none"
                .to_owned(),
        );
    }
    let scratch = document.gpus.iter().map(|gpu| gpu.chunks[2]).max().unwrap_or(0);
    if document.reuse && scratch > 0 {
        let room = SHARED_SCRATCH / if document.double { 2 } else { 1 };
        let of = if document.kind == Kind::AllGather { 1 } else { 0 };
        let message = document.gpus.first().map_or(1, |gpu| gpu.chunks[of].max(1));
        let most = (room / scratch).saturating_mul(message);
        if document.most_bytes > most {
            remarks.push(format!(
                "judged for messages of up to {most} bytes: of larger ones the scratch that plans share, 64 MiB, holds no \
                 chunk as a whole"
            ));
        }
    }
    remarks
}
