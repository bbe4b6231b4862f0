//! MSCCL's algorithm files: XML that says for every thread block of every GPU which steps it runs, as MSCCL and RCCL
//! interpret it.
//!
//! ```xml
//! <algo name="pair" proto="LL" nchannels="1" nchunksperloop="1" ngpus="2" coll="allgather" inplace="0" outofplace="1">
//!   <gpu id="0" i_chunks="1" o_chunks="2" s_chunks="0">
//!     <tb id="0" send="1" recv="1" chan="0">
//!       <step s="0" type="s" srcbuf="i" srcoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>
//! ```
//!
//! A `tb` is a thread block. It has at most one connection to send on and one to receive on; a connection belongs to two
//! GPUs and a channel. Steps run in order:
//!
//! | type | meaning |
//! |---|---|
//! | `s` | send src |
//! | `r` | receive into dst |
//! | `rcs` | receive into dst, and send what was received |
//! | `rrc` | dst = src combined with what is received |
//! | `rrs` | send src combined with what is received |
//! | `rrcs` | both |
//! | `cpy` | dst = src |
//! | `re` | dst = dst combined with src |
//! | `nop` | nothing: its dependence is one more of the step after it |
//!
//! Source and destination are chunks of this GPU's own buffers; what a step says of the other GPU's is a comment. A step
//! first waits until thread block `depid` of its GPU has published that it is done with step `deps` or a later one;
//! steps with `hasdep` publish.
//!
//! A file becomes a program with one operation for each chunk of each step, in an order in which the steps can run, and a
//! schedule with the same steps in the thread blocks that the file says. A chunk on its way is a chunk of scratch in the
//! program and a message in the schedule. So every check stands on the line of a step; stage 1 proves that the result is
//! what the kind of collective demands, and stage 2 that no interleaving gives another.
//!
//! A send of k chunks is k messages here, of which 8 are on their way at most. The runtimes have room for 8 messages (LL,
//! LL128) or 2 (Simple), of one chunk where chunks are large, and of all of a step where they are small. `fits` judges a file
//! with that room, and by the other limits of one runtime. A plan that ends there while chunks are small, and not here, is
//! not called a deadlock but refused as one that cannot be carried out.
//!
//! What runtimes pass over is passed over here: elements that they do not know. What they demand and a file lacks is inferred
//! where it can be (`coll`, `inplace`): such a file is imported, and the verdict on its runtime says what it lacks.

mod connect;
mod document;
mod export;
mod fits;
mod runtime;
mod sequence;

use crate::collective::{Collective, Evaluate, LoweringResult};
use crate::diagnostic::{Check, Diagnostic, Diagnostics, SourceFile};
use crate::interop::executor::ExecutorVerdict;
use crate::interop::shown;
use crate::kernel::widths::Widths;
use crate::lower;
use crate::options::{Given, Protocol, ScheduleOptions, StatementOptions, Transport};
use crate::program::Program;
use crate::program::ProgramSetting;
use crate::program::kind::{Kind, Shape};
use crate::schedule::SLOTS;
use crate::schedule::domain::Domain;
use crate::verify;
use connect::Connected;
pub use export::{Exported, export};
pub use runtime::Runtime;
use sequence::{Room, Sequence};
use std::sync::Arc;

/// Returns true if a text looks like an algorithm file and not like Rust.
pub fn is_xml(text: &str) -> bool {
    text.trim_start_matches('\u{feff}').trim_start().starts_with('<')
}

/// Reads an algorithm file. `path` is its name in messages.
///
/// # Errors
/// Everything that is wrong with the text and its connections, each with its place. What the steps compute is proved
/// later, like that of any collective.
pub fn import(path: &str, text: &str) -> Result<Collective, Diagnostics> {
    let source = SourceFile { path: path.into(), first_line: 1, text: text.into() };
    let wrong = |list: Vec<Diagnostic>| Diagnostics { list: shown(list), source: Some(source.clone()) };
    let algorithm = document::read(text).map_err(wrong)?;
    collective(algorithm, source.clone()).map_err(wrong)
}

