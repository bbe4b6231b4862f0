//! The order in which contributions are combined into results. Addition of floating-point numbers is commutative but not
//! associative, so equal orders give equal bits.

use crate::program::Program;
use crate::program::ids::{Location, Rank};
use crate::program::kind::{Contribution, Expected, Kind};
use crate::program::location::Locations;
use crate::values::Contents;
use crate::values::expression::{self, Classes};
use crate::values::switch::Switch;
use crate::values::{ValueId, ValueNode, Values};
use rustc_hash::{FxHashMap, FxHashSet};
use std::fmt;

/// The order of combination of a program's results, and where results differ in it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reduction {
    /// The order of combination.
    pub order: ReductionOrder,
    /// Two results that should be equal and are combined in different orders on their ranks; none where all that should
    /// be equal have the same bits.
    pub ranks_differ: Option<[Example; 2]>,
    /// Two chunks of one rank's result that are combined in different orders. Then an element's bits depend on the chunk
    /// that it falls into, and so on the size of the message. None where all have the same order.
    pub chunks_differ: Option<[Example; 2]>,
}

/// The order in which contributions are combined.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ReductionOrder {
    /// Nothing is combined: results are copies of inputs.
    Exact,
    /// The switch combines, in an order of its own.
    Switch,
    /// By rank, from rank 0 on.
    Ranks {
        /// All in one statement, which rounds once.
        at_once: bool,
    },
    /// Around a ring: each rank after its neighbour.
    Ring {
        /// The rank whose contribution is the first.
        first: RingStart,
        /// True from each rank to the next higher one, false to the next lower one.
        up: bool,
    },
    /// Any other order; the expression of one result in brief.
    Other(Example),
}

/// The rank at which a ring begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RingStart {
    /// The same rank for all results.
    Rank(u32),
    /// The chunk's index, or the rank that gets the result, plus this number (mod N).
    Shift(u32),
    /// A rank that varies with the result in another way.
    Varies,
}

/// The expression of one result in brief.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Example {
    /// The rank whose output it is.
    pub rank: Rank,
    /// The chunk of that output.
    pub chunk: u32,
    /// `r1 + r2 + (r3 + r4)`.
    pub expression: String,
}

/// A result that is a combination.
#[derive(Clone, Copy)]
struct Sum<'p> {
    rank: Rank,
    chunk: u32,
    due: Expected<'p>,
    value: ValueId,
}

impl Reduction {
    /// Finds the order of a program that stage 1 accepted.
    pub(crate) fn of(program: &Program, contents: &Contents, switch: &Switch) -> Reduction {
        let every = || (0..program.shape.ranks).map(Rank);
        let sums = || sums(program, contents, every());
        let values = &contents.values;
        if switch.used() && program.ops.iter().any(|op| switch.reduces(op)) {
            let classes = switch_classes(program, switch);
            let class = |sum: &Sum<'_>| classes.get(&place(program, sum));
            let (_, ranks_differ) = by_rank(sums(), |a, b| class(a) == class(b));
            let example = |sum: Sum<'_>| Example::new(&sum, "a sum that the switch makes".to_owned());
            return Reduction {
                order: ReductionOrder::Switch,
                ranks_differ: ranks_differ.map(|pair| pair.map(example)),
                chunks_differ: None,
            };
        }
        let example = |sum: Sum<'_>| Example::new(&sum, expression::brief(values, sum.value));
        let mut classes = Classes::new(true);
        let same = |a: &Sum<'_>, b: &Sum<'_>| classes.same(values, a.value, b.value);
        let fresh = every().filter(|&rank| !contents.state.repeats(&program.shape, rank));
        let (mut results, ranks_differ) = by_rank(self::sums(program, contents, fresh), same);
        if ranks_differ.is_some() || program.contract.is_some() {
            results = sums().collect();
        }
        Reduction {
            order: order(program, values, &results),
            ranks_differ: ranks_differ.map(|pair| pair.map(example)),
            chunks_differ: differing_chunks(values, &results).map(|pair| pair.map(example)),
        }
    }

    /// Returns true if results depend on neither rank, message size nor schedule.
    pub fn reproducible(&self) -> bool {
        self.order != ReductionOrder::Switch && self.ranks_differ.is_none() && self.chunks_differ.is_none()
    }
}

