//! Program -> Schedule. Passes, in order, one a file:
//!
//! 1. `choose`: the protocol, where the options leave it open; `supported`: options that cannot be carried out;
//! 2. `divide`: the tasks: operations, and where data is staged also those that send and receive;
//! 3. `fuse`: tasks that only send what another has made become part of it; `prune`: stores that nobody reads are left out;
//! 4. `depend`: the dependence graph of the tasks (read after write, write after read, write after write);
//! 5. `assign`: depth and thread block of each task on its rank, alike on ranks where tasks play the same `roles`;
//! 6. `order`: where slots are short, an order in which none is waited for in vain;
//! 7. `synchronize`: which blocks have to wait for which tasks, for which ranks' start, and who exits after
//!    what, without the waits that others imply;
//! 8. `arrange`: the steps of each block, with counters, values, credits and block-wide barriers.
//!
//! An imported plan says which tasks there are, where each runs, in which order and what it waits for; `follow` takes that
//! in place of passes 1 to 7, and `keep` that in place of passes 1 to 6.
//!
//! Nothing here is trusted: stage 2 proves the result.

mod arrange;
mod assign;
mod choose;
mod depend;
mod divide;
mod follow;
mod fuse;
mod keep;
mod order;
mod prune;
mod roles;
mod supported;
mod synchronize;

use crate::diagnostic::{Check, Diagnostic};
use crate::kernel::widths::Widths;
use crate::options::{Protocol, ScheduleOptions, Transport};
use crate::program::transport::transport;
use crate::program::{Op, Program};
use crate::schedule::FIFOS;
use crate::schedule::SLOTS;
use crate::schedule::Schedule;
use crate::schedule::domain::Domain;
use arrange::Frame;
pub use choose::Chosen;
pub(crate) use choose::{cost, open};
use divide::Means;
pub(crate) use divide::{End, Message, Task, Tasks};
pub(crate) use follow::{Plan, follow};
pub(crate) use keep::{Kept, keep};
use petgraph::Direction;
use petgraph::graph::NodeIndex;
use std::collections::BTreeMap;

/// Bytes of a tile where instances share out chunks that move as a whole otherwise.
const INSTANCE_TILE: u64 = 128 << 10;

/// What lowering saved, and chose.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Saved {
    /// Dependences between tasks of different blocks.
    pub dependences: usize,
    /// Those of them that need no wait of their own, since others imply them.
    pub implied: usize,
    /// Tasks that became part of others.
    pub fused: usize,
    /// Stores left out, as nobody reads what they would leave.
    pub pruned: usize,
    /// The protocol, where the options leave it open and say how large messages get.
    pub chosen: Option<Chosen>,
}

/// Lowers a program that stage 1 accepted. Unless the options say otherwise, copies are puts by the source's rank,
/// everything else gets by the destination's, or whatever rank `#[on]` names; where ranks do not reach each other's
/// buffers, or a protocol carries its flags in the data, everything is staged. A schedule that says up to which size it
/// serves, and names no protocol, gets the cheapest for that size.
///
/// Errors: `unsupported` where an option cannot be carried out.
pub fn lower(
    program: &Program,
    domain: &Domain,
    options: &ScheduleOptions,
) -> Result<Schedule, Vec<Diagnostic>> {
    planned(program, domain, options).map(|(schedule, _)| schedule)
}

/// As [`lower`]; with what was saved and chosen.
pub fn planned(
    program: &Program,
    domain: &Domain,
    options: &ScheduleOptions,
) -> Result<(Schedule, Saved), Vec<Diagnostic>> {
    let Some((bytes, protocols)) = choose::open(program, options) else {
        return carried_out(program, domain, options);
    };
    let price = |protocol| {
        let lowered = carried_out(program, domain, &choose::with(options, protocol));
        lowered.map(|lowered| (choose::cost(program, &lowered.0, protocol, bytes), protocol, lowered))
    };
    let [first, second] = protocols.map(price);
    let (_, protocol, (schedule, saved)) = match (first, second) {
        (Ok(first), Ok(second)) if second.0 < first.0 => second,
        (Ok(first), _) => first,
        (Err(_), Ok(second)) => second,
        (Err(findings), Err(_)) => return Err(findings),
    };
    Ok((schedule, Saved { chosen: Some(Chosen { protocol, bytes }), ..saved }))
}

