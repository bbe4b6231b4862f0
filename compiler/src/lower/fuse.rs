//! Sends what a task has just made from its registers: a task that only takes a chunk to peers joins the one that stored
//! the chunk last. So what is received, reduced, kept and sent on is loaded once. What is sent is what was stored,
//! rounded alike.

use super::divide::{Task, TaskEnd, Tasks};
use crate::program::Program;
use crate::program::ids::Location;
use rustc_hash::FxHashMap;

/// Destinations of a fused task; more are spread over blocks better than by one.
const MOST_DESTS: usize = 8;

/// Fuses tasks. Linear.
pub(super) fn fuse(program: &Program, mut tasks: Tasks) -> Tasks {
    let mut writer: FxHashMap<Location, u32> = FxHashMap::default();
    let mut joined: Vec<Option<u32>> = vec![None; tasks.list.len()];
    for number in 0..tasks.list.len() as u32 {
        if let Some(maker) = maker(program, &tasks, number, &writer) {
            let messages: Vec<u32> = tasks.list[number as usize].messages().collect();
            for &message in &messages {
                tasks.messages[message as usize].writer = maker;
            }
            tasks.list[maker as usize].dests.extend(messages.into_iter().map(TaskEnd::Message));
            joined[number as usize] = Some(maker);
            continue;
        }
        for slice in tasks.list[number as usize].stores() {
            writer.extend(slice.locations().map(|at| (at, number)));
        }
    }
    renumber(tasks, &joined)
}

/// The task that has stored what a task sends on, if the two can be one.
fn maker(program: &Program, tasks: &Tasks, number: u32, writer: &FxHashMap<Location, u32>) -> Option<u32> {
    let task = &tasks.list[number as usize];
    let [TaskEnd::Memory(source)] = task.sources[..] else { return None };
    let only_sends = source.rank == task.executor && task.stores().next().is_none();
    let scaled = !task.transfer && !program.ops[task.op.0 as usize].scaling.is_none();
    if source.len != 1 || !only_sends || scaled {
        return None;
    }
    let &found = writer.get(&source.at(0))?;
    let maker = &tasks.list[found as usize];
    let protocol = |task: &Task| {
        let mut all = task.messages().map(|m| tasks.messages[m as usize].protocol);
        let first = all.next();
        (first, all.all(|p| Some(p) == first))
    };
    let ((sent, _), (made, alike)) = (protocol(task), protocol(maker));
    let fits = maker.executor == task.executor
        && maker.position == task.position
        && maker.dests.contains(&TaskEnd::Memory(source))
        && maker.site.channel == task.site.channel
        && task.site.block.is_none_or(|block| maker.site.block == Some(block))
        && alike
        && (made.is_none() || made == sent)
        && maker.dests.len() + task.dests.len() <= MOST_DESTS;
    fits.then_some(found)
}

/// Drops the tasks that joined others.
fn renumber(mut tasks: Tasks, joined: &[Option<u32>]) -> Tasks {
    let mut kept = 0;
    let numbers: Vec<u32> = joined
        .iter()
        .map(|joined| {
            kept += u32::from(joined.is_none());
            kept.saturating_sub(1)
        })
        .collect();
    for message in &mut tasks.messages {
        (message.writer, message.reader) =
            (numbers[message.writer as usize], numbers[message.reader as usize]);
    }
    let mut joined = joined.iter();
    tasks.list.retain(|_| joined.next().is_some_and(Option::is_none));
    tasks
}
