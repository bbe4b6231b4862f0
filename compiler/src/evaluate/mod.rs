//! The evaluator: runs a body for one world size and records its program.
//!
//! It is the only code that gives a body its meaning. The macro runs it while rustc compiles, a library on the body that
//! the macro left behind, the command line on the body that it has parsed.
//!
//! A fault is a finding on its statement, with the iteration and the values at hand, and ends the run (`Stop`):
//! everything after it would fail for the same reason. Operations on places outside their buffers do not end it; the
//! recorder reports those.
//!
//! One room: the files of this folder are the methods of one evaluator, for each kind of node in the body a file.

pub(crate) mod aliasing;
mod expression;
mod faults;
mod movement;
pub mod record;
mod sizes;
mod statement;
mod steps;
mod values;

use crate::body::{Body, BodyFn, KnownName};
use crate::diagnostic::{Check, Diagnostic, Loc, SourceFile};
use crate::evaluate::record::{Header, Recorder};
use crate::options::StatementOptions;
use crate::program::kind::Shape;
use crate::program::{Program, ProgramSetting, RawSite, TrailId};

/// The budget of one run, in steps: a statement, an iteration and a call are one each, and so is every chunk that an
/// operation reads or stores. (A ring all-reduce over 512 ranks takes 11 million.) A loop without end is stopped within
/// a second or two, also in a build without optimization.
const BUDGET: u64 = 20_000_000;

/// The steps that an operation takes beside those of its chunks: recording it takes as long.
const OPERATION: u64 = 16;

/// A `while` that goes round more often than this in a run that ends for its cost is taken for an endless one: any
/// world has fewer ranks, and their squares are reached by nested loops.
const ENDLESS: i64 = 10_000;

/// How deep nested fns may call each other.
const CALLS_LIMIT: usize = 256;

/// The stack on which nested fns are run: room for [`CALLS_LIMIT`] calls of fns as deeply nested as the parser lets
/// through, also in a build without optimization. Memory that is not touched is not taken.
const STACK_BYTES: usize = 256 << 20;

/// The end of a run; the finding says why.
#[derive(Debug)]
struct Stop(Box<Diagnostic>);

/// The result of a step of the run.
type Evaluated<T> = Result<T, Stop>;

/// Runs a body in a setting. `source` is the text that the body's locations point into.
///
/// # Errors
/// All findings of the run.
pub fn program(
    body: &Body,
    source: &SourceFile,
    setting: &ProgramSetting,
) -> Result<Program, Vec<Diagnostic>> {
    if body.functions.is_empty() {
        return run(body, source, setting);
    }
    // Fns may call themselves, for which the caller's stack may be too small.
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .stack_size(STACK_BYTES)
            .spawn_scoped(scope, || run(body, source, setting));
        match thread.map(|thread| thread.join()) {
            Ok(Ok(result)) => result,
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(error) => {
                let message = format!("there is no thread to run nested fns on: {error}");
                Err(vec![Diagnostic::new(Check::Unsupported, body.head.name_loc, message)])
            }
        }
    })
}

fn run(body: &Body, source: &SourceFile, setting: &ProgramSetting) -> Result<Program, Vec<Diagnostic>> {
    let shape = sizes::shape(body, source, setting).map_err(|Stop(finding)| vec![*finding])?;
    let mut evaluator = Evaluator::new(body, source, setting, shape);
    let end = evaluator.call_fn(&body.main);
    evaluator.finish(end.err())
}

/// The state of a run: its position, its variables, its budget, and the recorded program.
#[derive(Debug)]
struct Evaluator<'a> {
    body: &'a Body,
    setting: &'a ProgramSetting,
    shape: Shape,
    recorder: Recorder,
    /// The recorder's number of each loop's name.
    loop_names: Vec<Option<u32>>,
    /// The frames of all open calls.
    slots: Vec<i64>,
    /// The first slot of the current frame.
    base: usize,
    /// The iterations of all open loops, outermost first.
    iterations: Vec<Iteration>,
    /// The open calls of nested fns.
    calls: Vec<Loc>,
    /// The attributes around the statement.
    attributes: AttributesInForce,
    /// The current statement.
    loc: Loc,
    budget: u64,
    /// Chunks of the longest buffer.
    longest: u32,
    /// The first overlap of each statement, and how many more it has.
    overlaps: Vec<(Diagnostic, u64)>,
    operands: movement::Operands,
}

