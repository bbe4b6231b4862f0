//! Sorts blocks into classes and fits formulas to their operands.

use super::{
    BlockClass, ClassLinks, Formula, KernelAction, KernelOperand, KernelStep, LinkEnd, LinkRun, Series,
    StepOrigin, roll,
};
use crate::options::Protocol;
use crate::program::Scaling;
use crate::program::ids::{BlockId, Buffer};
use crate::program::{Program, StatementId};
use crate::schedule::CounterKind;
use crate::schedule::{self, Action, Block, Counter, Fifos, Schedule, Step, sizing};
use rustc_hash::FxHashMap;

/// The part of a step that all members of a class share: everything but ranks, blocks and chunks.
#[derive(PartialEq, Eq, Hash)]
struct StepSignature {
    links: Vec<(LinkEnd, CounterKind, u32)>,
    steps: Vec<(Option<StatementId>, bool, StepShape)>,
}

#[derive(PartialEq, Eq, Hash)]
enum StepShape {
    Wait(Vec<(u32, i32)>),
    Signal(Vec<(u32, i32)>),
    Move { sources: Vec<SignatureOperand>, dests: Vec<SignatureOperand>, scaling: Scaling },
    BlockSync,
}

#[derive(PartialEq, Eq, Hash)]
enum SignatureOperand {
    Memory { buffer: Buffer, len: u32 },
    Message { protocol: Protocol, link: u32, number: u32 },
    Multicast { buffer: Buffer, len: u32 },
}

/// A block with its counters numbered in the order of first use.
struct Candidate<'a> {
    place: BlockId,
    block: &'a Block,
    links: Vec<Counter>,
}

/// The classes, by their first member.
pub(super) fn classify(schedule: &Schedule, program: &Program) -> Vec<BlockClass> {
    let mut groups: Vec<(StepSignature, Vec<Candidate<'_>>)> = Vec::new();
    let mut index: FxHashMap<u64, Vec<usize>> = FxHashMap::default();
    for (place, block) in schedule.places() {
        let (signature, candidate) = signature(place, block, program);
        let key = hash(&signature);
        let known = index.entry(key).or_default();
        match known.iter().find(|&&g| groups[g].0 == signature) {
            Some(&group) => groups[group].1.push(candidate),
            None => {
                known.push(groups.len());
                groups.push((signature, vec![candidate]));
            }
        }
    }
    let fifos = Fifos::of(schedule);
    groups.iter().map(|(signature, members)| class(signature, members, (schedule, &fifos), program)).collect()
}

fn hash(signature: &StepSignature) -> u64 {
    use std::hash::{BuildHasher, BuildHasherDefault};
    BuildHasherDefault::<rustc_hash::FxHasher>::default().hash_one(signature)
}

fn signature<'a>(place: BlockId, block: &'a Block, program: &Program) -> (StepSignature, Candidate<'a>) {
    let mut links: Vec<Counter> = Vec::new();
    let mut sent: FxHashMap<usize, u32> = FxHashMap::default();
    let mut steps = Vec::new();
    for step in &block.steps {
        let mut link = |counter: Counter| {
            links.iter().position(|c| *c == counter).unwrap_or_else(|| {
                links.push(counter);
                links.len() - 1
            })
        };
        let shape = match &step.action {
            Action::Wait(arrivals) => {
                StepShape::Wait(arrivals.iter().map(|a| (link(a.counter) as u32, a.value)).collect())
            }
            Action::Signal(counters) => {
                // Several signals of one counter in one step are one store of the last number.
                let mut values: Vec<(u32, i32)> = Vec::new();
                for &counter in counters {
                    let number = link(counter);
                    let count = sent.entry(number).or_default();
                    *count += 1;
                    match values.last_mut() {
                        Some((last, value)) if *last == number as u32 => *value = *count as i32,
                        _ => values.push((number as u32, *count as i32)),
                    }
                }
                StepShape::Signal(values)
            }
            Action::Move { sources, dests, .. } => {
                let mut shape = |operands: &[schedule::Operand]| {
                    let shape = |operand: &schedule::Operand| match operand {
                        schedule::Operand::Memory(slice) => {
                            SignatureOperand::Memory { buffer: slice.buffer, len: slice.len }
                        }
                        schedule::Operand::Multicast(all) => {
                            SignatureOperand::Multicast { buffer: all.buffer, len: all.len }
                        }
                        schedule::Operand::Message(message) => SignatureOperand::Message {
                            protocol: message.connection.protocol,
                            link: link(message.connection.credit()) as u32,
                            number: message.number,
                        },
                    };
                    operands.iter().map(shape).collect()
                };
                let carried = step.origin.filter(|_| !step.transfer);
                let scaling = carried.map(|op| program.ops[op.0 as usize].scaling.clone());
                StepShape::Move {
                    sources: shape(sources),
                    dests: shape(dests),
                    scaling: scaling.unwrap_or_default(),
                }
            }
            Action::BlockSync => StepShape::BlockSync,
        };
        // The statements of a plan are single steps of single blocks, and so tell nothing that blocks could share.
        let named = step.origin.filter(|_| program.in_flight.is_none());
        let statement = named.map(|op| program.ops[op.0 as usize].statement);
        steps.push((statement, step.transfer, shape));
    }
    let ends = links.iter().enumerate().map(|(number, counter)| {
        if counter.writer == place {
            return (LinkEnd::Writer, counter.kind, sent.get(&number).copied().unwrap_or(0));
        }
        let expected = block.expects.iter().find(|(c, _)| c == counter).map_or(0, |&(_, by)| by);
        (LinkEnd::Waiter, counter.kind, expected)
    });
    let signature = StepSignature { links: ends.collect(), steps };
    (signature, Candidate { place, block, links })
}

