//! Values: what a chunk holds, as the *ordered* expression of the inputs it was combined from.
//!
//! Expressions are interned: equal ids mean the same inputs combined in the same order and grouping, hence the same
//! bits. Copies keep the value. Stage 1 replays a program over them, `translation` a schedule; with one [`Values`]
//! the ids of both are comparable.
//!
//! Operations combine ranges of chunks, whose values have consecutive numbers more often than not. So sums are kept in
//! runs: consecutive sums, each of whose terms are consecutive values of one run too. A run takes the room of one sum,
//! and what is known of one of its sums is known of all.

pub(crate) mod inputs;
mod expression;
pub mod order;
pub mod replay;
pub mod scale;
pub(crate) mod switch;

use crate::program::ids::{Location, Rank};
use crate::program::kind::{Contribution, Shape};
use crate::program::location::Locations;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use rustc_hash::FxHasher;
use std::collections::BTreeMap;
use std::hash::Hasher;
use std::num::NonZeroU32;

/// A value in [`Values`]. Terms of a sum have smaller ids than the sum. (Its number plus one, so that an optional
/// value takes no more room: tables of them are as large as all buffers.)
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ValueId(NonZeroU32);

/// The state at the end of a program that stage 1 accepted, and its values.
#[derive(Debug)]
pub(crate) struct Contents {
    pub(crate) values: Values,
    pub(crate) state: ChunkValues,
}

impl ValueId {
    fn new(number: u32) -> ValueId {
        ValueId(NonZeroU32::MIN.saturating_add(number))
    }

    /// Its place among all values: leaves come first, then the unknown value, then sums.
    pub(crate) fn number(self) -> u32 {
        self.0.get() - 1
    }

    /// The value that many numbers further.
    pub(crate) fn further(self, by: u32) -> ValueId {
        ValueId(self.0.saturating_add(by))
    }
}

/// How a value is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ValueNode<'v> {
    /// One rank's input chunk.
    Leaf(Contribution),
    /// The terms combined left to right, at least two.
    Sum(Terms<'v>),
    /// The unknown value: that of an unwritten chunk, and of all that is made of it.
    Unknown,
}

/// The terms of a sum, in order.
#[derive(Clone, Copy, Debug)]
pub struct Terms<'v> {
    /// Those of the run's first sum.
    first: &'v [ValueId],
    /// How far the sum is from that one.
    by: u32,
}

impl<'v> Terms<'v> {
    /// Each.
    pub fn iter(self) -> impl DoubleEndedIterator<Item = ValueId> + ExactSizeIterator + 'v {
        self.first.iter().map(move |term| term.further(self.by))
    }
}

