//! Steps to a program and a plan of its schedule: one operation and one task for each chunk of each step, in an order in
//! which the steps can run.

use super::connect::{Connected, Linked};
use super::document::{Chunks, Step, StepKind};
use crate::diagnostic::{Check, Diagnostic, SourceFile};
use crate::interop::{finding, out_of_bounds};
use crate::lower::{FollowedPlan, Task, TaskEnd, TaskMessage, Tasks};
use crate::options::StatementOptions;
use crate::program::Scaling;
use crate::program::ids::{BlockId, Buffer, Rank, Slice};
use crate::program::kind::Shape;
use crate::program::positions::Positions;
use crate::program::{Op, OpId, Program, Site, Statement, StatementId, Trails};
use crate::verify;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::collections::VecDeque;

/// A program and the plan that carries it out.
#[derive(Debug)]
pub(super) struct Sequence {
    pub(super) program: Program,
    /// Task i carries operation i out.
    pub(super) plan: FollowedPlan,
    /// All steps can run if connections hold everything that is sent. Where not, the order of the rest is no order in
    /// which it could run.
    pub(super) whole: bool,
}

/// The room of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Room {
    /// The most chunks of a message. A message is of one step.
    pub(super) of: u32,
    /// The most messages on their way.
    pub(super) most: u32,
}

impl Room {
    /// Room for everything.
    pub(super) const UNBOUNDED: Room = Room { of: u32::MAX, most: u32::MAX };
}

/// Lays the steps out.
///
/// Errors (`out-of-bounds`): chunks beyond what the collective has. (`overlap`): steps whose source and destination
/// overlap in part.
pub(super) fn sequence(
    connected: &Connected,
    shape: Shape,
    source: &SourceFile,
) -> Result<Sequence, Vec<Diagnostic>> {
    let (order, whole) = order(connected, Room::UNBOUNDED);
    let mut laying = Laying::new(connected, shape, source);
    laying.judge();
    if !laying.findings.is_empty() {
        return Err(laying.findings);
    }
    for (step, chunk) in order {
        laying.lay(step, chunk);
    }
    Ok(laying.finish(whole))
}

impl Sequence {
    /// Returns true if all steps can run with so much room on each connection.
    pub(super) fn fits(&self, connected: &Connected, room: Room) -> bool {
        order(connected, room).1
    }
}

/// The steps at which blocks wait for ever with so much room on each connection, one for each of these blocks.
pub(super) fn stuck(connected: &Connected, room: Room) -> Vec<u32> {
    let run = run(connected, room);
    let stuck = connected.blocks.iter().zip(&run.next).filter(|(steps, next)| **next < steps.end);
    stuck.map(|(_, next)| *next as u32).collect()
}

fn run(connected: &Connected, room: Room) -> StepRun<'_> {
    let mut run = StepRun {
        connected,
        room,
        done: vec![0; connected.steps.len()],
        next: connected.blocks.iter().map(|steps| steps.start).collect(),
        sleeping: FxHashMap::default(),
        order: Vec::new(),
        sent: FxHashMap::default(),
    };
    let mut ready: VecDeque<usize> = (0..connected.blocks.len()).collect();
    while let Some(block) = ready.pop_front() {
        run.block(block, &mut ready);
    }
    run
}

/// An order in which the chunks of all steps can run, block by block as far as each can; and whether all can. Those
/// that cannot come last. Linear.
fn order(connected: &Connected, room: Room) -> (Vec<(u32, u32)>, bool) {
    let StepRun { mut order, done, .. } = run(connected, room);
    let left: Vec<(u32, u32)> = connected
        .steps
        .iter()
        .zip(&done)
        .zip(0..)
        .flat_map(|((linked, &done), number)| (done..linked.step.count).map(move |chunk| (number, chunk)))
        .collect();
    let whole = left.is_empty();
    order.extend(left);
    (order, whole)
}

