//! The order of tasks where a connection has more messages than slots: none stores to a slot that would never be free.

use super::assign::Placement;
use super::depend::TaskGraph;
use super::divide::{TaskEnd, Tasks};
use crate::diagnostic::{Check, Diagnostic, words};
use crate::options::Protocol;
use crate::program::Program;
use crate::program::ids::BlockId;
use petgraph::Direction;
use petgraph::graph::NodeIndex;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A connection while its blocks have not all been numbered.
pub(super) type TaskConnection = (Protocol, BlockId, BlockId);

/// The connection of a message.
pub(super) fn wire(tasks: &Tasks, placement: &Placement, message: u32) -> TaskConnection {
    let sent = &tasks.messages[message as usize];
    (sent.protocol, placement.place[sent.writer as usize], placement.place[sent.reader as usize])
}

/// Messages of each connection in one tile.
pub(super) fn loads(tasks: &Tasks, placement: &Placement) -> FxHashMap<TaskConnection, u32> {
    let mut loads: FxHashMap<TaskConnection, u32> = FxHashMap::default();
    for message in 0..tasks.messages.len() as u32 {
        *loads.entry(wire(tasks, placement, message)).or_default() += 1;
    }
    loads
}

/// The messages of a connection that are on their way.
#[derive(Default)]
struct SimulatedFifo {
    /// Messages stored, in order: true for each that has been read.
    read: Vec<bool>,
    /// Messages at the beginning that have all been read: their slots are free.
    free: u32,
    /// Tasks that wait for a slot.
    parked: Vec<u32>,
}

struct SlotSimulation<'a> {
    tasks: &'a Tasks,
    placement: &'a Placement,
    slots: u32,
    fifos: FxHashMap<TaskConnection, SimulatedFifo>,
    /// The number of each message stored.
    number: FxHashMap<u32, u32>,
}

/// Reorders the tasks if slots are short: as far as possible in the order they have, a task that finds no free slot
/// letting others go first. O(tasks x log tasks).
///
/// Errors: `unsupported` where every task that is left would wait for a slot.
pub(super) fn fit_slots(
    program: &Program,
    tasks: &Tasks,
    graph: &TaskGraph,
    placement: &mut Placement,
    slots: u32,
) -> Result<(), Vec<Diagnostic>> {
    if loads(tasks, placement).values().all(|&load| load <= slots) {
        return Ok(());
    }
    let n = tasks.list.len();
    let mut rank = vec![0; n];
    for (at, &task) in placement.order.iter().enumerate() {
        rank[task as usize] = at;
    }
    let incoming = |task: usize| graph.neighbors_directed(NodeIndex::new(task), Direction::Incoming).count();
    let from_messages = |task: usize| {
        tasks.list[task].sources.iter().filter(|end| matches!(end, TaskEnd::Message(_))).count()
    };
    let mut missing: Vec<usize> = (0..n).map(|task| incoming(task) + from_messages(task)).collect();
    let mut ready: BinaryHeap<Reverse<(usize, u32)>> =
        (0..n as u32).filter(|&t| missing[t as usize] == 0).map(|t| Reverse((rank[t as usize], t))).collect();
    let mut now =
        SlotSimulation { tasks, placement, slots, fifos: FxHashMap::default(), number: FxHashMap::default() };
    let mut order = Vec::with_capacity(n);
    while let Some(Reverse((_, task))) = ready.pop() {
        if let Some(full) = now.full(task) {
            now.fifos.entry(full).or_default().parked.push(task);
            continue;
        }
        order.push(task);
        let mut go = |after: u32| {
            missing[after as usize] -= 1;
            if missing[after as usize] == 0 {
                ready.push(Reverse((rank[after as usize], after)));
            }
        };
        for after in graph.neighbors_directed(NodeIndex::new(task as usize), Direction::Outgoing) {
            go(after.index() as u32);
        }
        for end in &tasks.list[task as usize].dests {
            if let TaskEnd::Message(message) = end {
                go(tasks.messages[*message as usize].reader);
            }
        }
        ready.extend(now.run(task).into_iter().map(|task| Reverse((rank[task as usize], task))));
    }
    if order.len() < n {
        let message = format!("`{}` needs more than {}", program.name, words::count(slots.into(), "slot"));
        let finding = Diagnostic::new(Check::Unsupported, program.name_loc, message)
            .note("every thread block would wait for a slot that another one has yet to read")
            .help("raise `slots`, or use `put` or `get`");
        return Err(vec![finding]);
    }
    placement.order = order;
    Ok(())
}

impl SlotSimulation<'_> {
    /// A connection on which a task would store without a free slot.
    fn full(&self, task: u32) -> Option<TaskConnection> {
        let mut more: FxHashMap<TaskConnection, u32> = FxHashMap::default();
        self.tasks.list[task as usize].dests.iter().find_map(|end| {
            let TaskEnd::Message(message) = end else { return None };
            let wire = wire(self.tasks, self.placement, *message);
            let more = more.entry(wire).or_default();
            *more += 1;
            let (stored, free) = self.fifos.get(&wire).map_or((0, 0), |f| (f.read.len() as u32, f.free));
            (stored + *more > free + self.slots).then_some(wire)
        })
    }

    /// Runs a task; returns those that a slot has become free for.
    fn run(&mut self, task: u32) -> Vec<u32> {
        let mut woken = Vec::new();
        for end in &self.tasks.list[task as usize].dests {
            if let TaskEnd::Message(message) = end {
                let fifo = self.fifos.entry(wire(self.tasks, self.placement, *message)).or_default();
                self.number.insert(*message, fifo.read.len() as u32);
                fifo.read.push(false);
            }
        }
        for end in &self.tasks.list[task as usize].sources {
            if let TaskEnd::Message(message) = end
                && let Some(&number) = self.number.get(message)
            {
                let fifo = self.fifos.entry(wire(self.tasks, self.placement, *message)).or_default();
                fifo.read[number as usize] = true;
                while fifo.read.get(fifo.free as usize) == Some(&true) {
                    fifo.free += 1;
                }
                woken.append(&mut fifo.parked);
            }
        }
        woken
    }
}