/// Judges an algorithm file as a runtime executes it; `None` where [`import`] refuses the file.
pub(super) fn executed(text: &str, runtime: Runtime) -> Option<ExecutorVerdict> {
    let connected = document::read(text).and_then(connect::connect).ok()?;
    Some(fits::executed(&connected, runtime))
}

/// The collective of an algorithm that stands in `source`.
fn collective(algorithm: document::Algorithm, source: SourceFile) -> Result<Collective, Vec<Diagnostic>> {
    let plan = connect::connect(algorithm)?;
    let algorithm = &plan.algorithm;
    let blocks = algorithm.gpus.iter().map(|gpu| gpu.blocks.len()).max().unwrap_or(1).max(1);
    let loc = algorithm.loc;
    let how = StatementOptions {
        protocol: Some(Given { value: algorithm.protocol, loc }),
        transport: Some(Given { value: Transport::Staged, loc }),
    };
    let blocks = Some(Given { value: blocks as u32, loc });
    let options = ScheduleOptions { loc: Some(loc), how, blocks, ..ScheduleOptions::default() };
    let (kind, name, ranks) = (algorithm.kind, algorithm.name.clone(), algorithm.ranks);
    let in_place = algorithm.in_place && !algorithm.out_of_place;
    Ok(Collective {
        name,
        kind,
        in_place,
        ranks: vec![ranks],
        only: true,
        root: 0,
        params: Vec::new(),
        schedules: vec![options],
        chosen: 0,
        source: source.clone(),
        name_loc: loc,
        evaluate: Arc::new(Import { plan: Arc::new(plan), in_place, source }),
    })
}

/// A plan, called in one way.
struct Import {
    plan: Arc<Connected>,
    in_place: bool,
    source: SourceFile,
}

impl Import {
    fn shape(&self, setting: &ProgramSetting) -> Shape {
        let algorithm = &self.plan.algorithm;
        let mut shape = Shape::new(algorithm.kind, algorithm.ranks, algorithm.unit_chunks);
        shape.in_place = self.in_place;
        shape.root = crate::program::ids::Rank(if algorithm.kind.rooted() { setting.root } else { 0 });
        shape.scratch = algorithm.gpus.iter().map(|gpu| gpu.scratch).max().unwrap_or(0);
        shape
    }

    /// Why the plan is not for such calls.
    fn refused(&self) -> Option<Diagnostic> {
        let algorithm = &self.plan.algorithm;
        let (meant, how, attribute) = match self.in_place {
            true => (algorithm.in_place, "in place", "inplace"),
            false => (algorithm.out_of_place, "out of place", "outofplace"),
        };
        let refuse = |why: String| {
            let message = format!("`{}` cannot be called {how}", algorithm.name);
            Some(Diagnostic::new(Check::Requirement, algorithm.loc, message).note(why))
        };
        match (meant, self.in_place && !algorithm.kind.has_in_place()) {
            (_, true) => refuse(format!("{} has no form with one buffer", algorithm.kind)),
            (false, _) => refuse(format!("the file does not say `{attribute}=\"1\"`")),
            (true, false) => None,
        }
    }

    fn sequence(&self, setting: &ProgramSetting) -> Result<Sequence, Vec<Diagnostic>> {
        sequence::sequence(&self.plan, self.shape(setting), &self.source).map_err(shown)
    }

    fn follow(&self, sequence: &Sequence, program: &Program, domain: &Domain) -> LoweringResult {
        let lines = sequence.plan.tasks.messages.iter().any(|sent| sent.protocol != Protocol::Simple);
        lower::follow(program, &sequence.plan, domain, (Widths::staged_tile(lines), SLOTS))
    }
}

