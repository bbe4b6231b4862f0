//! Program -> Schedule. Passes, in order, one a file:
//!
//! 1. `choose`: the protocol, where the options leave it open; `supported`: options that cannot be carried out;
//! 2. `divide`: the tasks: operations, and where data is staged also those that send and receive;
//! 3. `fuse`: tasks that only send what another has made become part of it; `prune`: stores that nobody reads are left out;
//! 4. `depend`: the dependence graph of the tasks (read after write, write after read, write after write);
//! 5. `assign`: depth and thread block of each task on its rank, alike on ranks where tasks play the same `roles`;
//! 6. `order`: where slots are short, an order in which none is waited for in vain;
//! 7. `synchronize`: which blocks have to wait for which tasks, for which ranks' start, and for
//!    which tasks before they end, without the waits that others imply;
//! 8. `arrange`: the steps of each block, with counters, values, credits and block-wide barriers.
//!
//! An imported plan says which tasks there are, where each runs, in which order, and what it waits for. `follow` replaces
//! passes 1 to 7 by what the plan says, `keep` passes 1 to 6.
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
mod limits;
mod order;
mod prune;
mod roles;
mod supported;
mod synchronize;

use crate::diagnostic::Diagnostic;
use crate::kernel::widths::Widths;
use crate::options::{Protocol, ScheduleOptions, Transport};
use crate::program::transport::transport;
use crate::program::{Op, Program};
use crate::schedule::SLOTS;
use crate::schedule::Schedule;
use crate::schedule::domain::Domain;
use arrange::ScheduleFrame;
pub use choose::ChosenProtocol;
pub(crate) use choose::{cost, open};
use divide::Means;
pub(crate) use divide::{Task, TaskEnd, TaskMessage, Tasks};
pub(crate) use follow::{FollowedPlan, follow};
pub(crate) use keep::{KeptPlan, keep};
use petgraph::Direction;
use petgraph::graph::NodeIndex;

/// Bytes of a tile where instances share out chunks that otherwise move as a whole.
const INSTANCE_TILE: u64 = 128 << 10;

/// A lowered program.
#[derive(Debug)]
pub struct Lowered {
    /// The schedule, unproved.
    pub schedule: Schedule,
    /// The savings and choices of lowering.
    pub savings: Savings,
}

/// The savings of lowering, and the protocol that it chose.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Savings {
    /// Dependences between tasks of different blocks.
    pub dependences: usize,
    /// Those of them that need no wait of their own, since others imply them.
    pub implied: usize,
    /// Tasks that became part of others.
    pub fused: usize,
    /// Stores left out because nobody reads their result.
    pub pruned: usize,
    /// The protocol, if the options leave it open and say how large messages get.
    pub chosen: Option<ChosenProtocol>,
}

/// Lowers a program that stage 1 accepted.
///
/// Unless the options say otherwise, copies are puts by the source's rank, and everything else is a get by the
/// destination's rank, or by the rank that `#[on]` names. Where ranks do not reach each other's buffers, or a protocol
/// carries its flags in the data, everything is staged. A schedule that says up to which size it serves, and names no
/// protocol, gets the cheapest for that size.
///
/// Errors: `unsupported` where an option cannot be carried out.
pub fn lower(
    program: &Program,
    domain: &Domain,
    options: &ScheduleOptions,
) -> Result<Lowered, Vec<Diagnostic>> {
    let Some((bytes, protocols)) = choose::open(program, options) else {
        return run_passes(program, domain, options);
    };
    let price = |protocol| {
        let lowered = run_passes(program, domain, &choose::with(options, protocol));
        lowered.map(|lowered| (choose::cost(program, &lowered.schedule, protocol, bytes), protocol, lowered))
    };
    let [first, second] = protocols.map(price);
    let (_, protocol, mut lowered) = match (first, second) {
        (Ok(first), Ok(second)) if second.0 < first.0 => second,
        (Ok(first), _) => first,
        (Err(_), Ok(second)) => second,
        (Err(findings), Err(_)) => return Err(findings),
    };
    lowered.savings.chosen = Some(ChosenProtocol { protocol, bytes });
    Ok(lowered)
}

/// Lowers by the protocol of the options.
fn run_passes(
    program: &Program,
    domain: &Domain,
    options: &ScheduleOptions,
) -> Result<Lowered, Vec<Diagnostic>> {
    let findings = supported::supported(program, domain, options);
    if !findings.is_empty() {
        return Err(findings);
    }
    let means = |op: &Op| means(program, domain, options, op);
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
    if let Some(finding) = limits::too_many_ends(program, &tasks) {
        return Err(vec![finding]);
    }
    let graph = depend::depend(program, &tasks);
    let mut placement =
        assign::assign(program, &tasks, &graph, supported::cap(domain, options), tile.is_some())?;
    if let Some(finding) = limits::too_many_fifos(program, &tasks, &placement, instances) {
        return Err(vec![finding]);
    }
    order::fit_slots(program, &tasks, &graph, &mut placement, slots)?;
    let sync = synchronize::synchronize(program.shape.ranks, &tasks, &graph, &placement);
    let frame = ScheduleFrame { block_cap: domain.block_cap, tile, slots, instances };
    let savings = Savings { fused, pruned, ..sync.savings() };
    Ok(Lowered { schedule: arrange::arrange(program, &tasks, &placement, &sync, frame), savings })
}

/// How an operation moves.
fn means(program: &Program, domain: &Domain, options: &ScheduleOptions, op: &Op) -> Means {
    let how = &program.statements[op.statement.0 as usize].how;
    match divide::staging(how, options, domain.symmetric) {
        Some(protocol) => Means::Staged(protocol),
        None if domain.multicast && transport(options, how) == Some(Transport::Multimem) => Means::Switch,
        None => Means::Direct,
    }
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
