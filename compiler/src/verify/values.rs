//! Values: what a chunk holds, as the *ordered* expression of the inputs it was combined from.
//!
//! Expressions are interned: equal ids mean the same inputs combined in the same order and grouping, hence the same
//! bits. Copies keep the value. Stage 1 replays a program over them, `translation` a schedule; with one [`Values`]
//! the ids of both are comparable.

use crate::ids::{Location, Rank};
use crate::kind::{Contribution, Shape};
use crate::location::Locations;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// A value in [`Values`]. Terms of a sum have smaller ids than the sum.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ValueId(u32);

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
    sums: Vec<Sum>,
    known: FxHashMap<Terms, ValueId>,
}

type Terms = SmallVec<[ValueId; 2]>;

#[derive(Clone, Debug)]
struct Sum {
    terms: Terms,
    content: Content,
}

/// The multiset of input chunks in a value, in brief. Equal contents of fewer than 2^64 leaves mean equal multisets
/// but for a collision of 128-bit sums.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Content {
    /// Leaves, repeated ones counted each time; saturating.
    pub leaves: u64,
    /// The sum of the leaves' hashes, mod 2^128.
    pub digest: u128,
}

impl Content {
    /// The content of a combination of both.
    pub fn plus(self, other: Content) -> Content {
        Content {
            leaves: self.leaves.saturating_add(other.leaves),
            digest: self.digest.wrapping_add(other.digest),
        }
    }
}

impl Values {
    /// The values of a collective of this shape: its inputs alone.
    pub fn new(shape: &Shape) -> Values {
        Values {
            ranks: shape.ranks,
            input_chunks: shape.kind.units(shape.ranks).0.saturating_mul(shape.chunks),
            sums: Vec::new(),
            known: FxHashMap::default(),
        }
    }

    /// Leaves have the ids below this; it is itself the id of the unknown value, sums follow.
    fn leaf_count(&self) -> u32 {
        self.ranks.saturating_mul(self.input_chunks)
    }

    /// One rank's input chunk; one that the shape does not have is unknown.
    pub fn intern_leaf(&self, leaf: Contribution) -> ValueId {
        if leaf.rank.0 < self.ranks && leaf.chunk < self.input_chunks {
            ValueId(leaf.rank.0 * self.input_chunks + leaf.chunk)
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
        if let Some(&known) = self.known.get(terms) {
            return known;
        }
        let content = terms.iter().fold(Content::default(), |sum, &term| sum.plus(self.content(term)));
        let id = ValueId(self.leaf_count() + 1 + self.sums.len() as u32);
        let terms = Terms::from_slice(terms);
        self.known.insert(terms.clone(), id);
        self.sums.push(Sum { terms, content });
        id
    }

    /// The value nothing is known of.
    pub fn unknown(&self) -> ValueId {
        ValueId(self.leaf_count())
    }

    /// How a value is made.
    pub fn node(&self, value: ValueId) -> Node<'_> {
        match value.0.checked_sub(self.leaf_count()) {
            None => {
                let (rank, chunk) = (value.0 / self.input_chunks, value.0 % self.input_chunks);
                Node::Leaf(Contribution { rank: Rank(rank), chunk })
            }
            Some(0) => Node::Unknown,
            Some(i) => Node::Sum(&self.sums[i as usize - 1].terms),
        }
    }

    /// The inputs in a value, in brief.
    pub fn content(&self, value: ValueId) -> Content {
        match value.0.checked_sub(self.leaf_count()) {
            None => Content { leaves: 1, digest: mix(value.0) },
            Some(0) => Content::default(),
            Some(i) => self.sums[i as usize - 1].content,
        }
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
        let mut weights = Weights(Vec::with_capacity(self.leaf_count() as usize + 1 + self.sums.len()));
        for id in 0..self.leaf_count() + 1 + self.sums.len() as u32 {
            weights.0.push(match self.node(ValueId(id)) {
                Node::Leaf(leaf) => u64::from(pick(leaf)),
                Node::Unknown => 0,
                Node::Sum(terms) => terms.iter().fold(0, |sum, &t| u64::saturating_add(sum, weights.of(t))),
            });
        }
        weights
    }
}

/// Numbers of picked leaves by value; from [`Values::weigh`].
pub(crate) struct Weights(Vec<u64>);

impl Weights {
    /// That of one value.
    pub(crate) fn of(&self, value: ValueId) -> u64 {
        self.0[value.0 as usize]
    }
}

/// 128 well-mixed bits of a leaf: two rounds of splitmix64 (Steele, Lea, Flood 2014) from different seeds.
fn mix(leaf: u32) -> u128 {
    let round = |seed: u64| {
        let mut x = (u64::from(leaf) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(seed);
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    };
    u128::from(round(0)) << 64 | u128::from(round(0x6a09_e667_f3bc_c909))
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
        for (held, at) in state.values.iter_mut().zip(locations.iter()) {
            *held = shape.initial(at).map(|leaf| values.intern_leaf(leaf));
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
