//! A second opinion: runs a schedule in one random interleaving, with values that tell every order of combination
//! apart. It shares nothing with stage 2 but the data types.

use quadrille_compiler::ids::{Location, Slice};
use quadrille_compiler::kind::Shape;
use quadrille_compiler::program::Program;
use quadrille_compiler::schedule::{Action, Counter, Schedule};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// What every chunk holds, as a hash of how it was made.
type Memory = HashMap<Location, u64>;

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

fn combine(memory: &Memory, shape: &Shape, sources: &[Slice], offset: u32) -> u64 {
    let terms: Vec<u64> = sources.iter().map(|s| read(memory, shape, s.at(offset))).collect();
    match terms[..] {
        [one] => one,
        _ if terms.contains(&0) => 0,
        _ => digest(("sum", terms)),
    }
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
    /// What the move in progress has read, chunk by chunk, and how many it has stored.
    held: Vec<u64>,
    stored: usize,
}

/// Runs the schedule with block speeds drawn from `seed`: each chunk of a move is read and later stored, kernels begin
/// late, and a touch of a peer that has not begun or has ended is an error, as is a deadlock.
pub(crate) fn interleaved(schedule: &Schedule, mut seed: u64) -> Result<Vec<u64>, String> {
    let mut random = move |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below
    };
    let shape = &schedule.shape;
    let blocks: Vec<_> = schedule.places().collect();
    let mut threads: Vec<Thread> = blocks
        .iter()
        .map(|(place, _)| Thread { rank: place.rank.0, step: 0, held: Vec::new(), stored: 0 })
        .collect();
    let mut begun = vec![false; shape.ranks as usize];
    let mut counts: HashMap<Counter, u32> = HashMap::new();
    let mut memory = Memory::new();
    // A favourite block runs many times as often as the others, so that some are far ahead.
    let mut favourite = 0;
    loop {
        let ended = |threads: &[Thread], rank: u32| {
            threads.iter().zip(&blocks).all(|(t, (_, b))| t.rank != rank || t.step == b.steps.len())
        };
        let able: Vec<usize> = (0..threads.len())
            .filter(|&i| match blocks[i].1.steps.get(threads[i].step).map(|s| &s.action) {
                None => false,
                Some(Action::Wait(arrivals)) => {
                    arrivals.iter().all(|a| counts.get(&a.counter).copied().unwrap_or(0) >= a.value)
                }
                Some(_) => true,
            })
            .collect();
        if able.is_empty() {
            let all_ended = threads.iter().zip(&blocks).all(|(t, (_, b))| t.step == b.steps.len());
            return if all_ended { Ok(outputs(&memory, shape)) } else { Err("deadlock".to_owned()) };
        }
        if random(8) == 0 {
            favourite = able[random(able.len())];
        }
        let i = if able.contains(&favourite) { favourite } else { able[random(able.len())] };
        begun[threads[i].rank as usize] = true;
        let rank = threads[i].rank;
        match &blocks[i].1.steps[threads[i].step].action {
            Action::Wait(_) | Action::BlockSync => threads[i].step += 1,
            Action::Signal(counters) => {
                counters.iter().for_each(|c| *counts.entry(*c).or_default() += 1);
                threads[i].step += 1;
            }
            Action::Move { sources, dests, .. } => {
                if let Some(peer) = sources
                    .iter()
                    .chain(dests)
                    .map(|s| s.rank.0)
                    .find(|&peer| peer != rank && (!begun[peer as usize] || ended(&threads, peer)))
                {
                    return Err(format!("r{rank} touches r{peer} outside its call"));
                }
                let thread = &mut threads[i];
                let len = dests[0].len as usize;
                if thread.held.len() < len && (thread.held.len() == thread.stored || random(2) == 0) {
                    let offset = thread.held.len() as u32;
                    thread.held.push(combine(&memory, shape, sources, offset));
                } else {
                    let value = thread.held[thread.stored];
                    memory.extend(dests.iter().map(|d| (d.at(thread.stored as u32), value)));
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
        if got != wanted {
            return Err("another result".to_owned());
        }
    }
    Ok(())
}
