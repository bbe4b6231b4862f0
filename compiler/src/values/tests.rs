use super::inputs::Inputs;
use super::*;
use crate::program::kind::Kind;
use crate::values::replay::{Ranges, combine};
use proptest::prelude::*;
use rustc_hash::FxHashMap;
use std::ops::Range;

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
    let mut inputs = Inputs::default();
    for value in [ab, ba] {
        assert!(inputs.is_combination(&values, value, &[leaf(1, 1), leaf(0, 1)]));
        assert!(!inputs.is_combination(&values, value, &[leaf(1, 1), leaf(2, 1)]));
        assert!(!inputs.is_reduction(&values, value, 1));
    }
    for value in [abc, ab_c] {
        assert!(inputs.is_reduction(&values, value, 1));
        assert!(!inputs.is_reduction(&values, value, 0));
    }
    assert_eq!(values.intern_sum(&[c]), c);
    assert_eq!(values.node(ab_c), ValueNode::Sum(Terms { first: &[ab, c], by: 0 }));
    assert_eq!(values.node(c), ValueNode::Leaf(leaf(2, 1)));
}

#[test]
fn repeated_doubling_does_not_overflow() {
    let (mut values, leaf) = values(2, 1);
    let one = values.intern_leaf(leaf(0, 0));
    let mut doubled = one;
    for _ in 1..=200 {
        doubled = values.intern_sum(&[doubled, doubled]);
        assert!(!Inputs::default().is_combination(&values, doubled, &[leaf(0, 0), leaf(1, 0)]));
    }
    let with = values.intern_sum(&[doubled, one]);
    assert_eq!(values.count(with), u64::MAX);
    assert_eq!(values.contributions(with), [(leaf(0, 0), u64::MAX)]);
}

/// Values that count as many inputs as a reduction, and are none: an input is missing and another one is there twice.
#[test]
fn a_reduction_is_one_by_its_inputs_and_not_by_their_number() {
    let (mut values, leaf) = values(64, 3);
    for (missing, twice) in (0..64).flat_map(|missing| (0..64).map(move |twice| (missing, twice))) {
        let ranks = (0..64).map(|rank| if rank == missing { twice } else { rank });
        let terms: Vec<_> = ranks.map(|rank| values.intern_leaf(leaf(rank, 1))).collect();
        let value = values.intern_sum(&terms);
        let mut inputs = Inputs::default();
        assert_eq!(inputs.is_reduction(&values, value, 1), missing == twice, "{missing} {twice}");
        let due: Vec<_> = (0..64).map(|rank| leaf(rank, 1)).collect();
        assert_eq!(inputs.is_combination(&values, value, &due), missing == twice, "{missing} {twice}");
    }
}

#[test]
fn unknown_taints_sums() {
    let (mut values, leaf) = values(2, 1);
    let (a, unknown) = (values.intern_leaf(leaf(1, 0)), values.unknown());
    assert_eq!(values.intern_sum(&[a, unknown]), unknown);
    assert_eq!(values.intern_leaf(leaf(2, 0)), unknown);
    assert_eq!(values.intern_leaf(leaf(0, 1)), unknown);
    assert_eq!(values.intern_sums(&[unknown, a], 3), (unknown, 1));
    assert_eq!(values.intern_sum(&[]), unknown);
}

/// The pieces of what is interned, with their lengths.
fn pieces(values: &mut Values, terms: &[ValueId], len: u32) -> Vec<(ValueId, u32)> {
    let (mut pieces, mut done) = (Vec::new(), 0);
    while done < len {
        let next: Vec<_> = terms.iter().map(|term| term.further(done)).collect();
        pieces.push(values.intern_sums(&next, len - done));
        done += pieces.last().unwrap().1;
    }
    pieces
}

#[test]
fn what_is_known_in_part_is_made_around_it() {
    let (mut values, leaf) = values(2, 32);
    let at = |values: &Values, chunk| [0, 1].map(|rank| values.intern_leaf(leaf(rank, chunk)));
    let [third, later] = [(3, 2), (20, 4)].map(|(chunk, len)| {
        let terms = at(&values, chunk);
        pieces(&mut values, &terms, len)
    });
    assert_eq!([third.len(), later.len()], [1, 1]);
    let (third, later) = (third[0].0, later[0].0);
    // From before the first to beyond the last: 0..3, 3..5, 5..20, 20..24, 24..30.
    let terms = at(&values, 0);
    let next = later.further(4);
    let whole = [(next, 3), (third, 2), (next.further(3), 15), (later, 4), (next.further(18), 6)];
    assert_eq!(pieces(&mut values, &terms, 30), whole);
    assert_eq!(pieces(&mut values, &terms, 30), whole);
    let by_chunk: Vec<_> = (0..30).map(|chunk| values.intern_sum(&at(&values, chunk))).collect();
    assert_eq!(
        by_chunk,
        whole.iter().flat_map(|&(first, n)| (0..n).map(move |i| first.further(i))).collect::<Vec<_>>()
    );
    // From within a known piece.
    assert_eq!(values.intern_sums(&at(&values, 22), 10), (later.further(2), 2));
}

