//! Rolls steps that advance regularly into loops, so that a kernel's text does not grow with ranks and chunks.
//!
//! Steps repeat with a period where they have one *shape*: everything but ranks, chunks and numbers. Of all
//! repetitions the one that saves most steps becomes a loop, then the steps before and after it are looked at
//! likewise. Numbers have to advance evenly, ranks and chunks by formulas, or by small tables. Time: for each loop that is
//! found, the steps around it times `LONGEST`.

use super::{BlockClass, Formula, KernelAction, KernelLoop, KernelOperand, KernelStep, LinkRun, Series};
use crate::options::Protocol;
use crate::program::Scaling;
use crate::program::StatementId;
use crate::program::ids::{BlockId, Buffer};
use crate::schedule::CounterKind;
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;

/// Fewer iterations are not worth a loop.
const LEAST: usize = 3;
/// Longest body that is looked for: bounds the time, which is steps times this.
const LONGEST: usize = 256;
/// Repetitions whose numbers do not advance evenly, until a range of steps is given up.
const TRIES: usize = 32;
/// Most values of a table that a loop brings in.
const TABLE: usize = 1024;

/// The part of steps that must be equal for them to be one step of a loop.
#[derive(PartialEq, Eq, Hash)]
struct StepShape<'k> {
    statement: Option<StatementId>,
    transfer: bool,
    action: ActionShape<'k>,
}

#[derive(PartialEq, Eq, Hash)]
enum ActionShape<'k> {
    Wait(Vec<(CounterKind, u32)>),
    Signal(Vec<(CounterKind, u32)>),
    Move { sources: Vec<RolledOperand>, dests: Vec<RolledOperand>, scaling: &'k Scaling },
    BlockSync,
}

#[derive(PartialEq, Eq, Hash)]
enum RolledOperand {
    Memory {
        buffer: Buffer,
        len: u32,
    },
    /// A call's first message names the call.
    Message {
        protocol: Protocol,
        first: bool,
    },
    Multicast {
        buffer: Buffer,
        len: u32,
    },
}

/// Rolls the steps of a class. `plan`: statements are single steps of an imported plan, which loops may join.
pub(super) fn roll(class: BlockClass, ranks: u32, plan: bool) -> BlockClass {
    let mut known: FxHashMap<StepShape<'_>, u32> = FxHashMap::default();
    let mut number = |step| {
        let next = known.len() as u32;
        *known.entry(shape(&class, step, plan)).or_insert(next)
    };
    let shapes: Vec<u32> = class.steps.iter().map(&mut number).collect();
    let roller = Roller { steps: &class.steps, shapes, members: &class.members, ranks };
    let (mut steps, mut loops) = (Vec::new(), Vec::new());
    roller.roll(0..class.steps.len(), &mut steps, &mut loops);
    BlockClass { steps, loops, ..class }
}

fn shape<'k>(class: &BlockClass, step: &'k KernelStep, plan: bool) -> StepShape<'k> {
    let runs = |runs: &[LinkRun]| runs.iter().map(|run| (class.kind(run.first.start), run.count)).collect();
    let operands = |operands: &[KernelOperand]| operands.iter().map(operand_shape).collect();
    let action = match &step.action {
        KernelAction::Wait(links) => ActionShape::Wait(runs(links)),
        KernelAction::Signal(links) => ActionShape::Signal(runs(links)),
        KernelAction::Move { sources, dests, scaling, .. } => {
            ActionShape::Move { sources: operands(sources), dests: operands(dests), scaling }
        }
        KernelAction::BlockSync => ActionShape::BlockSync,
    };
    let statement = step.origins.first().and_then(|origin| origin.statement).filter(|_| !plan);
    StepShape { statement, transfer: step.transfer, action }
}

fn operand_shape(operand: &KernelOperand) -> RolledOperand {
    match *operand {
        KernelOperand::Memory { buffer, len, .. } => RolledOperand::Memory { buffer, len },
        KernelOperand::Message { protocol, number, .. } => {
            RolledOperand::Message { protocol, first: number.is_zero() }
        }
        KernelOperand::Multicast { buffer, len, .. } => RolledOperand::Multicast { buffer, len },
    }
}

struct Roller<'k> {
    steps: &'k [KernelStep],
    /// The number of each step's shape.
    shapes: Vec<u32>,
    members: &'k [BlockId],
    ranks: u32,
}

