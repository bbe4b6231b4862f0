//! An order in which a plan can run. Signals and semaphores count, and every count is waited for by one thread block, so
//! that whether all can run does not depend on the order.

use super::plan::{At, End, Plan, Tick, What};
use crate::diagnostic::words;
use crate::diagnostic::{Check, Diagnostic};
use crate::interop::finding;
use crate::program::ids::Rank;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeSet, VecDeque};

/// An act, or the move of one of its chunks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct Point {
    pub(super) act: u32,
    pub(super) chunk: u32,
}

/// A plan's order.
#[derive(Debug)]
pub(super) struct PlanOrder {
    pub(super) points: Vec<Point>,
    /// For each counter what raises it, in the order of each block.
    pub(super) posts: Vec<Vec<(usize, Point)>>,
}

/// Runs the plan.
///
/// Errors: (`unsupported`) counters that several thread blocks wait for; (`data-race`) packets that are stored twice;
/// (`deadlock`) waits that nothing ends; (`invariant`) counters that do not end as they began.
pub(super) fn order(plan: &Plan) -> Result<PlanOrder, Vec<Diagnostic>> {
    let mut findings = shared_waits(plan);
    findings.extend(doubled_packets(plan));
    if !findings.is_empty() {
        return Err(findings);
    }
    let mut run = PlanRun {
        plan,
        next: plan.blocks.iter().map(|(_, acts)| Point { act: acts.start as u32, chunk: 0 }).collect(),
        count: plan.counters.iter().map(|counter| counter.initial()).collect(),
        sleeping: FxHashMap::default(),
        listening: FxHashMap::default(),
        stored: FxHashSet::default(),
        points: Vec::new(),
        posts: vec![Vec::new(); plan.counters.len()],
    };
    let mut ready: VecDeque<usize> = (0..plan.blocks.len()).collect();
    while let Some(block) = ready.pop_front() {
        run.block(block, &mut ready);
    }
    let stuck: Vec<usize> =
        (0..plan.blocks.len()).filter(|&b| (run.next[b].act as usize) < plan.blocks[b].1.end).collect();
    if !stuck.is_empty() {
        return Err(run.deadlocks(&stuck));
    }
    let surplus = run.surplus();
    if !surplus.is_empty() {
        return Err(surplus);
    }
    Ok(PlanOrder { points: run.points, posts: run.posts })
}

/// Counters that several thread blocks wait for: which of them goes on is a matter of speed.
fn shared_waits(plan: &Plan) -> Vec<Diagnostic> {
    let mut waiter: FxHashMap<u32, usize> = FxHashMap::default();
    let mut findings = Vec::new();
    let mut told = BTreeSet::new();
    for act in &plan.acts {
        let What::Await(ticks) = &act.what else { continue };
        for tick in ticks {
            let first = *waiter.entry(tick.counter).or_insert(act.block);
            if first != act.block && told.insert(tick.counter) {
                let name = plan.counters[tick.counter as usize].name();
                let message = format!("several thread blocks wait for {name}");
                let [one, other] = [first, act.block].map(|block| plan.blocks[block].0.block.0);
                findings.push(
                    finding(Check::Unsupported, act.loc, message)
                        .note(format!("whether tb {one} or tb {other} goes on is a matter of their speed"))
                        .help("give each a channel or semaphore of its own"),
                );
            }
        }
    }
    findings
}

/// Packets have one flag a call, so that a reader takes either of two.
fn doubled_packets(plan: &Plan) -> Vec<Diagnostic> {
    let mut stored: FxHashMap<At, usize> = FxHashMap::default();
    let mut findings = Vec::new();
    for (number, act) in plan.acts.iter().enumerate() {
        let What::Move(chunks) = &act.what else { continue };
        let doubled = chunks.iter().flat_map(|chunk| &chunk.dests).find_map(|dest| {
            let End::Packet(at) = dest else { return None };
            stored.insert(*at, number).map(|first| (*at, first))
        });
        if let Some((at, first)) = doubled {
            let message =
                format!("packets of chunk {} of scratch of gpu {} are stored twice", at.chunk, at.rank.0);
            let note = format!(
                "they are stored at {}, too, with the same flag: a reader takes either",
                plan.acts[first].loc
            );
            findings.push(finding(Check::DataRace, act.loc, message).note(note));
        }
    }
    findings
}

