//! Finds tasks of different ranks that play the same part. The ranks of a ring all do the same with other neighbours and
//! chunks, and should do it in the same order and on the same blocks: then they share a class of the kernel, and its text
//! does not grow with them. Where every rank sends to all peers, each rank then begins with another peer.

use super::depend::TaskGraph;
use super::divide::{Task, TaskEnd, Tasks};
use crate::program::Program;
use petgraph::Direction;
use petgraph::graph::NodeIndex;
use petgraph::visit::EdgeRef;
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::hash::{BuildHasher, Hash};

/// The role of each task: the first task that plays the same part. Two tasks do if their moves, and the moves before and
/// after them, are alike but for the chunks, with ranks taken as distances. Only the order of tasks that may run in any
/// order rests on it. O((tasks + edges) log tasks).
pub(super) fn roles(program: &Program, tasks: &Tasks, graph: &TaskGraph) -> Vec<u32> {
    let ranks = program.shape.ranks;
    let away =
        |from: usize, to: usize| (tasks.list[to].executor.0 + ranks - tasks.list[from].executor.0) % ranks;
    let own: Vec<u64> = tasks.list.iter().map(|task| hash(&alone(program, tasks, task))).collect();
    let count = own.len();
    // What lies before a task, from the first on, and what lies behind it, from the last on.
    let mut sides = [own.clone(), own.clone()];
    for (side, direction) in sides.iter_mut().zip([Direction::Incoming, Direction::Outgoing]) {
        for step in 0..count {
            let task = if direction == Direction::Incoming { step } else { count - 1 - step };
            let edges = graph.edges_directed(NodeIndex::new(task), direction).map(|edge| {
                let other = if direction == Direction::Incoming { edge.source() } else { edge.target() };
                (Some(*edge.weight()), other.index())
            });
            let messages = ends(&tasks.list[task], direction).filter_map(|end| match end {
                TaskEnd::Message(number) => {
                    let message = tasks.messages[*number as usize];
                    let other =
                        if direction == Direction::Incoming { message.writer } else { message.reader };
                    Some((None, other as usize))
                }
                TaskEnd::Memory(_) | TaskEnd::Multicast(_) => None,
            });
            // In whatever order.
            let around = edges
                .chain(messages)
                .map(|(why, other)| hash(&(why.map(|why| why as u8), away(task, other), side[other])))
                .fold(0, u64::wrapping_add);
            side[task] = hash(&(own[task], around));
        }
    }
    let [before, after] = sides;
    let mut first: FxHashMap<(u64, u64), u32> = FxHashMap::default();
    (0..).zip(before.into_iter().zip(after)).map(|(task, part)| *first.entry(part).or_insert(task)).collect()
}

fn ends(task: &Task, direction: Direction) -> std::slice::Iter<'_, TaskEnd> {
    if direction == Direction::Incoming { task.sources.iter() } else { task.dests.iter() }
}

/// A task without its chunks.
fn alone(program: &Program, tasks: &Tasks, task: &Task) -> impl Hash {
    let ranks = program.shape.ranks;
    let end = |end: &TaskEnd| match end {
        TaskEnd::Memory(slice) => {
            (0, slice.buffer as u32, (slice.rank.0 + ranks - task.executor.0) % ranks, slice.len)
        }
        TaskEnd::Multicast(all) => (1, all.buffer as u32, 0, all.len),
        TaskEnd::Message(number) => (2, tasks.messages[*number as usize].protocol as u32, 0, 0),
    };
    let sources: Vec<_> = task.sources.iter().map(end).collect();
    let dests: Vec<_> = task.dests.iter().map(end).collect();
    let statement = program.ops[task.op.0 as usize].statement;
    (statement, task.transfer, task.site.channel, task.site.block, sources, dests)
}

fn hash(value: &impl Hash) -> u64 {
    FxBuildHasher.hash_one(value)
}