impl PartialEq for Terms<'_> {
    fn eq(&self, other: &Terms<'_>) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Terms<'_> {}

/// An arena of interned values.
#[derive(Clone, Debug)]
pub struct Values {
    ranks: u32,
    input_chunks: u32,
    sums: Sums,
    /// The runs whose distances between terms no earlier run has: each stands for the class of those that have the same.
    /// Within a class the runs' first terms are disjoint ranges.
    classes: HashTable<u32>,
    /// The later runs of each class, by the class and the first term of the run's first sum.
    others: BTreeMap<(u32, ValueId), u32>,
}

/// The sums, in the order in which they were made.
#[derive(Clone, Debug)]
struct Sums {
    /// The number of the first sum.
    first: u32,
    /// The run of each.
    run: Vec<u32>,
    runs: Vec<SumRun>,
    /// The terms of each run's first sum, one run after the other.
    terms: Vec<ValueId>,
}

/// Consecutive sums. The terms of the first one, each shifted by i, are those of the i-th.
#[derive(Clone, Copy, Debug)]
struct SumRun {
    first: ValueId,
    len: u32,
    /// The first run that has the same distances between terms.
    class: u32,
    /// The end of its terms in [`Sums::terms`].
    end: u32,
    /// Inputs in each of the sums, repeated ones counted each time; saturating.
    inputs: u64,
}

impl Sums {
    /// The terms of a run's first sum.
    fn terms(&self, run: u32) -> &[ValueId] {
        let start = run.checked_sub(1).map_or(0, |before| self.runs[before as usize].end);
        &self.terms[start as usize..self.runs[run as usize].end as usize]
    }

    /// The first term of a run's first sum.
    fn begin(&self, run: u32) -> ValueId {
        self.terms(run)[0]
    }

    /// The run of a sum, and its place there; none of other values.
    fn place(&self, value: ValueId) -> Option<(u32, u32)> {
        let run = self.run[value.number().checked_sub(self.first)? as usize];
        Some((run, value.number() - self.runs[run as usize].first.number()))
    }

    /// How many values there are from this one to the end of its run; all leaves are one run, the unknown value another.
    fn left(&self, value: ValueId) -> u32 {
        match self.place(value) {
            Some((run, by)) => self.runs[run as usize].len - by,
            None => (self.first - 1 - value.number()).max(1),
        }
    }

    fn count(&self, value: ValueId) -> u64 {
        match self.place(value) {
            Some((run, _)) => self.runs[run as usize].inputs,
            None => u64::from(value.number() + 1 < self.first),
        }
    }

    /// Returns the value of the run's sum with this first term, and how many of the next `len` sums the run has; `None` if it
    /// does not have that sum.
    fn piece(&self, run: u32, begin: ValueId, len: u32) -> Option<(ValueId, u32)> {
        let by = begin.number().checked_sub(self.begin(run).number())?;
        let SumRun { first, len: there, .. } = self.runs[run as usize];
        (by < there).then(|| (first.further(by), len.min(there - by)))
    }

    /// Makes a run, of a class that has others.
    fn push(&mut self, terms: &[ValueId], len: u32, class: Option<u32>) -> u32 {
        let run = self.runs.len() as u32;
        let first = self.next();
        let inputs = terms.iter().fold(0, |sum, &term| u64::saturating_add(sum, self.count(term)));
        self.terms.extend_from_slice(terms);
        let (class, end) = (class.unwrap_or(run), self.terms.len() as u32);
        self.runs.push(SumRun { first, len, class, end, inputs });
        self.run.resize(self.run.len() + len as usize, run);
        run
    }

    /// The next sum to be made.
    fn next(&self) -> ValueId {
        ValueId::new(self.first + self.run.len() as u32)
    }

    /// Adds sums to the last run, if the first has these terms, is of this class, and continues the run: each of its
    /// terms follows that of the run's last sum, in the same run.
    fn extend(&mut self, terms: &[ValueId], len: u32, class: u32) -> bool {
        let Some(last) = self.runs.len().checked_sub(1) else { return false };
        let SumRun { len: before, class: its, .. } = self.runs[last];
        let follows = |term: &ValueId| self.left(term.further(before - 1)) > 1;
        let first = self.terms(last as u32);
        let continues = class == its && first[0].further(before) == terms[0] && first.iter().all(follows);
        if continues {
            self.runs[last].len += len;
            self.run.resize(self.run.len() + len as usize, last as u32);
        }
        continues
    }
}

/// Sums that memory is taken for in advance, at most.
const RESERVED: usize = 1 << 21;

impl Values {
    /// The values of a collective of this shape: its inputs alone.
    pub fn new(shape: &Shape) -> Values {
        let input_chunks = shape.kind.units(shape.ranks).0.saturating_mul(shape.chunks);
        let leaves = shape.ranks.saturating_mul(input_chunks);
        let first = leaves.saturating_add(1);
        let sums = Sums { first, run: Vec::new(), runs: Vec::new(), terms: Vec::new() };
        let (classes, others) = (HashTable::new(), BTreeMap::new());
        Values { ranks: shape.ranks, input_chunks, sums, classes, others }
    }

    /// Expects this many runs, with this many sums in all.
    pub(crate) fn reserve(&mut self, runs: usize, sums: usize) {
        let [runs, sums] = [runs, sums].map(|count| count.min(RESERVED));
        self.sums.run.reserve(sums);
        self.sums.runs.reserve(runs);
        self.sums.terms.reserve(2 * runs);
        let Values { sums: made, classes, .. } = self;
        classes.reserve(runs, |&class| hash(made.terms(class)));
    }

    /// Leaves have the numbers below this; it is itself the number of the unknown value, sums follow.
    fn leaf_count(&self) -> u32 {
        self.sums.first - 1
    }

    /// One rank's input chunk; one that the shape does not have is unknown.
    pub fn intern_leaf(&self, leaf: Contribution) -> ValueId {
        if leaf.rank.0 < self.ranks && leaf.chunk < self.input_chunks {
            ValueId::new(leaf.rank.0 * self.input_chunks + leaf.chunk)
        } else {
            self.unknown()
        }
    }

    /// The terms combined left to right with one rounding at the end: a single term is a copy and keeps its id, an
    /// unknown term makes the whole unknown, as no term at all does.
    pub fn intern_sum(&mut self, terms: &[ValueId]) -> ValueId {
        self.intern_sums(terms, 1).0
    }

    /// As [`Values::intern_sum`], of `len` sums (at least one), each of the terms that follow those of the one before.
    /// Returns the first, and of how many sums the values are that one and those that follow it: at least one, at most
    /// `len`.
    pub(crate) fn intern_sums(&mut self, terms: &[ValueId], len: u32) -> (ValueId, u32) {
        if let [only] = terms {
            return (*only, len);
        }
        if terms.is_empty() || terms.contains(&self.unknown()) {
            return (self.unknown(), 1);
        }
        let sums = &mut self.sums;
        let len = terms.iter().fold(len, |len, &term| len.min(sums.left(term)));
        let same = |&class: &u32| same_distances(sums.terms(class), terms);
        let class = match self.classes.entry(hash(terms), same, |&class| hash(sums.terms(class))) {
            Entry::Occupied(class) => *class.get(),
            Entry::Vacant(class) => {
                let value = sums.next();
                class.insert(sums.push(terms, len, None));
                return (value, len);
            }
        };
        let begin = terms[0];
        let mine = |other: &(&(u32, ValueId), &u32)| other.0.0 == class;
        let before = self.others.range(..=(class, begin)).next_back().filter(mine);
        let known = sums.piece(class, begin, len);
        if let Some(piece) = known.or_else(|| sums.piece(*before?.1, begin, len)) {
            return piece;
        }
        // The sums up to the next known one of the class are new.
        let after = self.others.range((class, begin)..).next().filter(mine);
        let known = [Some(sums.begin(class)), after.map(|(&(_, begin), _)| begin)];
        let ahead = known.into_iter().flatten().filter_map(|next| next.number().checked_sub(begin.number()));
        let len = ahead.fold(len, u32::min);
        let value = sums.next();
        if !sums.extend(terms, len, class) {
            self.others.insert((class, begin), sums.push(terms, len, Some(class)));
        }
        (value, len)
    }

    /// The value nothing is known of.
    pub fn unknown(&self) -> ValueId {
        ValueId::new(self.leaf_count())
    }

    /// How a value is made.
    pub fn node(&self, value: ValueId) -> ValueNode<'_> {
        let number = value.number();
        match self.sums.place(value) {
            Some((run, by)) => ValueNode::Sum(Terms { first: self.sums.terms(run), by }),
            None if number == self.leaf_count() => ValueNode::Unknown,
            None => {
                let (rank, chunk) = (number / self.input_chunks, number % self.input_chunks);
                ValueNode::Leaf(Contribution { rank: Rank(rank), chunk })
            }
        }
    }

    /// How many leaves each rank has; theirs follow those of the rank before.
    pub(crate) fn leaves(&self) -> impl Iterator<Item = (Rank, u32)> {
        (0..self.ranks).map(|rank| (Rank(rank), self.input_chunks))
    }

    /// Every sum in the order of their numbers, by runs: the terms of a run's first sum, and how many sums it has; the
    /// terms of each of these follow those of the one before.
    pub(crate) fn runs(&self) -> impl Iterator<Item = (&[ValueId], u32)> {
        self.sums.runs.iter().zip(0..).map(|(run, number)| (self.sums.terms(number), run.len))
    }

    /// Returns how many inputs are in a value, repeated ones counted each time; saturating.
    pub fn count(&self, value: ValueId) -> u64 {
        self.sums.count(value)
    }

    /// One of the inputs in a value: the first one combined. `None` of the unknown value.
    pub(crate) fn first_leaf(&self, value: ValueId) -> Option<Contribution> {
        let mut at = value;
        loop {
            match self.node(at) {
                ValueNode::Leaf(leaf) => return Some(leaf),
                ValueNode::Unknown => return None,
                ValueNode::Sum(terms) => at = terms.iter().next()?,
            }
        }
    }

    /// The inputs in a value exactly, ascending, each with how often (saturating). For messages: linear in the
    /// expression's distinct parts.
    pub fn contributions(&self, value: ValueId) -> Vec<(Contribution, u64)> {
        let mut often = std::collections::BTreeMap::from([(value, 1_u64)]);
        let mut leaves = Vec::new();
        // Terms have smaller ids than their sum, so the largest one left has been reached on all its ways.
        while let Some((at, n)) = often.pop_last() {
            match self.node(at) {
                ValueNode::Leaf(leaf) => leaves.push((leaf, n)),
                ValueNode::Unknown => {}
                ValueNode::Sum(terms) => {
                    for term in terms.iter() {
                        let sum = often.entry(term).or_insert(0);
                        *sum = sum.saturating_add(n);
                    }
                }
            }
        }
        leaves.reverse();
        leaves
    }

    /// For every value (see [`Weights::of`]) how many of its leaves satisfy `pick`, repeated ones counted each time.
    pub(crate) fn weigh(&self, pick: impl Fn(Contribution) -> bool) -> Weights {
        let count = self.sums.first + self.sums.run.len() as u32;
        let mut weights = Weights(Vec::with_capacity(count as usize));
        for number in 0..count {
            weights.0.push(match self.node(ValueId::new(number)) {
                ValueNode::Leaf(leaf) => u64::from(pick(leaf)),
                ValueNode::Unknown => 0,
                ValueNode::Sum(terms) => {
                    terms.iter().fold(0, |sum, t| u64::saturating_add(sum, weights.of(t)))
                }
            });
        }
        weights
    }
}

