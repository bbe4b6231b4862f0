//! The history of every value in a run, to explain a wrong result: which values got lost, and where a sum went wrong.
//! Made only once something is wrong.

use crate::diagnostic::words;
use crate::program::ids::{Location, Rank};
use crate::program::kind::Contribution;
use crate::program::location::Locations;
use crate::program::{Op, OpId, Program};
use crate::values::inputs::Inputs;
use crate::values::replay::{Observe, replay};
use crate::values::{Node, State, ValueId, Values};
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;

/// What happened in a run.
pub(crate) struct History<'p> {
    program: &'p Program,
    values: Values,
    /// Values that nobody read, in the order in which they ended.
    unread: Vec<Version>,
    /// Where each sum was first made, and for which rank.
    makers: FxHashMap<ValueId, (OpId, Rank)>,
    told: FxHashSet<String>,
}

/// A value in a chunk, from its store to the next.
#[derive(Clone, Copy, Debug)]
struct Version {
    at: Location,
    value: ValueId,
    /// Who stored it; `None` for what was there at the beginning.
    made: Option<OpId>,
    /// Who overwrote it; `None` if it was there at the end.
    overwritten: Option<OpId>,
}

/// Gathers a history.
struct Recording {
    locations: Locations,
    /// The version in each chunk, and whether it has been read.
    current: Vec<Option<(Version, bool)>>,
    unread: Vec<Version>,
    makers: FxHashMap<ValueId, (OpId, Rank)>,
}

impl Observe for Recording {
    fn read(&mut self, _: OpId, chunks: Range<usize>, _: &[Option<ValueId>]) {
        for (_, read) in self.current[chunks].iter_mut().flatten() {
            *read = true;
        }
    }

    fn store(&mut self, op: OpId, chunks: Range<usize>, held: &[Option<ValueId>]) {
        for (index, value) in chunks.zip(held) {
            let (Some(at), Some(value)) = (self.locations.at(index), *value) else { continue };
            self.makers.entry(value).or_insert((op, at.rank));
            let version = Version { at, value, made: Some(op), overwritten: None };
            if let Some((before, false)) = self.current[index].replace((version, false)) {
                self.unread.push(Version { overwritten: Some(op), ..before });
            }
        }
    }
}