fn class(
    signature: &StepSignature,
    members: &[Candidate<'_>],
    (schedule, fifos): (&Schedule, &Fifos),
    program: &Program,
) -> BlockClass {
    let shape = schedule.shape;
    let places: Vec<BlockId> = members.iter().map(|m| m.place).collect();
    let fit = |unit: u32, value: &dyn Fn(&Candidate<'_>) -> u32| {
        let values: Vec<u32> = members.iter().map(value).collect();
        Formula::fit(shape.ranks, &places, &values, unit)
    };
    let links = signature.links.iter().enumerate().map(|(i, &(end, kind, advance))| {
        let peer = |m: &Candidate<'_>| match end {
            LinkEnd::Writer => m.links[i].waiter,
            LinkEnd::Waiter => m.links[i].writer,
        };
        let rank = fit(1, &|m| peer(m).rank.0);
        let block = fit(1, &|m| peer(m).block.0);
        let numbered = members.first().is_some_and(|m| m.links[i].connection().is_some());
        let number = |m: &Candidate<'_>| m.links[i].connection().map_or(0, |c| fifos.number(&c));
        let fifo = numbered.then(|| fit(1, &number));
        ClassLinks { first: i as u32, count: 1, end, kind, rank, block, fifo, advance }
    });
    let links = gather(links.collect(), shape.ranks);
    let steps = signature.steps.iter().enumerate().map(|(i, (_, transfer, step))| {
        let operands = |side: fn(&Step) -> &[schedule::Operand], shapes: &[SignatureOperand]| {
            let operand = |(k, operand): (usize, &SignatureOperand)| match *operand {
                SignatureOperand::Message { protocol, link, number } => {
                    let [link, number] = [link, number].map(Series::constant);
                    KernelOperand::Message { protocol, link, number }
                }
                SignatureOperand::Multicast { buffer, len } => {
                    let first = |m: &Candidate<'_>| side(&m.block.steps[i])[k].slices().next();
                    let start = fit(shape.chunks, &|m| first(m).map_or(0, |s| s.start));
                    KernelOperand::Multicast { buffer, start, len }
                }
                SignatureOperand::Memory { buffer, len } => {
                    let slice = |m: &Candidate<'_>| side(&m.block.steps[i])[k].memory().copied();
                    KernelOperand::Memory {
                        buffer,
                        rank: fit(1, &|m| slice(m).map_or(0, |s| s.rank.0)),
                        start: fit(shape.chunks, &|m| slice(m).map_or(0, |s| s.start)),
                        len,
                    }
                }
            };
            shapes.iter().enumerate().map(operand).collect()
        };
        let action = match step {
            StepShape::Wait(links) => KernelAction::Wait(runs(links, &signature.links)),
            StepShape::Signal(links) => KernelAction::Signal(runs(links, &signature.links)),
            StepShape::BlockSync => KernelAction::BlockSync,
            StepShape::Move { sources, dests, scaling } => KernelAction::Move {
                sources: operands(step_sources, sources),
                dests: operands(step_dests, dests),
                size_of: fit(shape.chunks, &|m| size_of(&m.block.steps[i])),
                scaling: scaling.clone(),
            },
        };
        let op = members.first().and_then(|m| m.block.steps[i].origin);
        let iteration = op.map(|op| program.trails.describe(program.ops[op.0 as usize].trail));
        let origin = StepOrigin {
            statement: op.map(|op| program.ops[op.0 as usize].statement),
            op,
            iteration: iteration.unwrap_or_default(),
        };
        KernelStep { action, transfer: *transfer, origins: vec![origin] }
    });
    let class = BlockClass { steps: steps.collect(), members: places, links, loops: Vec::new() };
    roll::roll(class, shape.ranks, program.in_flight.is_some())
}