/// The schedule that the options ask for.
fn carried_out(
    program: &Program,
    domain: &Domain,
    options: &ScheduleOptions,
) -> Result<(Schedule, Saved), Vec<Diagnostic>> {
    let findings = supported::supported(program, domain, options);
    if !findings.is_empty() {
        return Err(findings);
    }
    let means = |op: &Op| {
        let how = &program.statements[op.statement.0 as usize].how;
        match divide::staging(how, options, domain.symmetric) {
            Some(protocol) => Means::Staged(protocol),
            None if domain.multicast && transport(options, how) == Some(Transport::Multimem) => Means::Switch,
            None => Means::Direct,
        }
    };
    let any_staged = program.ops.iter().any(|op| matches!(means(op), Means::Staged(_)));
    let lines =
        program.ops.iter().any(|op| matches!(means(op), Means::Staged(Protocol::Ll | Protocol::Ll128)));
    let instances = options.instances.map_or(1, |given| given.value);
    let whole = (instances > 1).then_some(INSTANCE_TILE);
    let tile = options.tile.map(|given| given.value).or(whole.filter(|_| !any_staged));
    let tile = if any_staged { Some(tile.unwrap_or(Widths::staged_tile(lines))) } else { tile };
    let slots = options.slots.filter(|_| tile.is_some()).map_or(SLOTS, |given| given.value);
    let divided = divide::divide(program, means, tile.is_some());
    let before = divided.list.len();
    let mut tasks = fuse::fuse(program, divided);
    let fused = before - tasks.list.len();
    let pruned = prune::prune(program, &mut tasks);
    if let Some(finding) = too_many_ends(program, &tasks) {
        return Err(vec![finding]);
    }
    let graph = depend::depend(program, &tasks);
    let mut placement =
        assign::assign(program, &tasks, &graph, supported::cap(domain, options), tile.is_some())?;
    if let Some(finding) = too_many_fifos(program, &tasks, &placement, instances) {
        return Err(vec![finding]);
    }
    order::fit_slots(program, &tasks, &graph, &mut placement, slots)?;
    let sync = synchronize::synchronize(program.shape.ranks, &tasks, &graph, &placement);
    let frame = Frame { block_cap: domain.block_cap, tile, slots, instances };
    let (dependences, implied) = (sync.dependences, sync.implied);
    let saved = Saved { dependences, implied, fused, pruned, chosen: None };
    Ok((arrange::arrange(program, &tasks, &placement, &sync, frame), saved))
}

/// The tasks of a program whose every operation is staged by a protocol: of single chunks, without stores that nobody reads.
/// `fused`: what is sent on goes with what makes it, else every message is read right after it is stored.
pub(crate) fn staged(program: &Program, protocol: Protocol, fused: bool) -> Tasks {
    let divided = divide::divide(program, |_| Means::Staged(protocol), true);
    let mut tasks = if fused { fuse::fuse(program, divided) } else { divided };
    prune::prune(program, &mut tasks);
    tasks
}

/// For each task those that have to come before it, but for the writers of its messages.
pub(crate) fn dependences(program: &Program, tasks: &Tasks) -> Vec<Vec<u32>> {
    let graph = depend::depend(program, tasks);
    let before = |task: u32| graph.neighbors_directed(NodeIndex::new(task as usize), Direction::Incoming);
    (0..tasks.list.len() as u32)
        .map(|task| before(task).map(|before| before.index() as u32).collect())
        .collect()
}

/// Most sources, or destinations, of a move of lines: device code has a bit for each that says whether it is a slot.
const MOST_ENDS: usize = 64;

/// An operation that moves lines from or to more places than a move can.
fn too_many_ends(program: &Program, tasks: &divide::Tasks) -> Option<Diagnostic> {
    let lines = |task: &divide::Task| {
        task.messages().any(|m| tasks.messages[m as usize].protocol != Protocol::Simple)
    };
    let wide = |task: &&divide::Task| task.sources.len().max(task.dests.len()) > MOST_ENDS && lines(task);
    let task = tasks.list.iter().find(wide)?;
    let loc = program.statement(task.op).loc;
    let ends = task.sources.len().max(task.dests.len());
    let message = format!("an operation with {ends} sources or destinations through lines with flags");
    let finding = Diagnostic::new(Check::Unsupported, loc, message);
    Some(
        finding
            .note(format!("a move has at most {MOST_ENDS}"))
            .help("take protocol Simple for this statement"),
    )
}

/// More connections between two ranks than there are FIFOs.
fn too_many_fifos(
    program: &Program,
    tasks: &divide::Tasks,
    placement: &assign::Placement,
    instances: u32,
) -> Option<Diagnostic> {
    let mut fifos: BTreeMap<_, u32> = BTreeMap::new();
    for (protocol, writer, reader) in order::loads(tasks, placement).into_keys() {
        *fifos.entry((protocol, writer.rank, reader.rank)).or_default() += instances;
    }
    let ((_, from, to), &most) = fifos.iter().max_by_key(|(_, most)| **most)?;
    if most <= FIFOS {
        return None;
    }
    let message = format!("`{}` needs {most} FIFOs from {from} to {to}", program.name);
    let finding = Diagnostic::new(Check::Unsupported, program.name_loc, message);
    Some(
        finding
            .note(format!("there are {FIFOS} from one rank to another, one for each pair of thread blocks"))
            .help("lower `blocks` or `instances`"),
    )
}