impl Roller<'_> {
    /// Appends the steps of a range, rolled.
    fn roll(&self, range: Range<usize>, steps: &mut Vec<KernelStep>, loops: &mut Vec<KernelLoop>) {
        let mut tried = FxHashSet::default();
        while tried.len() < TRIES {
            let Some((first, period, times)) = self.best(&range, &tried) else { break };
            let Some((body, times)) = self.body(first, period, times) else {
                tried.insert((first, period));
                continue;
            };
            self.roll(range.start..first, steps, loops);
            loops.push(KernelLoop { first: steps.len() as u32, count: period as u32, times: times as u32 });
            steps.extend(body);
            return self.roll(first + period * times..range.end, steps, loops);
        }
        steps.extend_from_slice(&self.steps[range]);
    }

    /// Finds steps that repeat: the first one, the period and the number of times. It prefers what saves most, then the shortest
    /// period, then the first.
    fn best(&self, range: &Range<usize>, tried: &FxHashSet<(usize, usize)>) -> Option<(usize, usize, usize)> {
        let mut best: Option<(usize, (usize, usize, usize))> = None;
        for period in 1..=(range.len() / LEAST).min(LONGEST) {
            let mut alike = 0;
            for first in (range.start..range.end - period).rev() {
                alike = if self.shapes[first] == self.shapes[first + period] { alike + 1 } else { 0 };
                let times = alike / period + 1;
                let saved = (times - 1) * period;
                let better = best.is_none_or(|(most, (at, shortest, _))| {
                    saved > most || saved == most && period == shortest && first < at
                });
                if times >= LEAST && better && !tried.contains(&(first, period)) {
                    best = Some((saved, (first, period, times)));
                }
            }
        }
        best.map(|(_, found)| found)
    }

    /// The body of a loop of up to `times` iterations, and of how many.
    fn body(&self, first: usize, period: usize, times: usize) -> Option<(Vec<KernelStep>, usize)> {
        let fits = |times: usize| -> Option<Vec<KernelStep>> {
            (first..first + period)
                .map(|step| self.step((0..times).map(|i| &self.steps[step + i * period]).collect()))
                .collect()
        };
        // What advances evenly at first may turn later: the most iterations that fit, by halving.
        let (mut fit, mut not) = (fits(LEAST).map(|body| (body, LEAST))?, times + 1);
        while fit.1 + 1 < not {
            let middle = if not == times + 1 && fit.1 == LEAST { times } else { fit.1.midpoint(not) };
            match fits(middle) {
                Some(body) => fit = (body, middle),
                None => not = middle,
            }
        }
        Some(fit)
    }

    /// One step for several of one shape, one an iteration.
    fn step(&self, each: Vec<&KernelStep>) -> Option<KernelStep> {
        let action = match &each[0].action {
            KernelAction::Wait(runs) => KernelAction::Wait(self.runs(runs.len(), &each)?),
            KernelAction::Signal(runs) => KernelAction::Signal(self.runs(runs.len(), &each)?),
            KernelAction::BlockSync => KernelAction::BlockSync,
            KernelAction::Move { sources, dests, scaling, .. } => {
                let moves =
                    |side: fn(&KernelStep) -> &[KernelOperand], count: usize| -> Option<Vec<KernelOperand>> {
                        (0..count)
                            .map(|k| self.operand(each.iter().map(|step| &side(step)[k]).collect()))
                            .collect()
                    };
                KernelAction::Move {
                    sources: moves(|step| step.action.sources(), sources.len())?,
                    dests: moves(|step| step.action.dests(), dests.len())?,
                    size_of: self.formula(each.iter().filter_map(|step| step.action.size_of()).collect())?,
                    scaling: scaling.clone(),
                }
            }
        };
        let origins = each.iter().flat_map(|step| step.origins.iter().cloned()).collect();
        Some(KernelStep { action, transfer: each[0].transfer, origins })
    }

    fn runs(&self, count: usize, each: &[&KernelStep]) -> Option<Vec<LinkRun>> {
        let run = |k: usize| {
            let of = |part: fn(&LinkRun) -> Series| {
                Series::fit(each.iter().filter_map(|step| step.action.runs().get(k)).map(part))
            };
            let count = each[0].action.runs()[k].count;
            Some(LinkRun { first: of(|run| run.first)?, count, value: of(|run| run.value)? })
        };
        (0..count).map(run).collect()
    }

    fn operand(&self, each: Vec<&KernelOperand>) -> Option<KernelOperand> {
        Some(match *each[0] {
            KernelOperand::Memory { buffer, len, .. } => {
                let rank = each.iter().filter_map(|operand| operand.rank()).collect();
                let start = each.iter().filter_map(|operand| operand.start()).collect();
                KernelOperand::Memory { buffer, rank: self.formula(rank)?, start: self.formula(start)?, len }
            }
            KernelOperand::Multicast { buffer, len, .. } => {
                let start = each.iter().filter_map(|operand| operand.start()).collect();
                KernelOperand::Multicast { buffer, start: self.formula(start)?, len }
            }
            KernelOperand::Message { protocol, .. } => {
                let messages = || each.iter().filter_map(|operand| operand.message());
                let link = Series::fit(messages().map(|(link, _)| link))?;
                let number = Series::fit(messages().map(|(_, number)| number))?;
                KernelOperand::Message { protocol, link, number }
            }
        })
    }

    /// One formula for several, one an iteration.
    fn formula(&self, each: Vec<&Formula>) -> Option<Formula> {
        let (first, further) = each.split_first()?;
        let mut rolled = Some((*first).clone());
        for (i, next) in (1..).zip(further) {
            rolled = rolled.and_then(|formula| formula.extend(next, i, self.ranks));
        }
        if rolled.is_some() {
            return rolled;
        }
        let values = self.members.iter().enumerate().flat_map(|(member, &at)| {
            each.iter().map(move |formula| formula.evaluate(self.ranks, member, at, 0))
        });
        let each = each.len();
        (self.members.len() * each <= TABLE)
            .then(|| Formula::Table { values: values.collect(), each: each as u32 })
    }
}