/// A run of the steps.
struct StepRun<'a> {
    connected: &'a Connected,
    room: Room,
    /// Chunks of each step that are done.
    done: Vec<u32>,
    /// The next step of each block.
    next: Vec<usize>,
    /// Blocks that wait for more of a step.
    sleeping: FxHashMap<u32, Vec<usize>>,
    order: Vec<(u32, u32)>,
    /// For each sending block the steps of its messages that are on their way, in order.
    sent: FxHashMap<BlockId, VecDeque<u32>>,
}

impl StepRun<'_> {
    /// Runs a block as far as it can.
    fn block(&mut self, block: usize, ready: &mut VecDeque<usize>) {
        let steps = self.connected.blocks[block].clone();
        while self.next[block] < steps.end {
            let number = self.next[block] as u32;
            let linked = &self.connected.steps[number as usize];
            while self.done[number as usize] < linked.step.count {
                if let Some(missing) = self.missing(number, linked) {
                    self.sleeping.entry(missing).or_default().push(block);
                    return;
                }
                self.carry_out(number, linked);
                ready.extend(self.sleeping.remove(&number).into_iter().flatten());
            }
            self.next[block] += 1;
        }
    }

    /// A step that the next chunk of a step waits for.
    fn missing(&self, number: u32, linked: &Linked) -> Option<u32> {
        let chunk = self.done[number as usize];
        let complete =
            |&step: &u32| self.done[step as usize] >= self.connected.steps[step as usize].step.count;
        if let Some(&before) = linked.after.iter().find(|step| !complete(step)) {
            return Some(before);
        }
        if let Some(from) = linked.from.filter(|&from| self.done[from as usize] <= chunk) {
            return Some(from);
        }
        let begun = self.sent.get(&linked.place).filter(|_| linked.to.is_some())?;
        let full = chunk.is_multiple_of(self.room.of) && begun.len() >= self.room.most as usize;
        let first = begun.front().filter(|_| full)?;
        self.connected.steps[*first as usize].to
    }

    fn carry_out(&mut self, number: u32, linked: &Linked) {
        let chunk = self.done[number as usize];
        if linked.to.is_some() && chunk.is_multiple_of(self.room.of) {
            self.sent.entry(linked.place).or_default().push_back(number);
        }
        if let Some(from) = linked.from
            && (chunk + 1 == linked.step.count || (chunk + 1).is_multiple_of(self.room.of))
        {
            let sender = self.connected.steps[from as usize].place;
            self.sent.entry(sender).or_default().pop_front();
        }
        self.done[number as usize] = chunk + 1;
        self.order.push((number, chunk));
    }
}

/// The program and the plan while they are made.
struct Laying<'a> {
    connected: &'a Connected,
    program: Program,
    positions: Positions,
    tasks: Tasks,
    place: Vec<BlockId>,
    after: Vec<Vec<u32>>,
    /// For each step its first message, where it receives.
    received: Vec<u32>,
    /// For each message its chunk of the reading rank's scratch.
    flight: Vec<u32>,
    /// For each step its last task.
    last: Vec<Option<u32>>,
    chunk_name: u32,
    findings: Vec<Diagnostic>,
}

