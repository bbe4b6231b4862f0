//! MSCCL++'s execution plans: JSON that says for every thread block of every GPU which operations it runs, as MSCCL++'s
//! executor interprets it.
//!
//! Chunks are named by buffer, index and length; those of peers through a thread block's list of remote buffers. Thread
//! blocks are in step by what the file says: signals and waits on channels, semaphores, barriers of thread blocks, and
//! `nop`, the barrier of one block's threads. Packets hold flags beside their words and are waited for one by one.
//!
//! A file becomes a program with one operation for each chunk of each move, in an order in which it can run, and a schedule
//! with the same moves in the thread blocks that the file says. Its own synchronization is judged as MSCCL++ has it,
//! thread by thread (`judge`): whatever it leaves unordered is a race on the file's line. It becomes the signals of the
//! schedule, to which only Quadrille's own calls add: starts and ends of calls, credits for slots, barriers within blocks,
//! and a signal where a plan relies on packets to order a read before a store elsewhere. Stage 1 proves that the result is
//! what the collective demands, and stage 2 that no interleaving of the schedule gives another.
//!
//! - A *relaxed* signal orders nothing. It is waited for in the judgement of deadlocks and has no place in the schedule:
//!   what it may rightly say, that a peer's kernel has begun, or is done with the caller's buffers, is said by starts and
//!   ends of calls.
//! - A wait that several posts may end is after those alone that it cannot end without. Several thread blocks that wait for
//!   one counter are refused.
//! - Packets become LL messages, one for every read of a packet, from the thread block that stores it to that which reads it.
//! - Chunks that go *by port* are moved by the thread block itself, as all ranks of a world reach each other; so they have
//!   been moved when it goes on, `flush` has nothing to wait for, and a signal by port comes after what was put before it.
//! - Chunks of all ranks go through the *switch* where the world has one, those of some ranks, and scratch, by their own
//!   addresses.
//! - A *pipeline* goes over its chunks by units: so does the whole schedule, as units are independent of each other.
//! - A *group* of thread blocks splits chunks into parts, which are the chunks of the program.
//!
//! `export` goes the other way.
//!
//! `fits` judges what MSCCL++'s own executor does otherwise: its limits, and calls in a row.
//!
//! Not carried out, and said so: what `test` and `custom` collectives compute, packets in a
//! pipeline, pipelines of different units, counters that are used in a pipeline and outside of it, `glre`.

mod channel;
mod document;
mod export;
mod fits;
mod judge;
mod lane;
mod lay;
mod most;
mod ops;
mod plan;
mod reader;
mod resolve;
mod run;

use crate::collective::{Collective, Evaluate, LoweringResult};
use crate::diagnostic::{Check, Diagnostic, Diagnostics, SourceFile};
use crate::interop::executor::ExecutorVerdict;
use crate::interop::{finding, shown};
use crate::kernel::widths::Widths;
use crate::lower;
use crate::options::{Given, ScheduleOptions};
use crate::program::Program;
use crate::program::ProgramSetting;
use crate::program::dtype::RedOp;
use crate::program::kind::Shape;
use crate::schedule::domain::Domain;
use crate::verify;
pub use export::export;
use lay::Laid;
use plan::Plan;
use run::PlanOrder;
use std::sync::Arc;

/// Returns true if a text looks like an execution plan and not like Rust.
pub fn is_json(text: &str) -> bool {
    text.trim_start_matches('\u{feff}').trim_start().starts_with('{')
}

