//! A second opinion: runs a schedule in one random interleaving, with values that tell every order of combination
//! apart; tile by tile where it has tiles. It shares nothing with stage 2 but the data types.

use quadrille_compiler::options::Protocol;
use quadrille_compiler::program::Program;
use quadrille_compiler::program::ids::{Location, Slice};
use quadrille_compiler::program::kind::Shape;
use quadrille_compiler::schedule::{
    Action, Connection, Counter, CounterKind, FifoMessage, Operand, Schedule,
};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// What every chunk holds, as a hash of how it was made.
type Memory = HashMap<Location, u64>;

/// Tiles of a schedule that has any: so many that slots are used again and again.
const TILES: usize = 6;

fn digest(of: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

fn read(memory: &Memory, shape: &Shape, at: Location) -> u64 {
    memory.get(&at).copied().unwrap_or_else(|| match shape.initial(at) {
        Some(leaf) => digest(("leaf", leaf)),
        None => 0,
    })
}

fn sum(terms: Vec<u64>) -> u64 {
    match terms[..] {
        [one] => one,
        _ if terms.contains(&0) => 0,
        _ => digest(("sum", terms)),
    }
}

fn combine(memory: &Memory, shape: &Shape, sources: &[Slice], offset: u32) -> u64 {
    sum(sources.iter().map(|s| read(memory, shape, s.at(offset))).collect())
}

/// The output chunks after the program's operations, one after the other.
pub(crate) fn sequential(program: &Program) -> Vec<u64> {
    let mut memory = Memory::new();
    for op in &program.ops {
        for offset in 0..op.dests[0].len {
            let value = combine(&memory, &program.shape, &op.sources, offset);
            memory.extend(op.dests.iter().map(|d| (d.at(offset), value)));
        }
    }
    outputs(&memory, &program.shape)
}

fn outputs(memory: &Memory, shape: &Shape) -> Vec<u64> {
    let places = shape.outputs().map(|(rank, chunk)| shape.output_location(rank, chunk));
    places.map(|at| read(memory, shape, at)).collect()
}

struct Thread {
    rank: u32,
    step: usize,
    tile: usize,
    /// What the move in progress has read, chunk by chunk, and how many it has stored.
    held: Vec<u64>,
    stored: usize,
}

/// The slots of all FIFOs: the sequence number of what lies in each, from 1, and its value.
#[derive(Default)]
struct Slots {
    content: HashMap<(Connection, u64), (u64, u64)>,
    /// Messages of a tile.
    load: HashMap<Connection, u64>,
    slots: u64,
}

impl Slots {
    fn of(schedule: &Schedule) -> Slots {
        let mut load: HashMap<Connection, u64> = HashMap::new();
        for (_, block) in schedule.places() {
            for step in &block.steps {
                if let Action::Move { dests, .. } = &step.action {
                    for message in dests.iter().filter_map(Operand::message) {
                        *load.entry(message.connection).or_default() += 1;
                    }
                }
            }
        }
        Slots { content: HashMap::new(), load, slots: u64::from(schedule.slots) }
    }

    fn sequence(&self, message: &FifoMessage, tile: usize) -> u64 {
        let load = self.load.get(&message.connection).copied().unwrap_or(1);
        tile as u64 * load + u64::from(message.number)
    }

    fn slot(&mut self, message: &FifoMessage, tile: usize) -> (u64, &mut (u64, u64)) {
        let sequence = self.sequence(message, tile);
        let key = (message.connection, sequence % self.slots);
        (sequence + 1, self.content.entry(key).or_default())
    }

    /// Whether a flag says that the message is there; plain slots say nothing.
    fn there(&self, message: &FifoMessage, tile: usize) -> bool {
        let sequence = self.sequence(message, tile);
        let content = self.content.get(&(message.connection, sequence % self.slots));
        message.connection.protocol == Protocol::Simple
            || content.is_some_and(|(held, _)| *held == sequence + 1)
    }
}

/// Runs the schedule with block speeds drawn from `seed`: each chunk of a move is read and later stored, kernels begin
/// late, and a touch of a peer that has not begun or has ended is an error, as is a deadlock. The outputs of all tiles.
pub(crate) fn interleaved(schedule: &Schedule, mut seed: u64) -> Result<Vec<Vec<u64>>, String> {
    let mut random = move |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below
    };
    let shape = &schedule.shape;
    let tiles = if schedule.tile.is_some() { TILES } else { 1 };
    let blocks: Vec<_> = schedule.places().collect();
    let mut threads: Vec<Thread> = blocks
        .iter()
        .map(|(place, _)| Thread { rank: place.rank.0, step: 0, tile: 0, held: Vec::new(), stored: 0 })
        .collect();
    let mut per_tile: HashMap<Counter, i64> = HashMap::new();
    for (_, block) in &blocks {
        for step in &block.steps {
            if let Action::Signal(counters) = &step.action {
                counters.iter().for_each(|c| *per_tile.entry(*c).or_default() += 1);
            }
        }
    }
    let mut begun = vec![false; shape.ranks as usize];
    let mut counts: HashMap<Counter, i64> = HashMap::new();
    let mut memory = vec![Memory::new(); tiles];
    let mut slots = Slots::of(schedule);
    // A favourite block runs many times as often as the others, so that some are far ahead.
    let mut favourite = 0;
    loop {
        let over = |thread: &Thread| thread.tile == tiles;
        let ended = |threads: &[Thread], rank: u32| threads.iter().all(|t| t.rank != rank || over(t));
        let able: Vec<usize> = (0..threads.len())
            .filter(|&i| match blocks[i].1.steps.get(threads[i].step).map(|s| &s.action) {
                None => !over(&threads[i]),
                _ if over(&threads[i]) => false,
                Some(Action::Wait(arrivals)) => arrivals.iter().all(|a| {
                    let tile = if a.counter.kind == CounterKind::Start { 0 } else { threads[i].tile as i64 };
                    let before = tile * per_tile.get(&a.counter).copied().unwrap_or(0);
                    counts.get(&a.counter).copied().unwrap_or(0) >= before + i64::from(a.value)
                }),
                Some(Action::Move { sources, .. }) => {
                    sources.iter().filter_map(Operand::message).all(|m| slots.there(m, threads[i].tile))
                }
                Some(_) => true,
            })
            .collect();
        if able.is_empty() {
            if !threads.iter().all(over) {
                return Err("deadlock".to_owned());
            }
            return Ok(memory.iter().map(|memory| outputs(memory, shape)).collect());
        }
        if random(8) == 0 {
            favourite = able[random(able.len())];
        }
        let i = if able.contains(&favourite) { favourite } else { able[random(able.len())] };
        begun[threads[i].rank as usize] = true;
        let (rank, tile) = (threads[i].rank, threads[i].tile);
        let Some(step) = blocks[i].1.steps.get(threads[i].step) else {
            (threads[i].step, threads[i].tile) = (0, tile + 1);
            continue;
        };
        match &step.action {
            Action::Wait(_) | Action::BlockSync => threads[i].step += 1,
            Action::Signal(counters) => {
                for counter in counters {
                    if counter.kind != CounterKind::Start || tile == 0 {
                        *counts.entry(*counter).or_default() += 1;
                    }
                }
                threads[i].step += 1;
            }
            Action::Move { sources, dests, .. } => {
                if let Some(peer) = sources
                    .iter()
                    .chain(dests)
                    .flat_map(|operand| operand.slices().map(|slice| slice.rank.0))
                    .find(|&peer| peer != rank && (!begun[peer as usize] || ended(&threads, peer)))
                {
                    return Err(format!("r{rank} touches r{peer} outside its call"));
                }
                let len = dests[0].len() as usize;
                let thread = &threads[i];
                if thread.held.len() < len && (thread.held.len() == thread.stored || random(2) == 0) {
                    let offset = thread.held.len() as u32;
                    let mut terms = Vec::new();
                    for operand in sources {
                        terms.extend(operand.slices().map(|s| read(&memory[tile], shape, s.at(offset))));
                        terms.extend(operand.message().map(|message| slots.slot(message, tile).1.1));
                    }
                    let value = sum(terms);
                    threads[i].held.push(value);
                } else {
                    let (offset, value) = (thread.stored as u32, thread.held[thread.stored]);
                    for dest in dests {
                        memory[tile].extend(dest.slices().map(|slice| (slice.at(offset), value)));
                        if let Some(message) = dest.message() {
                            let (sequence, slot) = slots.slot(message, tile);
                            *slot = (sequence, value);
                        }
                    }
                    let thread = &mut threads[i];
                    thread.stored += 1;
                    if thread.stored == len {
                        thread.held.clear();
                        thread.stored = 0;
                        thread.step += 1;
                    }
                }
            }
        }
    }
}

/// Whether `runs` interleavings all give what the program gives; else what one of them did.
pub(crate) fn agrees(schedule: &Schedule, program: &Program, runs: u64) -> Result<(), String> {
    let wanted = sequential(program);
    for seed in 0..runs {
        let got = interleaved(schedule, seed)?;
        if got.iter().any(|tile| *tile != wanted) {
            return Err("another result".to_owned());
        }
    }
    Ok(())
}