/// Of what is the same for all runs of a class, the distances from the first term to each.
fn hash(terms: &[ValueId]) -> u64 {
    let mut hasher = FxHasher::default();
    distances(terms).for_each(|distance| hasher.write_u32(distance));
    hasher.finish()
}

fn distances(terms: &[ValueId]) -> impl Iterator<Item = u32> {
    let first = terms.first().map_or(0, |first| first.number());
    terms.iter().skip(1).map(move |term| term.number().wrapping_sub(first))
}

fn same_distances(some: &[ValueId], others: &[ValueId]) -> bool {
    distances(some).eq(distances(others))
}

/// Numbers of picked leaves by value; from [`Values::weigh`].
pub(crate) struct Weights(Vec<u64>);

impl Weights {
    /// That of one value.
    pub(crate) fn of(&self, value: ValueId) -> u64 {
        self.0[value.number() as usize]
    }
}

/// The values of all chunks of all ranks at a point of a run.
#[derive(Clone, Debug)]
pub struct ChunkValues {
    locations: Locations,
    values: Vec<Option<ValueId>>,
}

impl ChunkValues {
    /// Returns the state when the call begins.
    pub fn initial(shape: &Shape, values: &Values) -> ChunkValues {
        let locations = Locations::new(shape);
        let mut state = ChunkValues { locations, values: vec![None; locations.len()] };
        for rank in (0..shape.ranks).map(Rank) {
            let first = locations.index(shape.input_location(rank, 0));
            let Some(first) = first.filter(|_| shape.input_chunks(rank) > 0) else { continue };
            let held = state.values[first..].iter_mut().take(shape.input_chunks(rank) as usize);
            for (held, chunk) in held.zip(0..) {
                *held = Some(values.intern_leaf(Contribution { rank, chunk }));
            }
        }
        state
    }

