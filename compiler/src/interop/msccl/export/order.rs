//! An order of the steps in which connections hold what is on its way.

use super::place::{Placed, ends};
use crate::lower::Tasks;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// The order: as placed as far as possible, with at most `room` messages on their way on each connection, which are read in
/// the order in which they are stored; `None` if there is none. As each block runs its steps in this order, and waits for
/// what another one has to do before, no speed of the blocks leads to a deadlock. O(tasks x log tasks).
pub(super) fn order(tasks: &Tasks, before: &[Vec<u32>], placed: &Placed, room: u32) -> Option<Vec<u32>> {
    let n = tasks.list.len();
    let wire = |message: u32| {
        let sent = tasks.messages[message as usize];
        let writer = &tasks.list[sent.writer as usize];
        let (from, to) = (writer.executor, tasks.list[sent.reader as usize].executor);
        (placed.blocks[from.0 as usize][placed.block[sent.writer as usize] as usize].channel, from, to)
    };
    let mut at = vec![0u32; n];
    let mut wires: FxHashMap<_, Wire> = FxHashMap::default();
    for (position, &task) in placed.order.iter().enumerate() {
        at[task as usize] = position as u32;
        if let Some(sent) = ends(&tasks.list[task as usize]).1 {
            wires.entry(wire(sent)).or_default().due.push_back(sent);
        }
    }
    let mut after: Vec<Vec<u32>> = vec![Vec::new(); n];
    let mut missing = vec![0u32; n];
    for (task, before) in before.iter().enumerate() {
        for &earlier in before {
            after[earlier as usize].push(task as u32);
            missing[task] += 1;
        }
    }
    let ready = (0..n as u32).filter(|task| missing[*task as usize] == 0);
    let mut ready: BinaryHeap<Reverse<(u32, u32)>> =
        ready.map(|task| Reverse((at[task as usize], task))).collect();
    let mut order = Vec::with_capacity(n);
    while let Some(Reverse((_, task))) = ready.pop() {
        let (read, sent) = ends(&tasks.list[task as usize]);
        let blocked = read.map(|message| (wire(message), message, false)).into_iter();
        let blocked = blocked.chain(sent.map(|message| (wire(message), message, true))).find(
            |(wire, message, sends)| {
                let wire = wires.get(wire);
                !wire.is_some_and(
                    |wire| if *sends { wire.admits(*message, room) } else { wire.offers(*message) },
                )
            },
        );
        if let Some((wire, ..)) = blocked {
            wires.entry(wire).or_default().parked.push(task);
            continue;
        }
        order.push(task);
        for (message, sends) in read.map(|m| (m, false)).into_iter().chain(sent.map(|m| (m, true))) {
            let wire = wires.entry(wire(message)).or_default();
            if sends {
                wire.due.pop_front();
                wire.on_their_way.push_back(message);
            } else {
                wire.on_their_way.pop_front();
            }
            ready.extend(wire.parked.drain(..).map(|task| Reverse((at[task as usize], task))));
        }
        for &later in &after[task as usize] {
            missing[later as usize] -= 1;
            if missing[later as usize] == 0 {
                ready.push(Reverse((at[later as usize], later)));
            }
        }
    }
    (order.len() == n).then_some(order)
}

/// A connection while steps run.
#[derive(Default)]
struct Wire {
    /// Messages to be stored, in order.
    due: VecDeque<u32>,
    on_their_way: VecDeque<u32>,
    /// Tasks that wait for their turn.
    parked: Vec<u32>,
}

impl Wire {
    fn admits(&self, message: u32, room: u32) -> bool {
        self.due.front() == Some(&message) && self.on_their_way.len() < room as usize
    }

    fn offers(&self, message: u32) -> bool {
        self.on_their_way.front() == Some(&message)
    }
}