/// Reads an execution plan. `path` is its name in messages.
///
/// # Errors
/// Everything that is wrong with the text, what its operations name, and its signals, each with its place. What the
/// operations compute is proved later, like that of any collective.
pub fn import(path: &str, text: &str) -> Result<Collective, Diagnostics> {
    let text = text.trim_start_matches('\u{feff}');
    let source = SourceFile { path: path.into(), first_line: 1, text: text.into() };
    let wrong = |list: Vec<Diagnostic>| Diagnostics { list: shown(list), source: Some(source.clone()) };
    let plan = document::read(text).and_then(resolve::resolve).map_err(wrong)?;
    let order = run::order(&plan).map_err(|list| wrong(plan.named(list)))?;
    let document = &plan.document;
    let loc = document.loc;
    let blocks = document.gpus.iter().map(|gpu| gpu.blocks.len()).max().unwrap_or(1).max(1);
    let blocks = Some(Given { value: blocks as u32, loc });
    let options = ScheduleOptions { loc: Some(loc), blocks, ..ScheduleOptions::default() };
    let (name, kind, in_place) = (document.name.clone(), document.kind, document.in_place);
    Ok(Collective {
        name,
        kind,
        in_place,
        ranks: vec![document.gpus.len() as u32],
        only: true,
        root: 0,
        params: Vec::new(),
        schedules: vec![options],
        chosen: 0,
        source: source.clone(),
        name_loc: loc,
        evaluate: Arc::new(Import { plan: Arc::new((plan, order)), in_place, source }),
    })
}

/// Judges a plan as MSCCL++'s executor runs it; `None` where [`import`] refuses the file.
pub(super) fn executed(text: &str) -> Option<ExecutorVerdict> {
    let plan = document::read(text).and_then(resolve::resolve).ok()?;
    let order = run::order(&plan).ok()?;
    Some(fits::executed(&plan, &order))
}

/// A plan, called in one way.
struct Import {
    plan: Arc<(Plan, PlanOrder)>,
    in_place: bool,
    source: SourceFile,
}

impl Import {
    fn laid(&self) -> Result<Laid, Vec<Diagnostic>> {
        let (plan, order) = &*self.plan;
        let ranks = plan.document.gpus.len() as u32;
        let mut shape = Shape::new(plan.document.kind, ranks, plan.unit_chunks);
        shape.in_place = self.in_place;
        shape.scratch = plan.scratch;
        lay::lay(plan, order, shape, &self.source).map_err(|list| plan.named(shown(list)))
    }

    /// Why the plan is not for such calls.
    fn refused(&self) -> Option<Diagnostic> {
        let document = &self.plan.0.document;
        let refuse = |why: String| {
            let how = if self.in_place { "in place" } else { "out of place" };
            let message = format!("`{}` cannot be called {how}", document.name);
            Some(finding(Check::Requirement, document.loc, message).note(why))
        };
        if self.in_place && !document.kind.has_in_place() {
            return refuse(format!("{} has no form with one buffer", document.kind));
        }
        match self.in_place == document.in_place {
            true => None,
            false => refuse(format!("the file says `\"inplace\": {}`", document.in_place)),
        }
    }
}

impl Evaluate for Import {
    fn program(&self, _: &ProgramSetting) -> Result<Program, Vec<Diagnostic>> {
        match self.refused() {
            Some(refused) => Err(vec![refused]),
            None => {
                let program = self.laid()?.program;
                // What is wrong with it is told in the plan's chunks.
                match self.plan.0.parts {
                    1 => Ok(program),
                    _ => verify::program(&program).map_err(|list| self.plan.0.named(list)).map(|()| program),
                }
            }
        }
    }

    fn schedule(&self, _: &ProgramSetting, program: &Program, domain: &Domain) -> Option<LoweringResult> {
        Some(self.laid().and_then(|laid| {
            if program.ops.len() != laid.program.ops.len() {
                // `premul_sum` on one rank: a scaling that is no operation of the plan.
                let message = format!("`{}` has no operation that scales its result", program.name);
                return Err(vec![finding(Check::Unsupported, program.name_loc, message)]);
            }
            lower::keep(program, &laid.kept, domain, self.plan.0.unit, Widths::staged_tile(true))
        }))
    }

    fn called(&self, in_place: bool) -> Option<Arc<dyn Evaluate>> {
        Some(Arc::new(Import { plan: Arc::clone(&self.plan), in_place, source: self.source.clone() }))
    }

    fn refuses(&self, op: RedOp) -> Option<Diagnostic> {
        let (wish, loc) = self.plan.0.combines?;
        let sums = |op| matches!(op, RedOp::Sum | RedOp::Avg | RedOp::PremulSum(_));
        if wish == op || sums(wish) && sums(op) {
            return None;
        }
        let message = format!("the plan combines by {}, and the call by {op}", wish.name());
        Some(finding(Check::Requirement, loc, message).help(format!("call it with {}", wish.name())))
    }
}