impl Evaluate for Import {
    fn program(&self, setting: &ProgramSetting) -> Result<Program, Vec<Diagnostic>> {
        if let Some(refused) = self.refused() {
            return Err(vec![refused]);
        }
        let sequence = self.sequence(setting)?;
        let mut wrong = match sequence.whole {
            true => match verify::program(&sequence.program) {
                Ok(()) => return Ok(sequence.program),
                Err(list) => list,
            },
            false => Vec::new(),
        };
        // Values that depend on the interleaving say nothing: a race, or a deadlock, is the cause to show.
        let program = &sequence.program;
        let blocks = self.plan.algorithm.gpus.iter().map(|gpu| gpu.blocks.len() as u32).max().unwrap_or(1);
        let domain = Domain { block_cap: blocks.max(1), ..Domain::full_mesh(setting.ranks) };
        let schedule = self.follow(&sequence, program, &domain)?.schedule;
        let causes = verify::unordered(&schedule, program, &domain);
        if !causes.is_empty() || !sequence.whole {
            let of_operations = [Check::Overlap, Check::InputOverwritten];
            wrong.retain(|finding| of_operations.contains(&finding.check));
            wrong.extend(causes);
        }
        Err(shown(wrong))
    }

    fn schedule(
        &self,
        setting: &ProgramSetting,
        program: &Program,
        domain: &Domain,
    ) -> Option<LoweringResult> {
        Some(self.sequence(setting).and_then(|sequence| {
            if program.ops.len() != sequence.program.ops.len() {
                // `premul_sum` on one rank: a scaling that is no step of the plan.
                let message = format!("`{}` has no step that scales its result", program.name);
                return Err(vec![Diagnostic::new(Check::Unsupported, program.name_loc, message)]);
            }
            let short = self.short_of_slots(&sequence, program);
            if let Some(finding) = short {
                return Err(vec![finding]);
            }
            self.follow(&sequence, program, domain)
        }))
    }

    fn called(&self, in_place: bool) -> Option<Arc<dyn Evaluate>> {
        Some(Arc::new(Import { plan: Arc::clone(&self.plan), in_place, source: self.source.clone() }))
    }
}

impl Import {
    /// The plan ends with the room that RCCL's FIFOs have while chunks are small, and not with ours.
    fn short_of_slots(&self, sequence: &Sequence, program: &Program) -> Option<Diagnostic> {
        let plan = &self.plan;
        if sequence.fits(plan, Room { of: 1, most: SLOTS }) {
            return None;
        }
        let sends = runtime::room(plan.algorithm.protocol);
        if !sequence.fits(plan, Room { of: u32::MAX, most: sends }) {
            return None;
        }
        let message = format!("`{}` needs more than {SLOTS} chunks on their way at once", program.name);
        Some(
            Diagnostic::new(Check::Unsupported, program.name_loc, message)
                .context(program.context())
                .note(format!(
                    "a connection has {SLOTS} slots of one chunk each; {sends} sends of several chunks, as RCCL admits \
                     while chunks are small, do not fit",
                ))
                .help("receive between the sends, or send fewer chunks at a time"),
        )
    }
}

/// The files' names of the kinds. The first name of a kind is the one that is written.
const KINDS: [(&str, Kind); 9] = [
    ("allreduce", Kind::AllReduce),
    ("allgather", Kind::AllGather),
    ("reducescatter", Kind::ReduceScatter),
    ("reduce_scatter", Kind::ReduceScatter),
    ("alltoall", Kind::AllToAll),
    ("broadcast", Kind::Broadcast),
    ("reduce", Kind::Reduce),
    ("gather", Kind::Gather),
    ("scatter", Kind::Scatter),
];

/// The kind that a file's `coll` means.
fn kind(coll: &str) -> Option<Kind> {
    KINDS.iter().find(|(name, _)| *name == coll).map(|(_, kind)| *kind)
}

/// The value of `coll` for a kind.
fn coll(kind: Kind) -> Option<&'static str> {
    KINDS.iter().find(|(_, known)| *known == kind).map(|(name, _)| *name)
}

/// Units of the message that `nchunksperloop` counts the chunks of.
fn message_units(kind: Kind, ranks: u32) -> u32 {
    match kind {
        Kind::AllGather | Kind::ReduceScatter | Kind::AllToAll => ranks,
        _ => 1,
    }
}