/// A chunk that has the size of the first chunk moved.
fn size_of(step: &Step) -> u32 {
    match &step.action {
        Action::Move { sources, dests, position } => {
            sizing(sources, dests).map_or(*position, |slice| slice.start)
        }
        _ => 0,
    }
}

fn step_sources(step: &Step) -> &[schedule::Operand] {
    if let Action::Move { sources, .. } = &step.action { sources } else { &[] }
}

fn step_dests(step: &Step) -> &[schedule::Operand] {
    if let Action::Move { dests, .. } = &step.action { dests } else { &[] }
}

/// Joins neighbouring links whose formulas advance regularly.
fn gather(links: Vec<ClassLinks>, ranks: u32) -> Vec<ClassLinks> {
    let mut gathered: Vec<ClassLinks> = Vec::new();
    for link in links {
        let joined = gathered.last().and_then(|last| {
            let alike = (last.end, last.kind, last.advance) == (link.end, link.kind, link.advance);
            let rank = last.rank.extend(&link.rank, last.count, ranks).filter(|_| alike)?;
            let block = last.block.extend(&link.block, last.count, ranks)?;
            let fifo = match (&last.fifo, &link.fifo) {
                (Some(first), Some(next)) => Some(first.extend(next, last.count, ranks)?),
                (None, None) => None,
                _ => return None,
            };
            Some(ClassLinks { count: last.count + 1, rank, block, fifo, ..last.clone() })
        });
        match (joined, gathered.last_mut()) {
            (Some(joined), Some(last)) => *last = joined,
            _ => gathered.push(link),
        }
    }
    gathered
}

/// Joins neighbouring links of one kind with the same value.
fn runs(links: &[(u32, i32)], kinds: &[(LinkEnd, CounterKind, u32)]) -> Vec<LinkRun> {
    let mut runs: Vec<LinkRun> = Vec::new();
    let kind = |link: i32| kinds[link as usize].1;
    for &(link, value) in links {
        let (first, value) = (Series::constant(link), Series { start: value, by: 0 });
        match runs.last_mut() {
            Some(run)
                if run.value == value
                    && run.first.start + run.count as i32 == first.start
                    && kind(run.first.start) == kind(first.start) =>
            {
                run.count += 1;
            }
            _ => runs.push(LinkRun { first, count: 1, value }),
        }
    }
    runs
}
