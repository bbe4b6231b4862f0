//! Values: what a chunk holds, as the *ordered* expression of the inputs it was combined from.
//!
//! Expressions are interned: equal ids mean the same inputs combined in the same order and grouping, hence the same
//! bits. Copies keep the value. Stage 1 replays a program over them, `translation` a schedule; with one [`Values`]
//! the ids of both are comparable.

use crate::ids::{Location, Rank};
use crate::kind::{Contribution, Shape};
use crate::location::Locations;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use rustc_hash::FxHasher;
use std::hash::Hasher;
use std::num::NonZeroU32;

/// A value in [`Values`]. Terms of a sum have smaller ids than the sum. (Its number plus one, so that an optional
/// value takes no more room: tables of them are as large as all buffers.)
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ValueId(NonZeroU32);

impl ValueId {
    fn new(number: u32) -> ValueId {
        ValueId(NonZeroU32::MIN.saturating_add(number))
    }

    /// Its place among all values: leaves come first, then the unknown value, then sums.
    pub(crate) fn number(self) -> u32 {
        self.0.get() - 1
    }
}

/// How a value is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Node<'v> {
    /// One rank's input chunk.
    Leaf(Contribution),
    /// The terms combined left to right, at least two.
    Sum(&'v [ValueId]),
    /// What a read of an unwritten chunk makes of everything it flows into.
    Unknown,
}

/// An arena of interned values.
#[derive(Clone, Debug)]
pub struct Values {
    ranks: u32,
    input_chunks: u32,
    sums: Sums,
    known: HashTable<ValueId>,
}

/// The sums, in the order in which they were made.
#[derive(Clone, Debug)]
struct Sums {
    /// The number of the first sum.
    first: u32,
    /// The terms of all, one sum after the other.
    terms: Vec<ValueId>,
    /// Where the terms of each sum end.
    ends: Vec<u32>,
    contents: Vec<Content>,
}

impl Sums {
    /// The terms of a sum.
    fn terms(&self, value: ValueId) -> &[ValueId] {
        let index = (value.number() - self.first) as usize;
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.terms[start as usize..self.ends[index] as usize]
    }
}

/// Sums that memory is taken for in advance, at most.
const RESERVED: usize = 1 << 21;

/// The multiset of input chunks in a value, in brief. Equal contents of fewer than 2^64 leaves mean equal multisets
/// but for a collision of 128-bit sums.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Content {
    /// Leaves, repeated ones counted each time; saturating.
    pub leaves: u64,
    /// The sums of the two halves of the leaves' hashes, each mod 2^64.
    pub digest: [u64; 2],
}

impl Content {
    /// The content of a combination of both.
    pub fn plus(self, other: Content) -> Content {
        let ([a, b], [c, d]) = (self.digest, other.digest);
        Content {
            leaves: self.leaves.saturating_add(other.leaves),
            digest: [a.wrapping_add(c), b.wrapping_add(d)],
        }
    }
}

impl Values {
    /// The values of a collective of this shape: its inputs alone.
    pub fn new(shape: &Shape) -> Values {
        let input_chunks = shape.kind.units(shape.ranks).0.saturating_mul(shape.chunks);
        let leaves = shape.ranks.saturating_mul(input_chunks);
        let first = leaves.saturating_add(1);
        let sums = Sums { first, terms: Vec::new(), ends: Vec::new(), contents: Vec::new() };
        Values { ranks: shape.ranks, input_chunks, sums, known: HashTable::new() }
    }

    /// Expects this many sums.
    pub(crate) fn reserve(&mut self, sums: usize) {
        let sums = sums.min(RESERVED);
        self.sums.ends.reserve(sums);
        self.sums.contents.reserve(sums);
        self.sums.terms.reserve(2 * sums);
        let Values { sums: made, known, .. } = self;
        known.reserve(sums, |&value| hash(made.terms(value)));
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
        if let [only] = terms {
            return *only;
        }
        if terms.is_empty() || terms.contains(&self.unknown()) {
            return self.unknown();
        }
        let sums = &mut self.sums;
        let known = hash(terms);
        let same = |&value: &ValueId| sums.terms(value) == terms;
        let place = match self.known.entry(known, same, |&value| hash(sums.terms(value))) {
            Entry::Occupied(known) => return *known.get(),
            Entry::Vacant(place) => place,
        };
        let value = ValueId::new(sums.first + sums.ends.len() as u32);
        place.insert(value);
        let content = terms.iter().fold(Content::default(), |sum, &term| sum.plus(content(sums, term)));
        sums.terms.extend_from_slice(terms);
        sums.ends.push(sums.terms.len() as u32);
        sums.contents.push(content);
        value
    }

