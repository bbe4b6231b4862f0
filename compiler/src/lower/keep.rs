//! Lays out the schedule of a plan whose thread blocks touch each other's buffers: its tasks, where each runs, and what
//! comes before what. Starts, ends of calls and barriers within blocks are added.

use super::Lowered;
use super::arrange::{ScheduleFrame, arrange};
use super::assign::Placement;
use super::depend::{Dependence, TaskGraph};
use super::divide::{Task, Tasks, through_switch};
use super::limits::{too_many_ends, too_many_fifos};
use super::order::loads;
use super::synchronize::synchronize;
use crate::diagnostic::{Check, Diagnostic};
use crate::program::Program;
use crate::program::ids::BlockId;
use crate::schedule::SLOTS;
use crate::schedule::domain::Domain;
use crate::verify;
use petgraph::graph::NodeIndex;

/// A plan.
#[derive(Debug)]
pub(crate) struct KeptPlan {
    /// The tasks, in an order in which they can run; those without ends only wait or signal.
    pub(crate) tasks: Tasks,
    /// The block of each task.
    pub(crate) place: Vec<BlockId>,
    /// Tasks that go through the switch, where it can and the world has one.
    pub(crate) switched: Vec<bool>,
    /// Tasks of different blocks, the second of which waits for the first.
    pub(crate) edges: Vec<(u32, u32)>,
    /// Blocks of each rank, at least 1.
    pub(crate) blocks: Vec<u32>,
}

/// The schedule that keeps the plan. With messages it goes by tiles, as well as where `tile` says so.
///
/// Errors: `unsupported` where a move has too many ends, two ranks too many connections, or a connection too few slots.
pub(crate) fn keep(
    program: &Program,
    plan: &KeptPlan,
    domain: &Domain,
    tile: Option<u64>,
    slot: u64,
) -> Result<Lowered, Vec<Diagnostic>> {
    let ranks = program.shape.ranks;
    let switch = |(task, &switched): (&Task, &bool)| match switched && domain.multicast {
        true => through_switch(task.clone(), ranks),
        false => task.clone(),
    };
    let list = plan.tasks.list.iter().zip(&plan.switched).map(switch).collect();
    let tasks = Tasks { list, messages: plan.tasks.messages.clone() };
    let n = tasks.list.len();
    let placement =
        Placement { place: plan.place.clone(), order: (0..n as u32).collect(), blocks: plan.blocks.clone() };
    let problems = [too_many_ends(program, &tasks), too_many_fifos(program, &tasks, &placement, 1)];
    let problems: Vec<_> = problems.into_iter().flatten().collect();
    if !problems.is_empty() {
        return Err(problems);
    }
    let mut graph = TaskGraph::with_capacity(n, plan.edges.len());
    for _ in 0..n {
        graph.add_node(());
    }
    for &(before, after) in &plan.edges {
        let [before, after] = [before, after].map(|task| NodeIndex::new(task as usize));
        graph.update_edge(before, after, Dependence::ReadAfterWrite);
    }
    let sync = synchronize(ranks, &tasks, &graph, &placement);
    let tile = if tasks.messages.is_empty() { tile } else { Some(tile.unwrap_or(slot).min(slot)) };
    let frame = ScheduleFrame { block_cap: domain.block_cap, tile, slots: SLOTS, instances: 1 };
    let schedule = arrange(program, &tasks, &placement, &sync, frame);
    let most = loads(&tasks, &placement).into_values().max().unwrap_or(0);
    let short = |found: &Diagnostic| found.check == Check::Deadlock;
    if most > SLOTS && verify::unordered(&schedule, program, domain).iter().any(short) {
        let message = format!("`{}` needs more than {SLOTS} packets on their way at once", program.name);
        let finding = Diagnostic::new(Check::Unsupported, program.name_loc, message)
            .context(program.context())
            .note(format!("two thread blocks have {SLOTS} slots of one chunk each for their packets"))
            .help("read packets between those that are stored, or store to more thread blocks");
        return Err(vec![finding]);
    }
    Ok(Lowered { schedule, savings: sync.savings() })
}
