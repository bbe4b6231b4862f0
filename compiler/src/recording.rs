//! One run of a collective for one world size: what the evaluator over its text and the compiled body that
//! `#[collective]` leaves behind have in common. Both drive a [`Recording`] by the same calls in the same order, and so
//! record the same program and the same findings.
//!
//! What fails is a finding on its statement, with the iteration and the values at hand, and ends the run ([`Stop`]):
//! what comes after would fail for the same reason. Operations with places outside their buffers do not end it; the
//! recorder reports those.

pub mod arithmetic;

pub mod steps;

mod movement;

pub mod tape;

pub use movement::{Chunks, EveryRank, RanksOf};

use crate::collective::Setting;
use crate::diagnostic::{Check, Context, Diagnostic, Loc, SourceFile};
use crate::ids::Rank;
use crate::kind::{Kind, Shape};
use crate::program::{Program, TrailId, Trails};
use crate::record::{Header, RawSite, Recorder};

/// What one run may cost: a statement, an iteration and a call cost 1 each, and so does every chunk that an operation
/// reads or stores. (A ring all-reduce over 512 ranks costs 3 million.)
const BUDGET: u64 = 10_000_000;

/// How deep nested fns may call each other.
const CALLS_LIMIT: usize = 256;

/// The stack on which nested fns are run: room for [`CALLS_LIMIT`] calls of fns as deeply nested as the parser lets
/// through, also in a build without optimization. Memory that is not touched is not taken.
const STACK_BYTES: usize = 256 << 20;

/// The most chunks a collective may have in all buffers of all ranks.
const CHUNKS_LIMIT: u128 = 1 << 24;

/// The run is over; the finding says why.
#[derive(Debug)]
pub struct Stop(Box<Diagnostic>);

/// What a step of a run yields.
pub type Run<T> = Result<T, Stop>;

/// What is known of a collective before it runs.
#[derive(Clone, Copy, Debug)]
pub struct Head<'a> {
    /// The fn's name.
    pub name: &'a str,
    /// Where the name stands.
    pub name_loc: Loc,
    /// What errors in the number of chunks stand on.
    pub chunks_loc: Loc,
    /// The collective's kind.
    pub kind: Kind,
    /// One buffer named `data` instead of `input` and `output`.
    pub in_place: bool,
    /// Whether counts are promised to be multiples of the number of chunks.
    pub divisible: bool,
    /// Whether the body has fns of its own, which may call themselves.
    pub calls: bool,
    /// The text that locations point into.
    pub source: &'a SourceFile,
}

/// Runs a collective: `chunks` for the number of chunks of a unit, then `body`.
///
/// # Errors
/// All findings of the run.
pub fn run(
    head: &Head<'_>,
    setting: &Setting,
    chunks: impl FnOnce(&mut Recording) -> Run<i64> + Send,
    body: impl FnOnce(&mut Recording) -> Run<()> + Send,
) -> Result<Program, Vec<Diagnostic>> {
    if !head.calls {
        return run_here(head, setting, chunks, body);
    }
    // Fns may call themselves, for which the caller's stack may be too small.
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .stack_size(STACK_BYTES)
            .spawn_scoped(scope, || run_here(head, setting, chunks, body));
        match thread.map(|thread| thread.join()) {
            Ok(Ok(result)) => result,
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(error) => {
                let message = format!("there is no thread to run nested fns on: {error}");
                Err(vec![Diagnostic::new(Check::Unsupported, head.name_loc, message)])
            }
        }
    })
}

fn run_here(
    head: &Head<'_>,
    setting: &Setting,
    chunks: impl FnOnce(&mut Recording) -> Run<i64>,
    body: impl FnOnce(&mut Recording) -> Run<()>,
) -> Result<Program, Vec<Diagnostic>> {
    let root = Rank(setting.root);
    let shape = Shape { in_place: head.in_place, root, ..Shape::new(head.kind, setting.ranks, 1) };
    let chunks = Recording::new(head, shape).unit(head, chunks).map_err(|Stop(finding)| vec![*finding])?;
    let mut recording = Recording::new(head, Shape { chunks, ..shape });
    let end = body(&mut recording);
    recording.finish(end.err())
}

