//! `translation`: the schedule does not compute its program. Its moves are replayed over the same values, in an order
//! that the waits allow; without races every such order gives the same.

use super::happens_before::{BlockKnowledge, StepStamp, WalkObserver};
use super::site::Sites;
use crate::diagnostic::words;
use crate::diagnostic::{Check, Diagnostic, Loc};
use crate::program::Program;
use crate::program::ids::{Buffer, Location};
use crate::program::kind::Contribution;
use crate::program::location::LocationTable;
use crate::schedule::{Action, FifoMessage, Operand, Step};
use crate::values::replay::final_state;
use crate::values::{ChunkValues, ValueId, ValueNode, Values};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Inputs up to which a value is shown as it is combined.
const SHOWN: u64 = 8;

/// Replays the schedule.
pub(super) struct Translation {
    values: Values,
    state: ChunkValues,
    stored: LocationTable<Option<StepStamp>>,
    /// The position of what lies in each chunk of scratch; as a step has it that stored there.
    positions: FxHashMap<Location, u32>,
    /// The value that each message holds, and its position.
    messages: FxHashMap<FifoMessage, (ValueId, u32)>,
    chunks: u32,
    divisible: bool,
}

impl Translation {
    pub(super) fn new(program: &Program) -> Translation {
        let values = Values::new(&program.shape);
        let state = ChunkValues::initial(&program.shape, &values);
        Translation {
            values,
            state,
            stored: LocationTable::new(&program.shape, None),
            positions: FxHashMap::default(),
            messages: FxHashMap::default(),
            chunks: program.shape.chunks,
            divisible: program.divisible,
        }
    }

    /// Compares every output chunk with the program's: same inputs, same order and grouping. One finding a statement.
    pub(super) fn findings(mut self, sites: &Sites<'_>) -> Vec<Diagnostic> {
        let program = sites.program;
        let wanted = final_state(program, &mut self.values);
        let mut groups: BTreeMap<Loc, (Location, Option<StepStamp>, u64)> = BTreeMap::new();
        for (rank, chunk) in program.shape.outputs() {
            let at = program.shape.output_location(rank, chunk);
            if wanted.read(at) == self.state.read(at) {
                continue;
            }
            let stored = self.stored.get_mut(at).and_then(|s| *s);
            let loc = stored.map_or(program.name_loc, |stamp| sites.loc(stamp));
            groups.entry(loc).and_modify(|(_, _, more)| *more += 1).or_insert((at, stored, 0));
        }
        let describe = |(loc, (at, stored, more)): (Loc, (Location, Option<StepStamp>, u64))| {
            let (is, should) = (self.state.read(at), wanted.read(at));
            let message = format!(
                "the schedule leaves {} in {at}, the program {}",
                held(&self.values, is),
                held(&self.values, should)
            );
            let mut finding = Diagnostic::new(Check::Translation, loc, message);
            finding
                .notes
                .extend(is.zip(should).and_then(|(is, should)| difference(&self.values, is, should)));
            finding = match stored {
                Some(stamp) => finding.note(format!("{} stores it last", sites.name(stamp))),
                None => finding.note("no step of the schedule stores it"),
            };
            if more == 0 {
                finding
            } else {
                finding.note(format!("{} likewise", words::count(more, "more chunk")))
            }
        };
        groups.into_iter().map(describe).collect()
    }
}

impl Translation {
    /// Adds the values that a move of chunks at `position` reads of an operand's chunk, rank by rank. A slot or chunk of
    /// scratch that holds a chunk of another size is unknown.
    fn read(&self, source: &Operand, offset: u32, position: u32, terms: &mut Vec<ValueId>) {
        if let Operand::Message(message) = source {
            let held = self.messages.get(message).filter(|(_, held)| self.divisible || *held == position);
            terms.push(held.map_or(self.values.unknown(), |(value, _)| *value));
        }
        for at in source.slices().map(|slice| slice.at(offset)) {
            let other_size = at.buffer == Buffer::Scratch
                && !self.divisible
                && self.positions.get(&at).is_some_and(|stored| *stored != position);
            terms.push(self.state.read(at).filter(|_| !other_size).unwrap_or(self.values.unknown()));
        }
    }
}

/// A value in words: as it is combined, if it is short.
fn held(values: &Values, value: Option<ValueId>) -> String {
    let Some(value) = value else { return "nothing".to_owned() };
    match (values.count(value), values.node(value)) {
        (0, _) => "what was read from a chunk that held nothing".to_owned(),
        (1..=SHOWN, ValueNode::Sum(terms)) => {
            let term = |term: ValueId| match values.node(term) {
                ValueNode::Sum(_) => format!("({})", held(values, Some(term))),
                _ => held(values, Some(term)),
            };
            terms.iter().map(term).collect::<Vec<_>>().join(" + ")
        }
        (_, ValueNode::Leaf(leaf)) => leaf.to_string(),
        (n, _) => format!("a combination of {n} inputs"),
    }
}

/// In what one value differs from the one that it should be.
fn difference(values: &Values, is: ValueId, should: ValueId) -> Option<String> {
    let single = |value| !matches!(values.node(value), ValueNode::Sum(_));
    if single(is) && single(should) || [is, should].contains(&values.unknown()) {
        return None;
    }
    let (held, due) = (values.contributions(is), values.contributions(should));
    let beyond = |some: &[(Contribution, u64)], others: &[(Contribution, u64)]| -> Vec<String> {
        let others: BTreeMap<_, _> = others.iter().copied().collect();
        let more = some.iter().filter(|(leaf, n)| *n > others.get(leaf).copied().unwrap_or(0));
        more.map(|(leaf, _)| leaf.to_string()).collect()
    };
    let (lacks, surplus) = (beyond(&due, &held), beyond(&held, &due));
    Some(match (&lacks[..], &surplus[..]) {
        ([], []) => "the inputs are the same, but another order of combination rounds otherwise".to_owned(),
        (lacks, []) => format!("{} is missing", words::list(lacks)),
        ([], surplus) => format!("{} is too much", words::list(surplus)),
        (lacks, surplus) => {
            format!("{} is missing, and {} is too much", words::list(lacks), words::list(surplus))
        }
    })
}

impl WalkObserver for Translation {
    fn moved(&mut self, at: StepStamp, step: &Step, _: &BlockKnowledge) {
        let Action::Move { sources, dests, position } = &step.action else { return };
        for offset in 0..sources.first().map_or(0, Operand::len) {
            let position = (position + offset) % self.chunks;
            let mut terms = Vec::new();
            sources.iter().for_each(|source| self.read(source, offset, position, &mut terms));
            let value = self.values.intern_sum(&terms);
            for message in dests.iter().filter_map(Operand::message) {
                self.messages.insert(*message, (value, position));
            }
            for dest in dests.iter().flat_map(Operand::slices) {
                self.state.store(dest.at(offset), value);
                if dest.buffer == Buffer::Scratch {
                    self.positions.insert(dest.at(offset), position);
                }
                if let Some(stored) = self.stored.get_mut(dest.at(offset)) {
                    *stored = Some(at);
                }
            }
        }
    }
}