impl Example {
    fn new(sum: &Sum<'_>, expression: String) -> Example {
        Example { rank: sum.rank, chunk: sum.chunk, expression }
    }
}

/// `output[0][1] = r1 + r2`.
impl fmt::Display for Example {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "output[{}][{}] = {}", self.rank.0, self.chunk, self.expression)
    }
}

/// Returns the results of these ranks that are combinations, by rank and chunk.
fn sums<'p>(
    program: &'p Program,
    contents: &'p Contents,
    ranks: impl Iterator<Item = Rank>,
) -> impl Iterator<Item = Sum<'p>> {
    let shape = program.shape;
    let outputs = move |rank| (0..shape.output_chunks(rank)).map(move |chunk| (rank, chunk));
    let combined = move |(rank, chunk)| {
        let due = program.expected(rank, chunk);
        let value = contents.state.read(shape.output_location(rank, chunk))?;
        let is_sum = matches!(due, Expected::Reduced { .. } | Expected::Combined(_));
        is_sum.then_some(Sum { rank, chunk, due, value })
    };
    // No kind but these combines.
    let combines = matches!(shape.kind, Kind::AllReduce | Kind::ReduceScatter | Kind::Reduce | Kind::Custom);
    ranks.filter(move |_| combines).flat_map(outputs).filter_map(combined)
}

fn place(program: &Program, sum: &Sum<'_>) -> Location {
    program.shape.output_location(sum.rank, sum.chunk)
}

/// Returns the first of each group of results that should be equal, and the first two that are not. It stops at those
/// two.
fn by_rank<'p>(
    sums: impl Iterator<Item = Sum<'p>>,
    mut same: impl FnMut(&Sum<'p>, &Sum<'p>) -> bool,
) -> (Vec<Sum<'p>>, Option<[Sum<'p>; 2]>) {
    let mut firsts: Vec<Sum<'p>> = Vec::new();
    // Indices into `firsts`.
    let mut reduced: Vec<Option<usize>> = Vec::new();
    let mut combined: FxHashMap<&[Contribution], usize> = FxHashMap::default();
    for sum in sums {
        let next = firsts.len();
        let at = match sum.due {
            Expected::Combined(inputs) => *combined.entry(inputs).or_insert(next),
            Expected::Reduced { chunk } => {
                let index = chunk as usize;
                if index >= reduced.len() {
                    reduced.resize(index + 1, None);
                }
                *reduced[index].get_or_insert(next)
            }
            Expected::Copied(_) | Expected::Unspecified => continue,
        };
        match firsts.get(at) {
            None => firsts.push(sum),
            Some(first) if same(first, &sum) => {}
            Some(&first) => return (firsts, Some([first, sum])),
        }
    }
    (firsts, None)
}

/// Returns the first two results of one rank that combine the same ranks by expressions that differ in more than the chunk.
fn differing_chunks<'p>(values: &Values, sums: &[Sum<'p>]) -> Option<[Sum<'p>; 2]> {
    let mut reduced: Option<Sum<'p>> = None;
    let mut combined: FxHashMap<Vec<Rank>, Sum<'p>> = FxHashMap::default();
    let mut classes = Classes::new(false);
    let mut rank = None;
    for &sum in sums {
        if rank.replace(sum.rank) != Some(sum.rank) {
            combined.clear();
            reduced = None;
        }
        let first = match sum.due {
            Expected::Combined(inputs) => {
                *combined.entry(inputs.iter().map(|leaf| leaf.rank).collect()).or_insert(sum)
            }
            _ => *reduced.get_or_insert(sum),
        };
        if !classes.same(values, first.value, sum.value) {
            return Some([first, sum]);
        }
    }
    None
}

