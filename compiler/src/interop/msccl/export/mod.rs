//! Programs as algorithm files.
//!
//! Everything is staged, chunk by chunk, and divided into steps (`narrow`); chains of steps that send to each other get a
//! channel, and each step a thread block (`place`); an order is found in which no connection holds more than the runtime has
//! room for (`order`); and what a step has to wait for becomes its dependence (`steps`). The result is laid out and proved as
//! a file that is imported is, before its text is written (`write`).
//!
//! A program says more than a file can: what it says of slots, tiles, threads, instances, blocks of its own and transports
//! other than staged is refused, and so are kinds that have no name there. A file has no root: that of a rooted kind stands in
//! a comment.

mod narrow;
mod order;
mod place;
mod refuse;
mod steps;
mod write;

use super::document::{Algorithm, Said};
use super::runtime::{Runtime, room};
use crate::collective::Collective;
use crate::diagnostic::{Check, Diagnostic, Diagnostics, Loc, SourceFile};
use crate::interop::identifier;
use crate::lower;
use crate::options::{self, Protocol};
use crate::program::Program;
use rustc_hash::FxHashSet;

/// A program as a file.
#[derive(Debug)]
pub struct Exported {
    /// The file's text.
    pub text: String,
    /// The plan that the text was written from, proved. Importing the text gives an equal one.
    pub plan: Collective,
}

/// Writes a collective as an algorithm file for `ranks` GPUs.
///
/// # Errors
/// What is wrong with the program; `unsupported`: everything that a file cannot say, or else what is beyond the limits of
/// the runtime.
pub fn export(collective: &Collective, ranks: u32, runtime: Runtime) -> Result<Exported, Diagnostics> {
    let program = collective.program(ranks)?;
    let wrong = |list| Diagnostics { list, source: Some(collective.source.clone()) };
    let options = collective.options();
    let refused = refuse::unsayable(&program, &options, runtime);
    if !refused.is_empty() {
        return Err(wrong(refused));
    }
    let made = |protocol| plan(collective, &program, protocol, runtime).map_err(wrong);
    let Some((bytes, protocols)) = lower::open(&program, &options) else {
        return made(refuse::protocol(&program, &options));
    };
    // As lowering chooses.
    let mut best: Option<(f64, Exported)> = None;
    let mut first_wrong = None;
    for protocol in protocols {
        match made(protocol) {
            Ok(exported) => {
                let schedule = exported.plan.verified(&exported.plan.domain(ranks))?;
                let cost = lower::cost(&program, &schedule, protocol, bytes);
                if best.as_ref().is_none_or(|(least, _)| cost < *least) {
                    best = Some((cost, exported));
                }
            }
            Err(finding) => drop(first_wrong.get_or_insert(finding)),
        }
    }
    match (best, first_wrong) {
        (Some((_, exported)), _) => Ok(exported),
        (None, Some(finding)) => Err(finding),
        (None, None) => made(Protocol::Simple),
    }
}

/// The file with one protocol.
fn plan(
    collective: &Collective,
    program: &Program,
    protocol: Protocol,
    runtime: Runtime,
) -> Result<Exported, Vec<Diagnostic>> {
    let refuse = |message: String| Diagnostic::new(Check::Unsupported, program.name_loc, message);
    // The first that has room: what is fused, in depth; then in the program's order; then with each message read at once.
    let attempts = [(true, true), (true, false), (false, false)];
    let found = attempts.into_iter().find_map(|(fused, by_depth)| laid(program, protocol, fused, by_depth));
    let Some((narrow, gpus)) = found else {
        let room = room(protocol);
        let message =
            format!("`{}` needs more than {room} messages on their way on a connection", program.name);
        return Err(vec![refuse(message).note(format!("{} has no more by {protocol}", runtime.name()))]);
    };
    let shape = program.shape;
    let mut algorithm = Algorithm {
        name: identifier(&program.name),
        loc: Loc::default(),
        kind: shape.kind,
        protocol,
        ranks: shape.ranks,
        unit_chunks: shape.chunks,
        in_place: shape.in_place,
        out_of_place: !shape.in_place,
        gpus,
        said: Said::default(),
    };
    if let Some(beyond) = refuse::limits(program, &algorithm, runtime) {
        return Err(vec![beyond]);
    }
    let sizes = options::sizes(&collective.schedules).unwrap_or_default().get(collective.chosen).copied();
    let mut comments = vec![format!("{} for {} ranks", algorithm.name, shape.ranks)];
    if shape.kind.rooted() {
        comments.push(format!("for root {} alone, which a file cannot say", shape.root.0));
    }
    if narrow.split {
        comments.push(
            "a sum of more than two is made by several steps: 16-bit types may be rounded at each".to_owned(),
        );
    }
    comments.extend(runtime.remark().map(str::to_owned));
    let written = |algorithm: &Algorithm| write::write(algorithm, runtime, &shape, sizes, &comments);
    let proved = |algorithm: &Algorithm, in_place: bool| {
        let path = format!("{}.xml", algorithm.name);
        let source = SourceFile {
            path: path.as_str().into(),
            first_line: 1,
            text: written(algorithm).as_str().into(),
        };
        let plan = super::collective(algorithm.clone(), source)?.rooted(shape.root.0);
        let called = plan.called(in_place);
        match called.verified(&called.domain(shape.ranks)) {
            Ok(_) => Ok(plan),
            Err(Diagnostics { list, .. }) => Err(list),
        }
    };
    let plan = proved(&algorithm, shape.in_place).map_err(|list| {
        let why = list.first().map(Diagnostic::plain).unwrap_or_default();
        vec![refuse(format!("`{}` as steps cannot be proved", program.name)).note(why)]
    })?;
    // Steps that are right with one buffer serve both calls.
    let both = Algorithm { in_place: true, ..algorithm.clone() };
    let plan = match !shape.in_place && shape.kind.has_in_place() {
        true => proved(&both, true).map_or(plan, |plan| {
            algorithm = both;
            plan
        }),
        false => plan,
    };
    Ok(Exported { text: written(&algorithm), plan })
}

/// The steps of all GPUs, if the order of the tasks leaves room for what is on its way.
fn laid(
    program: &Program,
    protocol: Protocol,
    fused: bool,
    by_depth: bool,
) -> Option<(narrow::Narrow, Vec<super::document::Gpu>)> {
    let tasks = lower::staged(program, protocol, fused);
    let mut cut = FxHashSet::default();
    loop {
        let narrow = narrow::narrow(program, &tasks, &cut);
        let mut larger = program.clone();
        larger.shape.scratch = narrow.scratch.iter().copied().max().unwrap_or(0);
        let before = lower::dependences(&larger, &narrow.tasks);
        match place::place(program, &narrow.tasks, &before, by_depth) {
            Ok(placed) => {
                let order = order::order(&narrow.tasks, &before, &placed, room(protocol))?;
                let gpus = steps::gpus(program, &narrow, &before, &placed, &order);
                return Some((narrow, gpus));
            }
            // Each round cuts a message that was not.
            Err(more) => {
                let known = cut.len();
                cut.extend(more);
                if cut.len() == known {
                    return None;
                }
            }
        }
    }
}