/// The state of a run: where it is, what it may still cost, and what it has recorded.
#[derive(Debug)]
pub struct Recording {
    shape: Shape,
    recorder: Recorder,
    /// The iterations of all open loops, outermost first.
    iterations: Vec<Iteration>,
    /// The open calls of nested fns.
    calls: Vec<Loc>,
    /// Where operations run, as the innermost attributes say.
    site: RawSite,
    /// The statement being run.
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
    name: LoopName,
    value: i64,
    /// Its node among the trails, made when an operation first needs it.
    node: Option<TrailId>,
}

/// The number of a loop variable's name.
#[derive(Clone, Copy, Debug)]
pub struct LoopName(u32);

/// A loop being run.
#[derive(Clone, Copy, Debug)]
pub struct Loop {
    name: LoopName,
    /// Loops around it.
    depth: usize,
}

impl Recording {
    fn new(head: &Head<'_>, shape: Shape) -> Recording {
        let header = Header::new(head.name, shape, head.source.clone(), head.name_loc);
        let recorder = Recorder::new(Header { divisible: head.divisible, ..header });
        Recording {
            shape,
            recorder,
            iterations: Vec::new(),
            calls: Vec::new(),
            site: RawSite::default(),
            loc: head.name_loc,
            budget: BUDGET,
            longest: units_of(&shape).saturating_mul(shape.chunks),
            overlaps: Vec::new(),
            operands: movement::Operands::default(),
        }
    }

    /// The number of chunks of a unit, as `count` yields it.
    fn unit(mut self, head: &Head<'_>, count: impl FnOnce(&mut Recording) -> Run<i64>) -> Run<u32> {
        self.loc = head.chunks_loc;
        let chunks = count(&mut self)?;
        let count = u32::try_from(chunks).ok().filter(|chunks| *chunks > 0);
        let Some(count) = count else {
            let message = format!("`{}` is {chunks}", head.source.slice(head.chunks_loc));
            let finding =
                self.finding(Check::Requirement, message).note("a unit of a message has at least one chunk");
            return Err(Stop(Box::new(finding)));
        };
        let shape = Shape { chunks: count, ..self.shape };
        let buffers = shape.buffers().len() as u128;
        let total = buffers * u128::from(units_of(&shape)) * u128::from(count) * u128::from(shape.ranks);
        if total > CHUNKS_LIMIT {
            let message = format!("the buffers of all ranks have {total} chunks, more than {CHUNKS_LIMIT}");
            return Err(self.stop(Check::Arithmetic, message));
        }
        Ok(count)
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
        findings.extend(stop.map(|Stop(finding)| *finding));
        match self.recorder.finish() {
            Ok(program) if findings.is_empty() => Ok(program),
            Ok(_) => Err(findings),
            Err(recorded) => {
                findings.extend(recorded);
                findings.sort_by_key(|finding| finding.loc);
                Err(findings)
            }
        }
    }

    /// `RANKS`.
    pub fn ranks(&self) -> i64 {
        self.shape.ranks.into()
    }

    /// The statement being run.
    pub fn loc(&self) -> Loc {
        self.loc
    }

    /// Goes on in another place, at no cost: in the value of a block, or back behind one. Gives the place left.
    pub fn go(&mut self, to: Loc) -> Loc {
        std::mem::replace(&mut self.loc, to)
    }

    /// Begins a statement.
    pub fn statement(&mut self, loc: Loc) -> Run<()> {
        self.loc = loc;
        self.spend(1)
    }

    /// Lets a rank, or by `None` the usual one, execute what follows. Gives what held before.
    pub fn on(&mut self, rank: Option<i64>) -> Option<i64> {
        std::mem::replace(&mut self.site.on, rank)
    }

    /// Makes the name of a loop's variable known.
    pub fn loop_name(&mut self, name: &str) -> LoopName {
        LoopName(self.recorder.trails().intern(name))
    }

    /// Enters a loop.
    pub fn open(&mut self, name: LoopName) -> Loop {
        Loop { name, depth: self.iterations.len() }
    }

    /// Begins the iteration of a loop in which its variable has `value`.
    pub fn iteration(&mut self, open: Loop, value: i64) -> Run<()> {
        self.iterations.truncate(open.depth);
        self.iterations.push(Iteration { name: open.name, value, node: None });
        self.spend(1)
    }