#[derive(Debug)]
struct Iteration {
    /// The recorder's number of the loop's name.
    name: u32,
    value: i64,
    /// Its node among the trails, made when an operation first needs it.
    node: Option<TrailId>,
}

/// The attributes that hold for a statement. Of nested ones the innermost counts, option by option.
#[derive(Clone, Copy, Debug, Default)]
struct AttributesInForce {
    /// `#[on(..)]`, `#[channel(..)]`, `#[block(..)]`.
    site: RawSite,
    /// `#[schedule(..)]`, `#[multimem]`.
    how: StatementOptions,
}

impl<'a> Evaluator<'a> {
    fn new(body: &'a Body, source: &SourceFile, setting: &'a ProgramSetting, shape: Shape) -> Evaluator<'a> {
        let head = &body.head;
        let params = head.params.iter().map(|param| param.name.clone()).zip(setting.params.iter().copied());
        let recorder = Recorder::new(Header {
            params: params.collect(),
            divisible: head.divisible,
            reproducible: head.reproducible,
            ..Header::new(&*head.name, shape, source.clone(), head.name_loc)
        });
        Evaluator {
            body,
            setting,
            shape,
            recorder,
            loop_names: vec![None; body.loops.len()],
            slots: Vec::new(),
            base: 0,
            iterations: Vec::new(),
            calls: Vec::new(),
            attributes: AttributesInForce::default(),
            loc: head.name_loc,
            budget: BUDGET,
            longest: sizes::longest(&shape),
            overlaps: Vec::new(),
            operands: movement::Operands::default(),
        }
    }

    /// Runs the fn of the collective, or of one of its sizes, and gives its value.
    fn call_fn(&mut self, function: &'a BodyFn) -> Evaluated<i64> {
        self.slots.clear();
        self.slots.resize(function.frame as usize, 0);
        self.block_scalar(&function.block)
    }

    /// The number of a name of the language or of the attribute.
    fn known(&self, known: KnownName) -> i64 {
        match known {
            KnownName::Ranks => self.shape.ranks.into(),
            KnownName::Root => self.shape.root.0.into(),
            KnownName::Nodes => self.shape.nodes.into(),
            KnownName::LocalRanks => (self.shape.ranks / self.shape.nodes.max(1)).into(),
            KnownName::Param(index) => self.setting.params.get(index as usize).copied().unwrap_or(0),
        }
    }

    fn finish(self, stop: Option<Stop>) -> Result<Program, Vec<Diagnostic>> {
        let mut findings = Vec::new();
        for (mut finding, more) in self.overlaps {
            if let Some(context) = finding.context.as_mut().filter(|_| more > 0) {
                let plural = if more == 1 { "" } else { "s" };
                context.more = format!("{more} more iteration{plural} likewise");
            }
            findings.push(finding);
        }
        let finished = match stop {
            None => self.recorder.finish(),
            Some(Stop(finding)) => {
                findings.push(*finding);
                Err(self.recorder.stopped())
            }
        };
        match finished {
            Ok(program) if findings.is_empty() => Ok(program),
            Ok(_) => Err(findings),
            Err(recorded) => {
                findings.extend(recorded);
                findings.sort_by_key(|finding| finding.loc);
                Err(findings)
            }
        }
    }

    /// Takes `cost` off the budget.
    fn spend(&mut self, cost: u64) -> Evaluated<()> {
        match self.budget.checked_sub(cost) {
            Some(left) => {
                self.budget = left;
                Ok(())
            }
            None => {
                self.budget = 0;
                let message = format!("the evaluation takes more than {BUDGET} steps");
                let mut stop = self.stop(Check::Arithmetic, message);
                let steps = "a statement, an iteration, a call and a moved chunk are a step each";
                stop.0.notes.push(format!("{steps}, an operation is {OPERATION} more"));
                stop.0.help = self.endless();
                Err(stop)
            }
        }
    }

    /// Returns the help for a `while` that has taken most of the budget.
    fn endless(&mut self) -> Option<String> {
        let name = self.recorder.trails().intern("while");
        let loops = self.iterations.iter().filter(|iteration| iteration.name == name);
        let rounds = loops.map(|iteration| iteration.value).max()?;
        (rounds > ENDLESS).then(|| {
            format!("the `while` has gone round {rounds} times: see that its condition becomes false")
        })
    }
}
