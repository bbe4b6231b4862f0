//! Tasks in their blocks to the steps of a file, with the waits between blocks of a GPU.

use super::narrow::Narrow;
use super::place::Placed;
use crate::diagnostic::Loc;
use crate::interop::msccl::document::{Block, Chunks, Gpu, Step, StepKind};
use crate::lower::{Task, TaskEnd};
use crate::program::Program;
use crate::program::ids::{Buffer, Slice};
use crate::program::kind::Kind;

/// The GPUs of a file. `order`: an order of the tasks in which they can run.
pub(super) fn gpus(
    program: &Program,
    narrow: &Narrow,
    before: &[Vec<u32>],
    placed: &Placed,
    order: &[u32],
) -> Vec<Gpu> {
    let tasks = &narrow.tasks.list;
    let mut of_rank: Vec<Vec<u32>> = vec![Vec::new(); placed.blocks.len()];
    for &task in order {
        of_rank[tasks[task as usize].executor.0 as usize].push(task);
    }
    let gpu = |(rank, own): (usize, &Vec<u32>)| {
        let waits = waits(own, before, placed, placed.blocks[rank].len());
        let mut blocks: Vec<Block> = placed.blocks[rank]
            .iter()
            .map(|tb| Block {
                loc: Loc::default(),
                send: tb.send.map(|peer| peer.0),
                receive: tb.receive.map(|peer| peer.0),
                channel: tb.channel,
                steps: Vec::new(),
            })
            .collect();
        // For each task its block and step.
        let mut at = rustc_hash::FxHashMap::default();
        for (&task, waits) in own.iter().zip(&waits) {
            let block = placed.block[task as usize];
            let awaited: Vec<(u32, u32)> = waits.iter().map(|before| at[before]).collect();
            for &(block, step) in &awaited {
                blocks[block as usize].steps[step as usize].publishes = true;
            }
            let steps = &mut blocks[block as usize].steps;
            let (last, earlier) =
                awaited.split_last().map_or((None, &[][..]), |(last, all)| (Some(*last), all));
            steps.extend(earlier.iter().map(|&after| nop(after)));
            at.insert(task, (block, steps.len() as u32));
            steps.push(Step { after: last, ..step(program, &tasks[task as usize]) });
        }
        Gpu { scratch: narrow.scratch[rank], blocks }
    };
    of_rank.iter().enumerate().map(gpu).collect()
}

/// For each of a rank's tasks, in their order, those of its other blocks that it has to wait for: none that others imply.
fn waits(own: &[u32], before: &[Vec<u32>], placed: &Placed, blocks: usize) -> Vec<Vec<u32>> {
    // How many tasks of each block are known to be done: to each block, and when a task is done.
    let mut known = vec![vec![0u32; blocks]; blocks];
    let mut then: rustc_hash::FxHashMap<u32, (usize, Vec<u32>)> = rustc_hash::FxHashMap::default();
    let mut all = Vec::with_capacity(own.len());
    for (position, &task) in own.iter().enumerate() {
        let block = placed.block[task as usize] as usize;
        let mut earlier: Vec<&(usize, Vec<u32>)> =
            before[task as usize].iter().filter_map(|before| then.get(before)).collect();
        // The latest first: it may imply the others.
        earlier.sort_by_key(|(position, _)| std::cmp::Reverse(*position));
        let mut waits = Vec::new();
        for (position, clock) in earlier {
            let before = own[*position];
            let writer = placed.block[before as usize] as usize;
            if writer == block || known[block][writer] >= clock[writer] {
                continue;
            }
            waits.push(before);
            for (known, more) in known[block].iter_mut().zip(clock) {
                *known = (*known).max(*more);
            }
        }
        known[block][block] += 1;
        then.insert(task, (position, known[block].clone()));
        all.push(waits);
    }
    all
}

fn nop(after: (u32, u32)) -> Step {
    let (loc, text) = (Loc::default(), String::new());
    let kind = StepKind::Nop;
    Step { loc, text, kind, source: None, dest: None, count: 0, after: Some(after), publishes: false }
}

fn step(program: &Program, task: &Task) -> Step {
    let memory = |ends: &[TaskEnd]| -> Vec<Slice> {
        let slice = |end: &TaskEnd| if let TaskEnd::Memory(slice) = end { Some(*slice) } else { None };
        ends.iter().filter_map(slice).collect()
    };
    let receives = task.sources.iter().any(|end| matches!(end, TaskEnd::Message(_)));
    let sends = task.dests.iter().any(|end| matches!(end, TaskEnd::Message(_)));
    let (sources, dests) = (memory(&task.sources), memory(&task.dests));
    let (mut source, dest) = (sources.first().copied(), dests.first().copied());
    let kind = match (receives, sends, source.is_some(), dest.is_some()) {
        (false, true, ..) => StepKind::Send,
        (true, false, false, _) => StepKind::Receive,
        (true, true, false, _) => StepKind::ReceiveCopySend,
        (true, false, true, _) => StepKind::ReceiveReduceCopy,
        (true, true, true, false) => StepKind::ReceiveReduceSend,
        (true, true, true, true) => StepKind::ReceiveReduceCopySend,
        (false, false, ..) if sources.len() == 1 => StepKind::Copy,
        (false, false, ..) => {
            source = sources.iter().copied().find(|source| Some(*source) != dest);
            StepKind::Reduce
        }
    };
    let chunks = |slice: Slice| Chunks { buffer: buffer(program, slice.buffer), start: slice.start };
    Step {
        loc: Loc::default(),
        text: String::new(),
        kind,
        source: source.map(chunks),
        dest: dest.map(chunks),
        count: 1,
        after: None,
        publishes: false,
    }
}

/// The file's name of a buffer. In place both names are parts of one buffer; the larger one has all of it.
fn buffer(program: &Program, buffer: Buffer) -> Buffer {
    match (buffer, program.shape.kind) {
        (Buffer::Data, Kind::AllGather | Kind::Broadcast) => Buffer::Output,
        (Buffer::Data, _) => Buffer::Input,
        (other, _) => other,
    }
}