impl<'p> History<'p> {
    /// Replays the program.
    pub(crate) fn new(program: &'p Program) -> History<'p> {
        let mut values = Values::new(&program.shape);
        let initial = State::initial(&program.shape, &values);
        let locations = *initial.locations();
        let current = locations
            .iter()
            .map(|at| {
                let value = initial.read(at)?;
                Some((Version { at, value, made: None, overwritten: None }, false))
            })
            .collect();
        let mut recording =
            Recording { locations, current, unread: Vec::new(), makers: FxHashMap::default() };
        replay(program, &mut values, &mut recording);
        let mut unread = recording.unread;
        unread.extend(
            recording.current.iter().flatten().filter(|(_, read)| !read).map(|(version, _)| *version),
        );
        History { program, values, unread, makers: recording.makers, told: FxHashSet::default() }
    }

    /// The values of the run.
    pub(crate) fn values(&self) -> &Values {
        &self.values
    }

    /// Where the missing contributions of a chunk got lost: of the values that nobody read, the one with the most of
    /// them. `blamed` stored the wrong value.
    pub(crate) fn lost(&self, missing: &[Contribution], blamed: Option<OpId>) -> Option<String> {
        let weights = self.values.weigh(|leaf| missing.contains(&leaf));
        let mut best: Option<(u64, Loss, Version)> = None;
        for &version in &self.unread {
            let weight = weights.of(version.value).min(missing.len() as u64);
            let Some(loss) = self.loss(version, blamed).filter(|_| weight > 0) else { continue };
            if best.is_none_or(|(w, l, _)| (weight, loss) > (w, l)) {
                best = Some((weight, loss, version));
            }
        }
        let (_, loss, version) = best?;
        Some(if loss == Loss::UnreadInput { self.unread_inputs(missing) } else { self.fate(version) })
    }

    /// How a value that nobody read got lost; `None` for results that are there to be read by the caller.
    fn loss(&self, version: Version, blamed: Option<OpId>) -> Option<Loss> {
        match (version.made, version.overwritten) {
            (_, Some(_)) => Some(Loss::Overwritten),
            (None, None) => Some(Loss::UnreadInput),
            (Some(made), None) => {
                let op = &self.program.ops[made.0 as usize];
                let sibling =
                    blamed.is_some_and(|b| self.program.ops[b.0 as usize].statement == op.statement);
                (op.sources.len() > 1 && !sibling).then_some(Loss::UnreadSum)
            }
        }
    }

    fn unread_inputs(&self, missing: &[Contribution]) -> String {
        let names: Vec<String> = self
            .unread
            .iter()
            .filter(|version| version.made.is_none() && version.overwritten.is_none())
            .filter_map(|version| match self.values.node(version.value) {
                Node::Leaf(leaf) if missing.contains(&leaf) => Some(leaf.to_string()),
                _ => None,
            })
            .collect();
        format!("{} {} never read", words::list(&names), if names.len() == 1 { "was" } else { "were" })
    }

    fn fate(&self, version: Version) -> String {
        let origin = match version.made {
            Some(made) => format!("made at {} on rank {}", self.program.at(made), version.at.rank.0),
            None => format!("in {} from the start", version.at),
        };
        let end = match version.overwritten {
            Some(op) => format!("overwritten unread at {}", self.program.at(op)),
            None => "never read".to_owned(),
        };
        format!("{}, {origin}, was {end}", self.name(version))
    }

    fn name(&self, version: Version) -> String {
        let content = self.values.contributions(version.value);
        let world = self.program.shape.ranks;
        let value = match &content[..] {
            [(leaf, 1)] => leaf.to_string(),
            [(first, _), ..] if content.iter().all(|(leaf, n)| *n == 1 && leaf.chunk == first.chunk) => {
                if content.len() == world as usize {
                    format!("the sum of all {world} inputs")
                } else {
                    format!("a sum of {} of {world} inputs", content.len())
                }
            }
            _ => format!("a sum of {}", words::count(self.values.count(version.value), "input")),
        };
        let copied = version.made.is_some_and(|made| self.program.ops[made.0 as usize].sources.len() == 1);
        if copied { format!("a copy of {value}") } else { value }
    }

    /// Where the reduction of input chunk `chunk` was made first.
    pub(crate) fn made(&self, chunk: u32) -> Option<String> {
        let mut inputs = Inputs::default();
        let whole =
            |(value, _): &(&ValueId, &(OpId, Rank))| inputs.is_reduction(&self.values, **value, chunk);
        let (_, &(op, rank)) = self.makers.iter().filter(whole).min_by_key(|(_, maker)| **maker)?;
        let place = self.program.at(op);
        Some(format!("the whole reduction of input[..][{chunk}] was made at {place} on rank {}", rank.0))
    }

    /// Remembers a reason; whether it is a new one.
    pub(crate) fn tell(&mut self, reason: &str) -> bool {
        self.told.insert(reason.to_owned())
    }

    /// Where an input that a value holds repeatedly was added again, and where it had come in; `blamed` stored the value.
    pub(crate) fn repeated(
        &self,
        value: ValueId,
        leaf: Contribution,
        blamed: Option<OpId>,
    ) -> Option<Repeated> {
        let weights = self.values.weigh(|l| l == leaf);
        let at = self.origin(value, |v| weights.of(v) > 1);
        let (again, rank) = *self.makers.get(&at)?;
        let Node::Sum(terms) = self.values.node(at) else { return None };
        let holds = |v| weights.of(v) > 0 && matches!(self.values.node(v), Node::Sum(_));
        let sums = terms.iter().filter(|&term| holds(term)).map(|term| self.origin(term, holds));
        let before = sums.filter_map(|sum| self.makers.get(&sum)).min().copied();
        let place = |op, rank: Rank| format!("{} on rank {}", self.program.at(op), rank.0);
        let came = before.map(|(op, rank)| place(op, rank));
        let note = match (Some(again) == blamed, came) {
            (true, Some(came)) => format!("{leaf} had been added at {came} already"),
            (true, None) => return None,
            (false, Some(came)) => {
                format!("{leaf}, added at {came}, was added again at {}", place(again, rank))
            }
            (false, None) => format!("{leaf} was added again at {}", place(again, rank)),
        };
        Some(Repeated { note, help: before.and_then(|(first, _)| self.mutual(first, again)) })
    }

    /// What to do where two operations each read what the other stores elsewhere, so that the second reads the first one's sum.
    fn mutual(&self, first: OpId, second: OpId) -> Option<&'static str> {
        let [first, second] = [first, second].map(|op| &self.program.ops[op.0 as usize]);
        let reads = |a: &Op, b: &Op| b.dests.iter().any(|dest| a.sources.iter().any(|s| s.overlaps(dest)));
        let apart = first.dests.iter().all(|a| second.dests.iter().all(|b| !a.overlaps(b)));
        let mutual = apart && reads(first, second) && reads(second, first);
        match (mutual, first.statement == second.statement) {
            (false, _) => None,
            (true, true) => {
                Some("for an exchange store both sums by one statement: `(p, q) = (p + q, p + q);`")
            }
            (true, false) => Some("where the sum is to be handed on as it is, copy it: `=` instead of `+=`"),
        }
    }

    /// Where inputs of other chunks than `chunk` joined those of `chunk` in a value, unless by `blamed`.
    pub(crate) fn mixed(&self, value: ValueId, chunk: u32, blamed: Option<OpId>) -> Option<String> {
        let weights = self.values.weigh(|leaf| leaf.chunk == chunk);
        let mixed = |v| (1..self.values.count(v)).contains(&weights.of(v));
        if !mixed(value) {
            return None;
        }
        let at = self.origin(value, mixed);
        self.maker(at, blamed).map(|place| format!("inputs of different chunks were combined at {place}"))
    }

    /// The innermost part of a value that is `bad` and has no bad part.
    fn origin(&self, value: ValueId, bad: impl Fn(ValueId) -> bool) -> ValueId {
        let mut at = value;
        while let Node::Sum(terms) = self.values.node(at)
            && let Some(inner) = terms.iter().find(|&term| bad(term))
        {
            at = inner;
        }
        at
    }

    fn maker(&self, value: ValueId, blamed: Option<OpId>) -> Option<String> {
        let (op, rank) = *self.makers.get(&value)?;
        (Some(op) != blamed).then(|| format!("{} on rank {}", self.program.at(op), rank.0))
    }
}

/// An input that was added more than once.
#[derive(Debug)]
pub(crate) struct Repeated {
    /// Where.
    pub(crate) note: String,
    /// What to do, where that follows.
    pub(crate) help: Option<&'static str>,
}

/// How a value got lost, the least telling first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Loss {
    /// An input that nobody used.
    UnreadInput,
    /// A sum that nobody used.
    UnreadSum,
    /// A value that was replaced before anybody used it.
    Overwritten,
}
