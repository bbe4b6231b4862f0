//! One run of a collective for one world size: what the evaluator over its text and the compiled body that
//! `#[collective]` leaves behind have in common. Both drive a [`Recording`] by the same calls in the same order, and so
//! record the same program and the same findings.
//!
//! What fails is a finding on its statement, with the iteration and the values at hand, and ends the run ([`Stop`]):
//! what comes after would fail for the same reason. Operations with places outside their buffers do not end it; the
//! recorder reports those.

pub(crate) mod aliasing;
pub mod arithmetic;
pub mod record;

pub mod steps;

mod movement;

pub mod tape;

mod sizes;

pub use movement::{Chunks, EveryRank, RanksOf, Sources};
pub use sizes::Size;

use crate::diagnostic::{Check, Diagnostic, DiagnosticContext, Loc, SourceFile};
use crate::evaluate::record::{Header, Recorder};
use crate::options::How;
use crate::program::ProgramSetting;
use crate::program::RawSite;
use crate::program::kind::{Kind, Shape};
use crate::program::{Program, TrailId, Trails};

/// What one run may cost, in steps: a statement, an iteration and a call are one each, and so is every chunk that an
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
    /// The collective's kind.
    pub kind: Kind,
    /// One buffer named `data` instead of `input` and `output`.
    pub in_place: bool,
    /// Whether counts are promised to be multiples of the number of chunks.
    pub divisible: bool,
    /// Whether results are promised to depend on neither rank, message size nor schedule.
    pub reproducible: bool,
    /// Where the sizes stand that the attribute gives, by [`Size`]; the name where it says nothing.
    pub sizes: [Loc; 3],
    /// The names of the parameters.
    pub params: &'a [&'a str],
    /// Whether the body has fns of its own, which may call themselves.
    pub calls: bool,
    /// The text that locations point into.
    pub source: &'a SourceFile,
}

/// Runs a collective in a setting: `size` for every [`Size`], then `body`.
///
/// # Errors
/// All findings of the run.
pub fn run(
    head: &Head<'_>,
    setting: &ProgramSetting,
    size: impl Fn(Size, &mut Recording) -> Run<i64> + Send,
    body: impl FnOnce(&mut Recording) -> Run<()> + Send,
) -> Result<Program, Vec<Diagnostic>> {
    if !head.calls {
        return run_here(head, setting, size, body);
    }
    // Fns may call themselves, for which the caller's stack may be too small.
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .stack_size(STACK_BYTES)
            .spawn_scoped(scope, || run_here(head, setting, size, body));
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
    setting: &ProgramSetting,
    size: impl Fn(Size, &mut Recording) -> Run<i64>,
    body: impl FnOnce(&mut Recording) -> Run<()>,
) -> Result<Program, Vec<Diagnostic>> {
    let shape = sizes::shape(head, setting, size).map_err(|Stop(finding)| vec![*finding])?;
    let mut recording = Recording::new(head, setting, shape);
    let end = body(&mut recording);
    recording.finish(end.err())
}

/// The state of a run: where it is, what it may still cost, and what it has recorded.
#[derive(Debug)]
pub struct Recording {
    shape: Shape,
    /// The values of the collective's parameters.
    params: Vec<i64>,
    recorder: Recorder,
    /// The iterations of all open loops, outermost first.
    iterations: Vec<Iteration>,
    /// The open calls of nested fns.
    calls: Vec<Loc>,
    /// What the attributes around the statement say.
    attributes: Attributes,
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

/// What attributes say of the statements below and inside them; the innermost counts, one by one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Attributes {
    /// `#[on(..)]`, `#[channel(..)]`, `#[block(..)]`.
    pub site: RawSite,
    /// `#[schedule(..)]`, `#[multimem]`.
    pub how: How,
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
    fn new(head: &Head<'_>, setting: &ProgramSetting, shape: Shape) -> Recording {
        let params = head.params.iter().map(|&name| name.to_owned()).zip(setting.params.iter().copied());
        let recorder = Recorder::new(Header {
            params: params.collect(),
            divisible: head.divisible,
            reproducible: head.reproducible,
            ..Header::new(head.name, shape, head.source.clone(), head.name_loc)
        });
        Recording {
            shape,
            params: setting.params.clone(),
            recorder,
            iterations: Vec::new(),
            calls: Vec::new(),
            attributes: Attributes::default(),
            loc: head.name_loc,
            budget: BUDGET,
            longest: sizes::longest(&shape),
            overlaps: Vec::new(),
            operands: movement::Operands::default(),
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

    /// `ROOT`.
    pub fn root(&self) -> i64 {
        self.shape.root.0.into()
    }

    /// `NODES`.
    pub fn nodes(&self) -> i64 {
        self.shape.nodes.into()
    }

    /// `LOCAL_RANKS`.
    pub fn local_ranks(&self) -> i64 {
        (self.shape.ranks / self.shape.nodes.max(1)).into()
    }

    /// The value of a parameter, by its place in the attribute; 0 if there is none.
    pub fn param(&self, index: usize) -> i64 {
        self.params.get(index).copied().unwrap_or(0)
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

    /// Puts attributes around what follows. Gives what held before, for [`Recording::restore`].
    pub fn attributes(&mut self, inner: &Attributes) -> Attributes {
        let outer = self.attributes;
        let (site, how) = (&outer.site, &outer.how);
        self.attributes = Attributes {
            site: RawSite {
                on: inner.site.on.or(site.on),
                channel: inner.site.channel.or(site.channel),
                block: inner.site.block.or(site.block),
            },
            how: How {
                protocol: inner.how.protocol.or(how.protocol),
                transport: inner.how.transport.or(how.transport),
            },
        };
        outer
    }

    /// Ends what [`Recording::attributes`] began.
    pub fn restore(&mut self, outer: Attributes) {
        self.attributes = outer;
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
                let message = format!("the evaluation takes more than {BUDGET} steps");
                let mut stop = self.stop(Check::Arithmetic, message);
                let steps = "a statement, an iteration, a call and a moved chunk are a step each";
                stop.0.notes.push(format!("{steps}, an operation is {OPERATION} more"));
                stop.0.help = self.endless();
                Err(stop)
            }
        }
    }

    /// What to do where a `while` has taken most of the budget.
    fn endless(&mut self) -> Option<String> {
        let name = self.loop_name("while").0;
        let loops = self.iterations.iter().filter(|iteration| iteration.name.0 == name);
        let rounds = loops.map(|iteration| iteration.value).max()?;
        (rounds > ENDLESS).then(|| {
            format!("the `while` has gone round {rounds} times: see that its condition becomes false")
        })
    }

    /// A finding here and now.
    fn finding(&mut self, check: Check, message: String) -> Diagnostic {
        let trail = self.trail();
        let iteration = self.recorder.trails().describe(trail);
        let context = DiagnosticContext { iteration, ..self.recorder.context() };
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