    /// The value nothing is known of.
    pub fn unknown(&self) -> ValueId {
        ValueId::new(self.leaf_count())
    }

    /// How a value is made.
    pub fn node(&self, value: ValueId) -> Node<'_> {
        let number = value.number();
        match number.checked_sub(self.leaf_count()) {
            None => {
                let (rank, chunk) = (number / self.input_chunks, number % self.input_chunks);
                Node::Leaf(Contribution { rank: Rank(rank), chunk })
            }
            Some(0) => Node::Unknown,
            Some(_) => Node::Sum(self.sums.terms(value)),
        }
    }

    /// Every leaf, in the order of their numbers.
    pub(crate) fn leaves(&self) -> impl Iterator<Item = Contribution> {
        let chunks = self.input_chunks;
        (0..self.ranks)
            .flat_map(move |rank| (0..chunks).map(move |chunk| Contribution { rank: Rank(rank), chunk }))
    }

    /// The terms of every sum, in the order of their numbers.
    pub(crate) fn sums(&self) -> impl Iterator<Item = &[ValueId]> {
        let starts = std::iter::once(0).chain(self.sums.ends.iter().copied());
        starts.zip(&self.sums.ends).map(|(start, &end)| &self.sums.terms[start as usize..end as usize])
    }

    /// The inputs in a value, in brief.
    pub fn content(&self, value: ValueId) -> Content {
        content(&self.sums, value)
    }

    /// One of the inputs in a value: the first one combined. `None` of the unknown value.
    pub(crate) fn first_leaf(&self, value: ValueId) -> Option<Contribution> {
        let mut at = value;
        loop {
            match self.node(at) {
                Node::Leaf(leaf) => return Some(leaf),
                Node::Unknown => return None,
                Node::Sum(terms) => at = *terms.first()?,
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
                Node::Leaf(leaf) => leaves.push((leaf, n)),
                Node::Unknown => {}
                Node::Sum(terms) => {
                    for &term in terms {
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
        let count = self.sums.first + self.sums.ends.len() as u32;
        let mut weights = Weights(Vec::with_capacity(count as usize));
        for number in 0..count {
            weights.0.push(match self.node(ValueId::new(number)) {
                Node::Leaf(leaf) => u64::from(pick(leaf)),
                Node::Unknown => 0,
                Node::Sum(terms) => terms.iter().fold(0, |sum, &t| u64::saturating_add(sum, weights.of(t))),
            });
        }
        weights
    }
}

/// Where a sum is looked for. Operations combine neighbouring chunks, whose values have neighbouring numbers more often
/// than not: such sums are put side by side, since a table of millions is slow when it is touched at random. What they
/// have in common, the distances between the terms, is mixed; the highest bits, by which the table tells neighbours
/// apart, are the first term's.
fn hash(terms: &[ValueId]) -> u64 {
    let first = terms.first().map_or(0, |term| term.number());
    let mut distances = FxHasher::default();
    terms.iter().for_each(|term| distances.write_u32(term.number().wrapping_sub(first)));
    let place = distances.finish().wrapping_add(first.into());
    let tag = u64::from(first).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    place ^ (place ^ tag) >> 57 << 57
}

fn content(sums: &Sums, value: ValueId) -> Content {
    match (value.number() + 1).checked_sub(sums.first) {
        None => Content { leaves: 1, digest: mix(value.number()) },
        Some(0) => Content::default(),
        Some(i) => sums.contents[i as usize - 1],
    }
}

/// Numbers of picked leaves by value; from [`Values::weigh`].
pub(crate) struct Weights(Vec<u64>);

impl Weights {
    /// That of one value.
    pub(crate) fn of(&self, value: ValueId) -> u64 {
        self.0[value.number() as usize]
    }
}

/// 128 well-mixed bits of a leaf: two rounds of splitmix64 (Steele, Lea, Flood 2014) from different seeds.
fn mix(leaf: u32) -> [u64; 2] {
    let round = |seed: u64| {
        let mut x = (u64::from(leaf) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(seed);
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    };
    [round(0), round(0x6a09_e667_f3bc_c909)]
}

/// What every chunk of every rank holds at a point of a run.
#[derive(Clone, Debug)]
pub struct State {
    locations: Locations,
    values: Vec<Option<ValueId>>,
}

impl State {
    /// What the chunks hold when the call begins.
    pub fn initial(shape: &Shape, values: &Values) -> State {
        let locations = Locations::new(shape);
        let mut state = State { locations, values: vec![None; locations.len()] };
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

    /// What a chunk holds; `None` where nothing has been written, and outside the buffers.
    pub fn read(&self, at: Location) -> Option<ValueId> {
        self.values[self.locations.index(at)?]
    }

    /// Stores a value. Outside the buffers nothing happens: slices are judged before they are replayed.
    pub fn store(&mut self, at: Location, value: ValueId) {
        if let Some(index) = self.locations.index(at) {
            self.values[index] = Some(value);
        }
    }

    /// What the chunks hold, by their numbers.
    pub(crate) fn held(&mut self) -> &mut [Option<ValueId>] {
        &mut self.values
    }

    /// The numbering of the chunks.
    pub fn locations(&self) -> &Locations {
        &self.locations
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::Kind;

    fn values(ranks: u32, chunks: u32) -> (Values, impl Fn(u32, u32) -> Contribution) {
        let shape = Shape::new(Kind::AllReduce, ranks, chunks);
        (Values::new(&shape), |rank, chunk| Contribution { rank: Rank(rank), chunk })
    }

    #[test]
    fn order_and_grouping_distinguish_values_but_not_contents() {
        let (mut values, leaf) = values(3, 2);
        let [a, b, c] = [0, 1, 2].map(|r| values.intern_leaf(leaf(r, 1)));
        let ab = values.intern_sum(&[a, b]);
        let ba = values.intern_sum(&[b, a]);
        let abc = values.intern_sum(&[a, b, c]);
        let ab_c = values.intern_sum(&[ab, c]);
        assert_eq!(values.intern_sum(&[a, b]), ab);
        assert!(ab != ba && abc != ab_c);
        assert_eq!(values.content(ab), values.content(ba));
        assert_eq!(values.content(abc), values.content(ab_c));
        assert_ne!(values.content(ab), values.content(abc));
        assert_eq!(values.intern_sum(&[c]), c);
        assert_eq!(values.node(ab_c), Node::Sum(&[ab, c]));
        assert_eq!(values.node(c), Node::Leaf(leaf(2, 1)));
    }

    #[test]
    fn repeated_doubling_neither_overflows_nor_looks_right() {
        let (mut values, leaf) = values(2, 1);
        let one = values.intern_leaf(leaf(0, 0));
        let mut doubled = one;
        for _ in 0..200 {
            doubled = values.intern_sum(&[doubled, doubled]);
        }
        // 2^200 leaves: the digest wraps to 0, the count does not.
        let with = values.intern_sum(&[doubled, one]);
        assert_eq!(values.content(with).digest, values.content(one).digest);
        assert_ne!(values.content(with), values.content(one));
        assert_eq!(values.contributions(with), [(leaf(0, 0), u64::MAX)]);
    }

    #[test]
    fn unknown_taints_sums() {
        let (mut values, leaf) = values(2, 1);
        let (a, unknown) = (values.intern_leaf(leaf(1, 0)), values.unknown());
        assert_eq!(values.intern_sum(&[a, unknown]), unknown);
        assert_eq!(values.intern_leaf(leaf(2, 0)), unknown);
        assert_eq!(values.intern_leaf(leaf(0, 1)), unknown);
    }
}
