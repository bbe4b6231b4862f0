//! Runs a collective for a world size: the tree to a program, by the recorder.
//!
//! What fails is a finding on its statement, with the iteration and the values at hand, and ends the run: what comes
//! after would fail for the same reason. Operations with places outside their buffers do not end it; the recorder
//! reports those.

mod action;
mod expression;
mod movement;
mod values;

use crate::syntax::{Definition, Function};
use quadrille_compiler::collective::Setting;
use quadrille_compiler::diagnostic::{Check, Context, Diagnostic, Loc, SourceFile};
use quadrille_compiler::kind::Shape;
use quadrille_compiler::program::{Program, StatementId, TrailId, Trails};
use quadrille_compiler::record::{Header, Recorder};

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

/// The program of `definition` for `ranks` ranks. All findings of the run otherwise.
pub(crate) fn program(
    definition: &Definition,
    source: &SourceFile,
    setting: &Setting,
) -> Result<Program, Vec<Diagnostic>> {
    if definition.functions.is_empty() {
        return run(definition, source, setting);
    }
    // Fns may call themselves, for which the caller's stack may be too small.
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .stack_size(STACK_BYTES)
            .spawn_scoped(scope, || run(definition, source, setting));
        match thread.map(|thread| thread.join()) {
            Ok(Ok(result)) => result,
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(error) => {
                let message = format!("there is no thread to evaluate nested fns on: {error}");
                Err(vec![Diagnostic::new(Check::Unsupported, definition.name_loc, message)])
            }
        }
    })
}

fn run(definition: &Definition, source: &SourceFile, setting: &Setting) -> Result<Program, Vec<Diagnostic>> {
    let options = &definition.options;
    let shape = Shape { in_place: options.in_place, ..Shape::new(options.kind, setting.ranks, 1) };
    let chunks =
        Evaluator::new(definition, source, shape).chunks().map_err(|Stop(finding)| vec![*finding])?;
    let shape = Shape { chunks, ..shape };
    let mut evaluator = Evaluator::new(definition, source, shape);
    let end = evaluator.body(&definition.body);
    evaluator.finish(end.err())
}

/// The run is over; the finding says why.
#[derive(Debug)]
struct Stop(Box<Diagnostic>);

type Run<T> = Result<T, Stop>;

#[derive(Debug)]
struct Evaluator<'a> {
    definition: &'a Definition,
    source: &'a SourceFile,
    shape: Shape,
    recorder: Recorder,
    /// The recorder's number of each statement that has moved data.
    statements: Vec<Option<StatementId>>,
    /// The recorder's number of each loop's name.
    loop_names: Vec<Option<u32>>,
    /// The frames of all open calls.
    slots: Vec<i64>,
    /// Where the current frame begins.
    base: usize,
    /// The iterations of all open loops, outermost first.
    iterations: Vec<Iteration>,
    /// The open calls of nested fns.
    calls: Vec<Loc>,
    /// The rank named by the innermost `#[on(..)]`.
    on: Option<i64>,
    /// The statement being run.
    loc: Loc,
    budget: u64,
    /// Chunks of the longest buffer.
    longest: u32,
    /// The first overlap of each statement, and how many more it has.
    overlaps: Vec<(Diagnostic, u64)>,
    scratch: movement::Scratch,
}

#[derive(Debug)]
struct Iteration {
    name: u32,
    value: i64,
    /// Its node among the trails, made when an operation first needs it.
    node: Option<TrailId>,
}

impl<'a> Evaluator<'a> {
    fn new(definition: &'a Definition, source: &'a SourceFile, shape: Shape) -> Evaluator<'a> {
        let header = Header::new(&definition.name, shape, source.clone(), definition.name_loc);
        let recorder = Recorder::new(Header { divisible: definition.options.divisible, ..header });
        Evaluator {
            definition,
            source,
            shape,
            recorder,
            statements: vec![None; definition.moves],
            loop_names: vec![None; definition.loops.len()],
            slots: Vec::new(),
            base: 0,
            iterations: Vec::new(),
            calls: Vec::new(),
            on: None,
            loc: definition.name_loc,
            budget: BUDGET,
            longest: units_of(&shape).saturating_mul(shape.chunks),
            overlaps: Vec::new(),
            scratch: movement::Scratch::default(),
        }
    }

    /// The number of chunks of a unit.
    fn chunks(mut self) -> Run<u32> {
        let options = &self.definition.options;
        self.loc = options.chunks_loc;
        let chunks = self.body(&self.definition.chunks)?;
        let count = u32::try_from(chunks).ok().filter(|chunks| *chunks > 0);
        let Some(count) = count else {
            let message = format!("`{}` is {chunks}", self.source.slice(options.chunks_loc));
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

    /// Runs the fn of the collective, or of its number of chunks, for its value.
    fn body(&mut self, function: &'a Function) -> Run<i64> {
        self.slots.clear();
        self.slots.resize(function.frame as usize, 0);
        self.block_scalar(&function.body)
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

    fn stop(&mut self, check: Check, message: String) -> Stop {
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
            trail = self.recorder.trails().enter(trail, iteration.name, iteration.value);
            iteration.node = Some(trail);
        }
        trail
    }

    fn loop_name(&mut self, name: u32) -> u32 {
        let names = &self.definition.loops;
        let recorder = &mut self.recorder;
        *self.loop_names[name as usize].get_or_insert_with(|| recorder.trails().intern(&names[name as usize]))
    }
}

/// Units of the larger of one rank's buffers.
fn units_of(shape: &Shape) -> u32 {
    let (input, output) = shape.kind.units(shape.ranks);
    input.max(output)
}