#[test]
fn neighbours_made_one_by_one_are_one_run() {
    let (mut values, leaf) = values(2, 32);
    for chunk in 0..20 {
        let terms = [0, 1].map(|rank| values.intern_leaf(leaf(rank, chunk)));
        values.intern_sum(&terms);
    }
    assert_eq!(values.sums.runs.len(), 1);
    let terms = [0, 1].map(|rank| values.intern_leaf(leaf(rank, 0)));
    assert_eq!(values.intern_sums(&terms, 32).1, 20);
    // Sums with one another: each continues the one before, but the first ones do not stem from the same run.
    let mut sum = values.intern_leaf(leaf(0, 0));
    for chunk in 1..6 {
        sum = values.intern_sum(&[values.intern_leaf(leaf(1, chunk)), sum]);
        let due: Vec<_> = (1..=chunk).map(|chunk| leaf(1, chunk)).chain([leaf(0, 0)]).collect();
        assert!(Inputs::default().is_combination(&values, sum, &due), "{chunk}");
    }
}

#[test]
fn runs_end_where_those_of_their_terms_do() {
    let (mut values, leaf) = values(2, 4);
    let [first, last] = [(0, 0), (1, 3)].map(|(rank, chunk)| values.intern_leaf(leaf(rank, chunk)));
    // After the last leaf comes the unknown value, then a sum.
    assert_eq!(values.intern_sums(&[last, first], 6).1, 1);
    assert_eq!(pieces(&mut values, &[last, first], 3)[1], (values.unknown(), 1));
    // Two runs of sums, side by side.
    let ones = pieces(&mut values, &[first, first], 3)[0].0;
    let twos = pieces(&mut values, &[first, first.further(4)], 3)[0].0;
    assert_eq!(twos, ones.further(3));
    let both = pieces(&mut values, &[first, ones.further(1)], 5);
    assert_eq!(both.iter().map(|piece| piece.1).collect::<Vec<_>>(), [2, 3]);
    for i in 0..5 {
        let sum = both[0].0.further(i);
        let terms = [first.further(i), ones.further(1 + i)];
        assert_eq!(values.node(sum), ValueNode::Sum(Terms { first: &terms, by: 0 }));
        assert_eq!(values.count(sum), values.count(terms[0]) + values.count(terms[1]));
    }
}

const RANKS: u32 = 3;
const CHUNKS: u32 = 6;
const LEAVES: usize = (RANKS * CHUNKS) as usize;
/// Chunks that hold the leaves, then some that hold nothing.
const PLACES: usize = LEAVES + 8;

/// Values by chunk: expressions in full, and the inputs in each.
struct Naive {
    known: FxHashMap<Vec<usize>, usize>,
    /// How often each input is in each.
    inputs: Vec<[u64; LEAVES]>,
}

/// The number of what nothing is known of.
const UNKNOWN: usize = LEAVES;

impl Naive {
    fn new() -> Naive {
        let leaf = |leaf: usize| std::array::from_fn(|input| u64::from(input == leaf));
        Naive { known: FxHashMap::default(), inputs: (0..=UNKNOWN).map(leaf).collect() }
    }

    fn sum(&mut self, terms: &[usize]) -> usize {
        match terms {
            [only] => *only,
            _ if terms.contains(&UNKNOWN) => UNKNOWN,
            _ => *self.known.entry(terms.to_vec()).or_insert_with(|| {
                let often = |input| terms.iter().map(|&term| self.inputs[term][input]).sum();
                self.inputs.push(std::array::from_fn(often));
                self.inputs.len() - 1
            }),
        }
    }
}