    /// Leaves a loop.
    pub fn close(&mut self, open: Loop) {
        self.iterations.truncate(open.depth);
    }

    /// Begins a call of nested fn `name`, before its arguments have values.
    pub fn call(&mut self, name: &str) -> Run<()> {
        self.spend(1)?;
        if self.calls.len() == CALLS_LIMIT {
            let message = format!("`{name}` is called inside more than {CALLS_LIMIT} calls");
            return Err(self.stop(Check::Arithmetic, message));
        }
        Ok(())
    }

    /// Enters the fn called at `loc`.
    pub fn enter(&mut self, loc: Loc) {
        self.calls.push(loc);
    }

    /// Leaves the fn entered last.
    pub fn leave(&mut self) {
        self.calls.pop();
    }

    /// The index into an array of `len` items.
    pub fn index(&mut self, len: usize, index: i64) -> Run<usize> {
        match usize::try_from(index).ok().filter(|index| *index < len) {
            Some(index) => Ok(index),
            None => {
                let message = format!("index {index} is outside an array of {len}");
                Err(self.stop(Check::OutOfBounds, message))
            }
        }
    }

    /// The end of the run by an operation without a value, which `text` at `loc` asked for. `values` are those that
    /// it reads, as `RANKS = 4, c = 1`.
    #[cold]
    pub fn fault(&mut self, message: String, loc: Loc, values: &str) -> Stop {
        let text = self.recorder.source().slice(loc).split_whitespace().collect::<Vec<_>>().join(" ");
        let mut stop = self.stop(Check::Arithmetic, message);
        let note =
            if values.is_empty() { format!("in `{text}`") } else { format!("in `{text}`, where {values}") };
        stop.0.notes.insert(0, note);
        stop
    }

    /// The end of the run by a requirement that does not hold: its message, or if there is none, its condition at
    /// `condition`; and the values that the condition reads.
    #[cold]
    pub fn unmet(&mut self, message: String, condition: Loc, values: &str) -> Stop {
        let message = if message.is_empty() {
            format!("`{}` does not hold", self.recorder.source().slice(condition))
        } else {
            message
        };
        let mut stop = self.stop(Check::Requirement, message);
        if !values.is_empty() {
            stop.0.notes.insert(0, format!("here {values}"));
        }
        stop
    }

    /// Takes `cost` off the budget.
    fn spend(&mut self, cost: u64) -> Run<()> {
        match self.budget.checked_sub(cost) {
            Some(left) => {
                self.budget = left;
                Ok(())
            }
            None => {
                self.budget = 0;
                Err(self.stop(
                    Check::Arithmetic,
                    format!("more than {BUDGET} statements, iterations and moved chunks are evaluated"),
                ))
            }
        }
    }

    /// A finding here and now.
    fn finding(&mut self, check: Check, message: String) -> Diagnostic {
        let trail = self.trail();
        let context = Context {
            ranks: self.shape.ranks,
            iteration: self.recorder.trails().describe(trail),
            ..Context::default()
        };
        let finding = Diagnostic::new(check, self.loc, message).context(context);
        match self.calls.last() {
            Some(call) => finding.note(format!("called at {call}")),
            None => finding,
        }
    }

    /// The end of the run by a finding here and now.
    #[cold]
    pub fn stop(&mut self, check: Check, message: String) -> Stop {
        Stop(Box::new(self.finding(check, message)))
    }

    /// The current iteration.
    fn trail(&mut self) -> TrailId {
        let known = self.iterations.iter().rposition(|iteration| iteration.node.is_some());
        let (mut trail, missing) = match known {
            Some(i) => (self.iterations[i].node.unwrap_or(Trails::ROOT), i + 1),
            None => (Trails::ROOT, 0),
        };
        for iteration in &mut self.iterations[missing..] {
            trail = self.recorder.trails().enter(trail, iteration.name.0, iteration.value);
            iteration.node = Some(trail);
        }
        trail
    }
}

/// Units of the larger of one rank's buffers.
fn units_of(shape: &Shape) -> u32 {
    let (input, output) = shape.kind.units(shape.ranks);
    input.max(output)
}