/// Returns the order of the results.
fn order(program: &Program, values: &Values, sums: &[Sum<'_>]) -> ReductionOrder {
    let ranks = program.shape.ranks;
    let mut seen = FxHashSet::default();
    let Some(&first) = sums.first() else { return ReductionOrder::Exact };
    if let ValueNode::Leaf(_) = values.node(first.value) {
        return ReductionOrder::Exact;
    }
    // A ring's beginning may go with the rank in a reduce-scatter, and with the chunk otherwise.
    let key = |sum: &Sum<'_>| match program.shape.kind {
        Kind::ReduceScatter => sum.rank.0 % ranks,
        _ => sum.chunk % ranks,
    };
    let ring = |sum: Sum<'_>| {
        let line = expression::line(values, sum.value).filter(|line| line.ranks.len() == ranks as usize)?;
        let (start, up) = line.ring()?;
        let shift = (start + ranks - key(&sum)) % ranks;
        Some(Ring { by_rank: line.by_rank(), at_once: line.at_once, up, start, shift })
    };
    let distinct = sums.iter().copied().filter(|sum| seen.insert(sum.value));
    let rings: Vec<Ring> = distinct.map_while(ring).collect();
    let all = |same: fn(&Ring, &Ring) -> bool| rings.iter().all(|ring| same(&rings[0], ring));
    if rings.len() < seen.len() || !all(|a, b| a.up == b.up) {
        return ReductionOrder::Other(Example::new(&first, expression::brief(values, first.value)));
    }
    if all(|a, b| b.by_rank && a.at_once == b.at_once) {
        return ReductionOrder::Ranks { at_once: rings[0].at_once };
    }
    let first = if all(|a, b| a.start == b.start) {
        RingStart::Rank(rings[0].start)
    } else if all(|a, b| a.shift == b.shift) {
        RingStart::Shift(rings[0].shift)
    } else {
        RingStart::Varies
    };
    ReductionOrder::Ring { first, up: rings[0].up }
}

/// A result that is combined around a ring.
struct Ring {
    by_rank: bool,
    at_once: bool,
    up: bool,
    start: u32,
    /// The distance of its beginning from the rank or chunk that it may go with.
    shift: u32,
}

/// Returns a number for every chunk's value at the end. Equal numbers mean equal bits; each sum that the switch makes has
/// a number of its own.
fn switch_classes(program: &Program, switch: &Switch) -> FxHashMap<Location, u32> {
    type Key = (Vec<u32>, Option<(usize, u32)>);
    let locations = Locations::new(&program.shape);
    let mut held: FxHashMap<Location, u32> = FxHashMap::default();
    let mut known: FxHashMap<Key, u32> = FxHashMap::default();
    let base = locations.len() as u32;
    for (number, op) in program.ops.iter().enumerate() {
        for offset in 0..op.dests.first().map_or(0, |dest| dest.len) {
            let input = |at: Location| locations.index(at).map_or(base, |index| index as u32);
            let terms = op.sources.iter().map(|source| source.at(offset));
            let terms: Vec<u32> =
                terms.map(|at| held.get(&at).copied().unwrap_or_else(|| input(at))).collect();
            let class = match terms[..] {
                [only] => only,
                _ => {
                    let next = base + 1 + known.len() as u32;
                    *known.entry((terms, switch.reduces(op).then_some((number, offset)))).or_insert(next)
                }
            };
            held.extend(op.dests.iter().map(|dest| (dest.at(offset), class)));
        }
    }
    held
}

impl fmt::Display for Reduction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.order {
            ReductionOrder::Exact => return f.write_str("results are copies, exact"),
            ReductionOrder::Switch => f.write_str("the switch's own")?,
            ReductionOrder::Ranks { at_once: true } => f.write_str("by rank, rounded once")?,
            ReductionOrder::Ranks { at_once: false } => f.write_str("by rank, one after the other")?,
            ReductionOrder::Ring { first, up } => {
                let way = if *up { "up" } else { "down" };
                match first {
                    RingStart::Rank(rank) => write!(f, "{way} the ring from rank {rank}")?,
                    RingStart::Shift(0) => write!(f, "{way} the ring from the chunk's rank")?,
                    RingStart::Shift(by) => write!(f, "{way} the ring from the chunk's rank + {by}")?,
                    RingStart::Varies => write!(f, "{way} the ring, beginning at different ranks")?,
                }
            }
            ReductionOrder::Other(example) => write!(f, "{example}")?,
        }
        f.write_str(match self.ranks_differ {
            None => "; the same bits on all ranks",
            Some(_) => "; bits differ between ranks",
        })?;
        f.write_str(match (&self.order, &self.chunks_differ) {
            (ReductionOrder::Switch, _) => "; may differ between runs and machines",
            (_, None) => "; independent of the message's size",
            (_, Some(_)) => "; depends on the message's size",
        })
    }
}