impl<'a> Laying<'a> {
    fn new(connected: &'a Connected, mut shape: Shape, source: &SourceFile) -> Laying<'a> {
        let algorithm = &connected.algorithm;
        let mut tasks = Tasks::default();
        let (mut received, mut flight) = (vec![0; connected.steps.len()], Vec::new());
        let mut used = vec![0; shape.ranks as usize];
        for (linked, first) in connected.steps.iter().zip(&mut received) {
            *first = tasks.messages.len() as u32;
            if linked.from.is_none() {
                continue;
            }
            let used = &mut used[linked.place.rank.0 as usize];
            for _ in 0..linked.step.count {
                // Both ends are known when they are laid.
                tasks.messages.push(TaskMessage { protocol: algorithm.protocol, writer: 0, reader: 0 });
                flight.push(shape.scratch + *used);
                *used += 1;
            }
        }
        let in_flight = used.into_iter().max().unwrap_or(0);
        shape.scratch += in_flight;
        let mut trails = Trails::new();
        let chunk_name = trails.intern("chunk");
        let statements = connected.steps.iter().map(|linked| Statement {
            loc: linked.step.loc,
            text: linked.step.text.clone(),
            how: StatementOptions::default(),
        });
        let program = Program {
            name: algorithm.name.clone(),
            shape,
            params: Vec::new(),
            divisible: false,
            reproducible: false,
            contract: None,
            in_flight: Some(in_flight),
            source: source.clone(),
            name_loc: algorithm.loc,
            statements: statements.collect(),
            ops: Vec::new(),
            trails,
        };
        let last = vec![None; connected.steps.len()];
        Laying {
            connected,
            positions: Positions::new(&shape),
            program,
            tasks,
            place: Vec::new(),
            after: Vec::new(),
            received,
            flight,
            last,
            chunk_name,
            findings: Vec::new(),
        }
    }

    /// Judges what the steps name.
    fn judge(&mut self) {
        for linked in &self.connected.steps {
            let (rank, step) = (linked.place.rank, &linked.step);
            let slice = |chunks: &Option<Chunks>| chunks.map(|chunks| self.slice(rank, chunks, 0));
            let [source, dest] = [slice(&step.source), slice(&step.dest)];
            let outside = [step.source, step.dest]
                .into_iter()
                .flatten()
                .find_map(|chunks| self.outside(rank, step, chunks));
            if let Some(found) = outside {
                self.findings.push(found);
            } else if let (Some(source), Some(dest)) = (source, dest)
                && source.buffer == dest.buffer
                && source.start != dest.start
                && source.start.abs_diff(dest.start) < step.count
            {
                let whole = |slice: Slice| Slice { len: step.count, ..slice };
                let message = format!("{} and its source {} overlap in part", whole(dest), whole(source));
                self.findings.push(
                    finding(Check::Overlap, step.loc, message).note("all chunks of a step move at once"),
                );
            }
        }
    }

    /// Chunks that the collective does not have.
    fn outside(&self, rank: Rank, step: &Step, chunks: Chunks) -> Option<Diagnostic> {
        let shape = &self.program.shape;
        let name = match chunks.buffer {
            Buffer::Scratch => return None,
            Buffer::Output => "o",
            Buffer::Input | Buffer::Data => "i",
        };
        // In place both are parts of one buffer, which either may name as far as it goes.
        let first = self.slice(rank, Chunks { start: 0, ..chunks }, 0);
        let size = shape.chunks(first.buffer, rank).saturating_sub(first.start);
        if chunks.start + step.count <= size {
            return None;
        }
        let message = out_of_bounds(name, chunks.start.into(), step.count.into(), size);
        let note = format!(
            "{} of {} ranks with {} chunks a unit has no more",
            shape.kind, shape.ranks, shape.chunks
        );
        Some(finding(Check::OutOfBounds, step.loc, message).note(note).context(self.program.context()))
    }

    /// The location of a chunk of a step. In place `i` and `o` are parts of one buffer.
    fn slice(&self, rank: Rank, chunks: Chunks, chunk: u32) -> Slice {
        let shape = &self.program.shape;
        let index = chunks.start + chunk;
        let at = match chunks.buffer {
            Buffer::Input | Buffer::Data => shape.input_location(rank, index),
            Buffer::Output => shape.output_location(rank, index),
            Buffer::Scratch => crate::program::ids::Location { buffer: Buffer::Scratch, rank, chunk: index },
        };
        Slice { buffer: at.buffer, rank, start: at.chunk, len: 1 }
    }

    /// Adds the operation and the task of a chunk of a step.
    fn lay(&mut self, number: u32, chunk: u32) {
        let linked = &self.connected.steps[number as usize];
        let (rank, step) = (linked.place.rank, &linked.step);
        let task = self.tasks.list.len() as u32;
        let memory = |chunks: Option<Chunks>| {
            let slice = chunks.map(|chunks| self.slice(rank, chunks, chunk));
            slice.map(|slice| (slice, TaskEnd::Memory(slice)))
        };
        let flying = |receive: u32| {
            let message = self.received[receive as usize] + chunk;
            let rank = self.connected.steps[receive as usize].place.rank;
            let start = self.flight[message as usize];
            (Slice { buffer: Buffer::Scratch, rank, start, len: 1 }, TaskEnd::Message(message))
        };
        let received = linked.from.map(|_| flying(number));
        let sent = linked.to.map(flying);
        let (source, dest) = (memory(step.source), memory(step.dest));
        let combined = if step.kind == StepKind::Reduce { dest } else { None };
        let sources: SmallVec<[(Slice, TaskEnd); 2]> =
            [combined, source, received].into_iter().flatten().collect();
        let dests: SmallVec<[(Slice, TaskEnd); 2]> = [dest, sent].into_iter().flatten().collect();
        for (message, writes) in
            sources.iter().map(|end| (end, false)).chain(dests.iter().map(|end| (end, true)))
        {
            let TaskEnd::Message(message) = message.1 else { continue };
            let message = &mut self.tasks.messages[message as usize];
            *(if writes { &mut message.writer } else { &mut message.reader }) = task;
        }
        let ops = (
            sources.iter().map(|end| end.0).collect::<SmallVec<_>>(),
            dests.iter().map(|end| end.0).collect::<SmallVec<_>>(),
        );
        let position = self.positions.of_operation(&ops.0, &ops.1, 0);
        let trail = match step.count {
            1 => Trails::ROOT,
            _ => self.program.trails.enter(Trails::ROOT, self.chunk_name, chunk.into()),
        };
        // A copy of a chunk to itself, as one of a plan for both calls is in place, moves nothing.
        let moves = sources[..] != dests[..];
        let site = Site { on: Some(rank), channel: None, block: Some(linked.place.block) };
        let op = Op {
            statement: StatementId(number),
            trail,
            sources: ops.0,
            dests: ops.1,
            position,
            site,
            scaling: Scaling::default(),
        };
        self.positions.stored(&op);
        self.program.ops.push(op);
        self.tasks.list.push(Task {
            op: OpId(task),
            transfer: false,
            executor: rank,
            sources: sources.into_iter().filter(|_| moves).map(|end| end.1).collect(),
            dests: dests.into_iter().filter(|_| moves).map(|end| end.1).collect(),
            position,
            site,
        });
        self.place.push(linked.place);
        self.after.push(Vec::new());
        if chunk + 1 == step.count {
            self.last[number as usize] = Some(task);
        }
    }

    fn finish(mut self, whole: bool) -> Sequence {
        // A step waits before its first chunk, and others wait for its last one.
        let mut begun = vec![false; self.connected.steps.len()];
        for (task, after) in self.after.iter_mut().enumerate() {
            let step = self.program.ops[task].statement.0 as usize;
            if !std::mem::replace(&mut begun[step], true) {
                let steps = self.connected.steps[step].after.iter();
                *after = steps.filter_map(|&before| self.last[before as usize]).collect();
            }
        }
        // Chunks of different size meet only if the plan needs them equal; a plan that cannot run has no values.
        let uneven = verify::operations(&self.program).finish();
        self.program.divisible = !whole || uneven.iter().any(|found| found.check == Check::ChunkPosition);
        let blocks = self.connected.algorithm.gpus.iter().map(|gpu| gpu.blocks.len().max(1) as u32).collect();
        let plan = FollowedPlan { tasks: self.tasks, place: self.place, after: self.after, blocks };
        Sequence { program: self.program, plan, whole }
    }
}
