//! The history of every value in a run, to explain a wrong result: which values got lost, and where a sum went wrong.
//! Made only once something is wrong.

use crate::diagnostic::words;
use crate::program::ids::{Location, Rank};
use crate::program::kind::Contribution;
use crate::program::location::Locations;
use crate::program::{Op, OpId, Program};
use crate::values::inputs::Inputs;
use crate::values::replay::{ReplayObserver, replay};
use crate::values::{ChunkValues, ValueId, ValueNode, Values};
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;

/// The history of a run.
pub(crate) struct ValueHistory<'p> {
    program: &'p Program,
    values: Values,
    /// Values that nobody read, in the order in which they ended.
    unread: Vec<ValueVersion>,
    /// The operation and rank that made each sum first.
    makers: FxHashMap<ValueId, (OpId, Rank)>,
    told: FxHashSet<String>,
}

/// A value in a chunk, from its store to the next.
#[derive(Clone, Copy, Debug)]
struct ValueVersion {
    at: Location,
    value: ValueId,
    /// The operation that stored it; `None` for a value that was there at the beginning.
    made: Option<OpId>,
    /// The operation that overwrote it; `None` if it was there at the end.
    overwritten: Option<OpId>,
}

/// Gathers a history.
struct HistoryRecorder {
    locations: Locations,
    /// The version in each chunk, and whether it has been read.
    current: Vec<Option<(ValueVersion, bool)>>,
    unread: Vec<ValueVersion>,
    makers: FxHashMap<ValueId, (OpId, Rank)>,
}

impl ReplayObserver for HistoryRecorder {
    fn read(&mut self, _: OpId, chunks: Range<usize>, _: &[Option<ValueId>]) {
        for (_, read) in self.current[chunks].iter_mut().flatten() {
            *read = true;
        }
    }

    fn store(&mut self, op: OpId, chunks: Range<usize>, held: &[Option<ValueId>]) {
        for (index, value) in chunks.zip(held) {
            let (Some(at), Some(value)) = (self.locations.at(index), *value) else { continue };
            self.makers.entry(value).or_insert((op, at.rank));
            let version = ValueVersion { at, value, made: Some(op), overwritten: None };
            if let Some((before, false)) = self.current[index].replace((version, false)) {
                self.unread.push(ValueVersion { overwritten: Some(op), ..before });
            }
        }
    }
}

impl<'p> ValueHistory<'p> {
    /// Replays the program.
    pub(crate) fn new(program: &'p Program) -> ValueHistory<'p> {
        let mut values = Values::new(&program.shape);
        let initial = ChunkValues::initial(&program.shape, &values);
        let locations = *initial.locations();
        let current = locations
            .iter()
            .map(|at| {
                let value = initial.read(at)?;
                Some((ValueVersion { at, value, made: None, overwritten: None }, false))
            })
            .collect();
        let mut recording =
            HistoryRecorder { locations, current, unread: Vec::new(), makers: FxHashMap::default() };
        replay(program, &mut values, &mut recording);
        let mut unread = recording.unread;
        unread.extend(
            recording.current.iter().flatten().filter(|(_, read)| !read).map(|(version, _)| *version),
        );
        ValueHistory { program, values, unread, makers: recording.makers, told: FxHashSet::default() }
    }

    /// The values of the run.
    pub(crate) fn values(&self) -> &Values {
        &self.values
    }

    /// Says where the missing contributions of a chunk got lost: among the values that nobody read, the one with most of
    /// them. `blamed` stored the wrong value.
    pub(crate) fn lost(&self, missing: &[Contribution], blamed: Option<OpId>) -> Option<String> {
        let weights = self.values.weigh(|leaf| missing.contains(&leaf));
        let mut best: Option<(u64, Loss, ValueVersion)> = None;
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
    fn loss(&self, version: ValueVersion, blamed: Option<OpId>) -> Option<Loss> {
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
                ValueNode::Leaf(leaf) if missing.contains(&leaf) => Some(leaf.to_string()),
                _ => None,
            })
            .collect();
        format!("{} {} never read", words::list(&names), if names.len() == 1 { "was" } else { "were" })
    }

    fn fate(&self, version: ValueVersion) -> String {
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

    fn name(&self, version: ValueVersion) -> String {
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

    /// Says where the reduction of input chunk `chunk` was made first.
    pub(crate) fn made(&self, chunk: u32) -> Option<String> {
        let mut inputs = Inputs::default();
        let whole =
            |(value, _): &(&ValueId, &(OpId, Rank))| inputs.is_reduction(&self.values, **value, chunk);
        let (_, &(op, rank)) = self.makers.iter().filter(whole).min_by_key(|(_, maker)| **maker)?;
        let place = self.program.at(op);
        Some(format!("the whole reduction of input[..][{chunk}] was made at {place} on rank {}", rank.0))
    }

    /// Remembers a reason; returns true if it is a new one.
    pub(crate) fn tell(&mut self, reason: &str) -> bool {
        self.told.insert(reason.to_owned())
    }

    /// Says where an input that a value holds repeatedly came in, and where it was added again. `blamed` stored the value.
    pub(crate) fn repeated(
        &self,
        value: ValueId,
        leaf: Contribution,
        blamed: Option<OpId>,
    ) -> Option<Repeated> {
        let weights = self.values.weigh(|l| l == leaf);
        let at = self.origin(value, |v| weights.of(v) > 1);
        let (again, rank) = *self.makers.get(&at)?;
        let ValueNode::Sum(terms) = self.values.node(at) else { return None };
        let holds = |v| weights.of(v) > 0 && matches!(self.values.node(v), ValueNode::Sum(_));
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

    /// The help for two operations each of which reads what the other stores, so that the second reads the first one's sum.
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

    /// Says where inputs of other chunks than `chunk` joined those of `chunk` in a value, unless by `blamed`.
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
        while let ValueNode::Sum(terms) = self.values.node(at)
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
    /// The statements that added it.
    pub(crate) note: String,
    /// The help, if there is any.
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
