//! Lays out the schedule of a plan that is given: its tasks, where each runs, and what it waits for.

use super::Lowered;
use super::arrange::{ScheduleFrame, arrange};
use super::assign::Placement;
use super::divide::{TaskEnd, Tasks};
use super::limits::{too_many_ends, too_many_fifos};
use super::synchronize::{Synchronization, TaskWaits};
use crate::diagnostic::Diagnostic;
use crate::options::Protocol;
use crate::program::Program;
use crate::program::ids::BlockId;
use crate::schedule::domain::Domain;
use rustc_hash::FxHashMap;

/// A plan. No task touches another rank's buffers: what goes to a peer is a message.
#[derive(Debug)]
pub(crate) struct FollowedPlan {
    /// The tasks; each block's own are numbered in its order. A block reads the messages of a connection in the order
    /// in which they are stored.
    pub(crate) tasks: Tasks,
    /// The block of each task.
    pub(crate) place: Vec<BlockId>,
    /// The tasks of other blocks of the same rank that each task waits for.
    pub(crate) after: Vec<Vec<u32>>,
    /// Blocks of each rank, at least 1.
    pub(crate) blocks: Vec<u32>,
}

/// The schedule that follows the plan. TaskWaits that an earlier one of the same block implies are left out.
///
/// Errors: `unsupported` where a move has too many ends, or two ranks too many connections.
pub(crate) fn follow(
    program: &Program,
    plan: &FollowedPlan,
    domain: &Domain,
    (tile, slots): (u64, u32),
) -> Result<Lowered, Vec<Diagnostic>> {
    let FollowedPlan { tasks, place, after, blocks } = plan;
    let n = tasks.list.len();
    let order = (0..n as u32).collect();
    let placement = Placement { place: place.clone(), order, blocks: blocks.clone() };
    let problems = [too_many_ends(program, tasks), too_many_fifos(program, tasks, &placement, 1)];
    let problems: Vec<_> = problems.into_iter().flatten().collect();
    if !problems.is_empty() {
        return Err(problems);
    }
    let mut sync = Synchronization {
        before: vec![TaskWaits::default(); n],
        signals: vec![Vec::new(); n],
        starts: vec![Vec::new(); blocks.len()],
        exits: vec![Vec::new(); blocks.len()],
        dependences: 0,
        implied: 0,
    };
    // Of each pair of blocks the latest task of the second that the first has waited for.
    let mut known: FxHashMap<(BlockId, BlockId), u32> = FxHashMap::default();
    for (task, waits) in sync.before.iter_mut().enumerate() {
        for &before in &after[task] {
            sync.dependences += 1;
            let (waiter, writer) = (place[task], place[before as usize]);
            if known.get(&(waiter, writer)).is_some_and(|&latest| latest >= before) {
                sync.implied += 1;
                continue;
            }
            known.insert((waiter, writer), before);
            sync.signals[before as usize].push(waiter);
            waits.tasks.push(before);
        }
        let announced = tasks.list[task].sources.iter().filter_map(|end| match end {
            TaskEnd::Message(message) => Some(*message),
            TaskEnd::Memory(_) | TaskEnd::Multicast(_) => None,
        });
        let plain = |&message: &u32| tasks.messages[message as usize].protocol == Protocol::Simple;
        waits.messages = announced.filter(plain).collect();
    }
    let frame = ScheduleFrame { block_cap: domain.block_cap, tile: Some(tile), slots, instances: 1 };
    Ok(Lowered { schedule: arrange(program, tasks, &placement, &sync, frame), savings: sync.savings() })
}