/// Sources and destination of a range of chunks.
type Operation = (Vec<Range<usize>>, Range<usize>);

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let places = |len: usize| 0..=PLACES - len;
    let operation = (1..=8_usize).prop_flat_map(move |len| {
        (prop::collection::vec(places(len), 2..4), places(len), any::<bool>()).prop_map(
            move |(sources, dest, within)| {
                let sources: Vec<_> = sources.into_iter().map(|start| start..start + len).collect();
                (sources.clone(), if within { sources[0].clone() } else { dest..dest + len })
            },
        )
    });
    let apart = |(sources, dest): &Operation| {
        sources.iter().all(|source| source == dest || source.end <= dest.start || dest.end <= source.start)
    };
    prop::collection::vec(operation.prop_filter("sources and destination overlap in part", apart), 1..16)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    /// The same expressions get the same values, others get others, whatever they are interned with, by ranges or by
    /// chunk; and their inputs are those that they are made of.
    #[test]
    fn ranges_are_what_their_chunks_are(operations in operations(), by_chunk in prop::collection::vec(any::<bool>(), 16)) {
        let shape = Shape::new(Kind::AllReduce, RANKS, CHUNKS);
        let (mut values, mut naive) = (Values::new(&shape), Naive::new());
        let mut number: FxHashMap<ValueId, usize> = FxHashMap::default();
        let mut value: FxHashMap<usize, ValueId> = FxHashMap::default();
        // What some operations do by chunk they do by ranges the second time.
        for turned in [false, true] {
            let leaf = |place: usize| (place < LEAVES).then(|| ValueId::new(place as u32));
            let mut held: Vec<Option<ValueId>> = (0..PLACES).map(leaf).collect();
            let mut expected: Vec<usize> = (0..PLACES).map(|place| place.min(UNKNOWN)).collect();
            for ((sources, dest), by_chunk) in operations.iter().zip(&by_chunk) {
                let part = |range: &Range<usize>, i: usize| range.start + i..range.start + i + 1;
                if *by_chunk == turned {
                    let ranges = Ranges { sources, dests: std::slice::from_ref(dest), len: dest.len() };
                    combine(&mut values, &mut held, &ranges);
                } else {
                    for i in 0..dest.len() {
                        let sources: Vec<_> = sources.iter().map(|source| part(source, i)).collect();
                        let ranges = Ranges { sources: &sources, dests: &[part(dest, i)], len: 1 };
                        combine(&mut values, &mut held, &ranges);
                    }
                }
                for i in 0..dest.len() {
                    let terms: Vec<_> = sources.iter().map(|source| expected[source.start + i]).collect();
                    expected[dest.start + i] = naive.sum(&terms);
                }
                for place in dest.clone() {
                    let (held, expected) = (held[place].unwrap(), expected[place]);
                    prop_assert_eq!(*number.entry(held).or_insert(expected), expected);
                    prop_assert_eq!(*value.entry(expected).or_insert(held), held);
                }
            }
        }
        let mut whole = Inputs::default();
        for (&value, &number) in &number {
            let inputs = naive.inputs[number];
            prop_assert_eq!(values.count(value), inputs.iter().sum::<u64>());
            for chunk in 0..CHUNKS {
                let due: [u64; LEAVES] = std::array::from_fn(|leaf| u64::from(leaf as u32 % CHUNKS == chunk));
                prop_assert_eq!(whole.is_reduction(&values, value, chunk), inputs == due);
            }
            let mut due: Vec<_> = values.contributions(value).into_iter().flat_map(|(leaf, n)| (0..n).map(move |_| leaf)).collect();
            prop_assert_eq!(whole.is_combination(&values, value, &due), number != UNKNOWN);
            if let Some(last) = due.last_mut() {
                last.rank.0 = (last.rank.0 + 1) % RANKS;
                prop_assert!(!whole.is_combination(&values, value, &due));
            }
            let exactly = values.contributions(value).into_iter();
            let exactly: Vec<_> = exactly.map(|(leaf, n)| (values.intern_leaf(leaf).number(), n)).collect();
            let due: Vec<_> = (0..).zip(inputs).filter(|(_, n)| *n > 0).collect();
            prop_assert_eq!(exactly, due);
        }
        for (terms, number) in &naive.known {
            let term = |term: usize| if term < LEAVES { ValueId::new(term as u32) } else { value[&term] };
            let terms: Vec<_> = terms.iter().map(|&known| term(known)).collect();
            prop_assert_eq!(values.node(value[number]), ValueNode::Sum(Terms { first: &terms, by: 0 }));
        }
        let weights = values.weigh(|leaf| leaf.chunk % 2 == 0);
        for (&value, &number) in &number {
            let even = naive.inputs[number].iter().enumerate().filter(|(leaf, _)| leaf % 2 == 0);
            let even: u64 = even.map(|(_, n)| n).sum();
            prop_assert_eq!(weights.of(value), even);
        }
    }
}