    /// Returns the value of a chunk; `None` where nothing has been written, and outside the buffers.
    pub fn read(&self, at: Location) -> Option<ValueId> {
        self.values[self.locations.index(at)?]
    }

    /// Returns true if a rank's output has, and must have, the same values as the previous rank's. Then what was found for
    /// that one holds for this one.
    pub(crate) fn repeats(&self, shape: &Shape, rank: Rank) -> bool {
        let output = |rank: Rank| {
            let first = self.locations.index(shape.output_location(rank, 0))?;
            self.values.get(first..first + shape.output_chunks(rank) as usize)
        };
        let before = rank.0.checked_sub(1).filter(|_| shape.expects_alike());
        before.is_some_and(|before| output(Rank(before)) == output(rank))
    }

    /// Stores a value. Outside the buffers nothing happens: slices are judged before they are replayed.
    pub fn store(&mut self, at: Location, value: ValueId) {
        if let Some(index) = self.locations.index(at) {
            self.values[index] = Some(value);
        }
    }

    /// Returns the values of the chunks, by their numbers.
    pub(crate) fn held(&mut self) -> &mut [Option<ValueId>] {
        &mut self.values
    }

    /// The numbering of the chunks.
    pub fn locations(&self) -> &Locations {
        &self.locations
    }
}

#[cfg(test)]
mod tests;