struct PlanRun<'a> {
    plan: &'a Plan,
    next: Vec<Point>,
    count: Vec<u32>,
    /// The block that waits for a counter.
    sleeping: FxHashMap<u32, usize>,
    /// Blocks that wait for a packet.
    listening: FxHashMap<At, Vec<usize>>,
    stored: FxHashSet<At>,
    points: Vec<Point>,
    posts: Vec<Vec<(usize, Point)>>,
}

/// The things that a block waits for.
enum Missing {
    Counter(u32),
    Packet(At),
}

impl PlanRun<'_> {
    fn block(&mut self, block: usize, ready: &mut VecDeque<usize>) {
        let plan = self.plan;
        while let Some(act) = plan.acts[..plan.blocks[block].1.end].get(self.next[block].act as usize) {
            match self.missing(block) {
                Some(Missing::Counter(counter)) => {
                    self.sleeping.insert(counter, block);
                    return;
                }
                Some(Missing::Packet(at)) => {
                    self.listening.entry(at).or_default().push(block);
                    return;
                }
                None => {}
            }
            let point = self.next[block];
            let mut more = false;
            match &act.what {
                What::Sync | What::Flush { .. } => {}
                What::Post(ticks) => {
                    for Tick { counter, .. } in ticks {
                        self.count[*counter as usize] += 1;
                        self.posts[*counter as usize].push((block, point));
                        ready.extend(self.sleeping.remove(counter));
                    }
                }
                What::Await(ticks) => ticks.iter().for_each(|tick| self.count[tick.counter as usize] -= 1),
                What::Move(chunks) => {
                    for dest in chunks.get(point.chunk as usize).into_iter().flat_map(|chunk| &chunk.dests) {
                        let End::Packet(at) = dest else { continue };
                        self.stored.insert(*at);
                        ready.extend(self.listening.remove(at).into_iter().flatten());
                    }
                    more = point.chunk as usize + 1 < chunks.len();
                }
            }
            self.points.push(point);
            self.next[block] = match more {
                true => Point { chunk: point.chunk + 1, ..point },
                false => Point { act: point.act + 1, chunk: 0 },
            };
        }
    }

    /// The things that the next act of a block waits for.
    fn missing(&self, block: usize) -> Option<Missing> {
        let Point { act, chunk } = self.next[block];
        match &self.plan.acts.get(act as usize)?.what {
            What::Await(ticks) => {
                let due = |counter| ticks.iter().filter(|tick| tick.counter == counter).count() as u32;
                let short = ticks.iter().find(|tick| self.count[tick.counter as usize] < due(tick.counter));
                short.map(|tick| Missing::Counter(tick.counter))
            }
            What::Move(chunks) => {
                let missing = chunks.get(chunk as usize)?.sources.iter().find_map(|source| match source {
                    End::Packet(at) if !self.stored.contains(at) => Some(*at),
                    _ => None,
                });
                missing.map(Missing::Packet)
            }
            What::Sync | What::Flush { .. } | What::Post(_) => None,
        }
    }

    /// The block that would end a wait, were it not stuck, with the act that does so.
    fn supplier(&self, missing: &Missing) -> Option<(usize, usize)> {
        let supplies = |what: &What| match (what, missing) {
            (What::Post(ticks), Missing::Counter(counter)) => {
                ticks.iter().any(|tick| tick.counter == *counter)
            }
            (What::Move(chunks), Missing::Packet(at)) => {
                chunks.iter().any(|chunk| chunk.dests.contains(&End::Packet(*at)))
            }
            _ => false,
        };
        self.plan.blocks.iter().enumerate().find_map(|(block, (_, acts))| {
            let left = (self.next[block].act as usize)..acts.end;
            left.into_iter().find(|&act| supplies(&self.plan.acts[act].what)).map(|act| (block, act))
        })
    }

    fn name(&self, block: usize) -> String {
        let place = self.plan.blocks[block].0;
        format!("gpu {}, tb {}", place.rank.0, place.block.0)
    }

    /// One finding for each cycle of blocks that wait for each other, and for each wait that nothing would end.
    fn deadlocks(&self, stuck: &[usize]) -> Vec<Diagnostic> {
        let mut findings = Vec::new();
        let mut seen: BTreeSet<usize> = BTreeSet::new();
        for &start in stuck {
            let mut path: Vec<usize> = Vec::new();
            let mut notes: Vec<String> = Vec::new();
            let mut block = start;
            while seen.insert(block) {
                path.push(block);
                let Some(missing) = self.missing(block) else { break };
                let at = self.plan.acts[self.next[block].act as usize].loc;
                let what = match missing {
                    Missing::Counter(counter) => self.plan.counters[counter as usize].name(),
                    Missing::Packet(at) => {
                        let At { rank: Rank(rank), chunk, .. } = at;
                        format!("packets of chunk {chunk} of scratch of gpu {rank}")
                    }
                };
                let waits = format!("{} waits at {at} for {what}", self.name(block));
                let Some((next, act)) = self.supplier(&missing) else {
                    let message = format!("{} waits for ever for {what}", self.name(block));
                    let before = match missing {
                        Missing::Counter(_) => "nothing raises it as often as it is waited for",
                        Missing::Packet(_) => "nobody stores them",
                    };
                    findings.push(finding(Check::Deadlock, at, message).note(before));
                    break;
                };
                notes.push(format!("{waits}, due from {} at {}", self.name(next), self.plan.acts[act].loc));
                block = next;
            }
            let Some(first) = path.iter().position(|&other| other == block) else { continue };
            if notes.len() < path.len() {
                continue;
            }
            let names: Vec<String> = path[first..].iter().map(|&block| self.name(block)).collect();
            let at = self.plan.acts[self.next[path[first]].act as usize].loc;
            let message = match &names[..] {
                [one] => format!("{one} waits for itself"),
                _ => format!("{} wait for each other", words::list(&names)),
            };
            let mut found = finding(Check::Deadlock, at, message);
            found.notes = notes.split_off(first);
            findings.push(found);
        }
        findings
    }

    /// Counters that are raised more often than they are waited for: the next call would go on too early.
    fn surplus(&self) -> Vec<Diagnostic> {
        let mut findings = Vec::new();
        for (number, counter) in self.plan.counters.iter().enumerate() {
            let (left, initial) = (self.count[number], counter.initial());
            if left == initial {
                continue;
            }
            let name = counter.name();
            let acts = &self.plan.acts;
            if left > initial {
                let Some((_, point)) = self.posts[number].last() else { continue };
                let times = words::count(u64::from(left - initial), "time");
                let message = format!("{name} is raised {times} more often than it is waited for");
                let note = "the next call would take that for its own, and not wait long enough";
                findings.push(finding(Check::Invariant, acts[point.act as usize].loc, message).note(note));
            } else {
                let waits = |what: &What| matches!(what, What::Await(ticks) if ticks.iter().any(|t| t.counter as usize == number));
                let Some(act) = acts.iter().rfind(|act| waits(&act.what)) else { continue };
                let message = format!("{name} is never released as often as it is acquired");
                let note = format!(
                    "it is {initial} at first and {left} after a call, so that later calls wait for ever"
                );
                findings.push(finding(Check::Invariant, act.loc, message).note(note));
            }
        }
        findings
    }
}
