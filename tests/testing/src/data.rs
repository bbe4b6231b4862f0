//! Test data whose results are exact, the exact results, and the comparison.
//!
//! Everything here follows from the kind's definition alone ([`Shape::initial`], [`Shape::expected`],
//! [`Shape::output_location`], taken for whole units) or, for a custom collective, from its promises; never from a
//! program's operations or a schedule.

use crate::number::{self, Number};
use quadrille_compiler::kernel::abi;
use quadrille_compiler::program::Program;
use quadrille_compiler::program::contract::Contract;
use quadrille_compiler::program::dtype::{DType, RedOp};
use quadrille_compiler::program::ids::Rank;
use quadrille_compiler::program::kind::{Contribution, Expected, Shape};
use quadrille_runtime::units::{in_units, input_units, output_units};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Which numbers the ranks contribute. All are small integers: every partial sum, in any order, is exact in every
/// element type. They depend on rank and position, so that a chunk in the wrong place shows.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Pattern {
    /// Kinds that reduce: of each element exactly one rank has a value 1 to 127, the others 0; the shifts
    /// `0..ranks` together give every rank every element. So a contribution that is lost or counted twice shows
    /// as 0 or as twice the value. Kinds that copy: every element is 1 to 127.
    OneHot {
        /// Turns the ranks; also changes the values.
        shift: u32,
    },
    /// Kinds that reduce: every rank has a value of at least 1 (beyond 256 ranks in a type with 8 significant bits,
    /// 256 of them have 1). Kinds that copy: as `OneHot`.
    Dense {
        /// Changes the values.
        shift: u32,
    },
}

impl Pattern {
    fn shift(self) -> u32 {
        match self {
            Pattern::OneHot { shift } | Pattern::Dense { shift } => shift,
        }
    }
}

/// A message: everything that sizes and values follow from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TestMessage {
    /// Kind, world size, chunks and placement.
    pub shape: Shape,
    /// What a custom collective promises.
    pub contract: Option<Arc<Contract>>,
    /// All chunks of a unit are equally long.
    pub divisible: bool,
    /// Elements of a unit.
    pub count: u64,
    /// Element type.
    pub dtype: DType,
}

impl TestMessage {
    /// The message of a program's call.
    pub fn new(program: &Program, count: u64, dtype: DType) -> TestMessage {
        let contract = program.contract.clone().map(Arc::new);
        TestMessage { shape: program.shape, contract, divisible: program.divisible, count, dtype }
    }

    /// Bytes of a unit.
    fn unit(&self) -> usize {
        self.count as usize * self.dtype.bytes()
    }

    /// Elements of one chunk but the last ones, which may be shorter or empty: count / C, rounded up to 16 bytes
    /// unless all are equally long.
    pub fn chunk_elements(&self) -> u64 {
        abi::chunk_elements(self.count, self.shape.chunks, self.divisible, self.dtype)
    }

    /// The bytes of chunk `chunk` of a buffer.
    pub fn chunk_bytes(&self, chunk: u32) -> Range<usize> {
        let (unit, position) = (chunk / self.shape.chunks, chunk % self.shape.chunks);
        let edge = |position: u32| {
            let within = (u64::from(position) * self.chunk_elements()).min(self.count);
            (u64::from(unit) * self.count + within) as usize * self.dtype.bytes()
        };
        edge(position)..edge(position + 1)
    }

    /// What a chunk of a rank's output must hold.
    pub fn expected(&self, rank: Rank, chunk: u32) -> Expected<'_> {
        let promised = self.contract.as_ref().and_then(|contract| contract.expected(rank, chunk));
        promised.unwrap_or_else(|| self.shape.expected(rank, chunk))
    }

    /// Whether some result is a combination of several inputs.
    fn reduces(&self) -> bool {
        let combined = |(rank, chunk)| {
            matches!(self.expected(rank, chunk), Expected::Reduced { .. } | Expected::Combined(_))
        };
        match self.contract {
            Some(_) => self.shape.outputs().any(combined),
            None => self.shape.outputs().next().is_some_and(combined),
        }
    }

    /// Whether some part of a result may hold anything.
    pub fn leaves_open(&self) -> bool {
        let open = |(rank, chunk)| self.expected(rank, chunk) == Expected::Unspecified;
        self.contract.is_some() && self.shape.outputs().any(open)
    }

    /// What each rank contributes to a sum, in bytes.
    pub fn inputs(&self, pattern: Pattern) -> Vec<Vec<u8>> {
        self.inputs_for(RedOp::Sum, pattern)
    }

    /// What each rank contributes, in bytes. Of the ranks that have none of an element in [`Pattern::OneHot`], each has
    /// the operator's neutral element among the values in use: 0, for products 1, for minima 127. Dense products have
    /// factors 1 and 2, of these at most 7.
    pub fn inputs_for(&self, op: RedOp, pattern: Pattern) -> Vec<Vec<u8>> {
        let TestMessage { shape, count, dtype, .. } = *self;
        let reduces = self.reduces();
        let ranks = u64::from(shape.ranks);
        let shift = u64::from(pattern.shift());
        // The largest integer up to which all are exact.
        let exact = (1u64 << dtype.exact_bits().min(53)) - u64::from(!dtype.is_float());
        let dense = exact / ranks;
        let value = |rank: u64, elements: u64, i: u64| match pattern {
            _ if !reduces => mixed(rank * elements + i, shift, 127),
            Pattern::OneHot { .. } if (i + shift) % ranks == rank => mixed(i, shift, 127),
            Pattern::OneHot { .. } => match op {
                RedOp::Prod => 1,
                RedOp::Min => 127,
                RedOp::Sum | RedOp::Max | RedOp::Avg | RedOp::PremulSum(_) => 0,
            },
            Pattern::Dense { .. } if op == RedOp::Prod => 1 + u64::from((i + shift + rank) % ranks < 7),
            Pattern::Dense { .. } if dense > 0 => mixed(rank * elements + i, shift, dense.min(127)),
            Pattern::Dense { .. } => u64::from((i + shift + rank) % ranks < exact),
        };
        (0..shape.ranks)
            .map(|rank| {
                let elements = u64::from(input_units(&shape, Rank(rank))) * count;
                let mut bytes = Vec::with_capacity(elements as usize * dtype.bytes());
                for i in 0..elements {
                    encode(value(u64::from(rank), elements, i) as f64, dtype, &mut bytes);
                }
                bytes
            })
            .collect()
    }

    /// What each rank must receive: reduced over the ranks in order, in f64 or in integers, and rounded once; copied
    /// where the kind copies. Where a partial result is not exact in the type, a right program may differ from it.
    ///
    /// `inputs` are as [`TestMessage::inputs`] makes them. What is missing there is missing in the results.
    pub fn reference(&self, op: RedOp, inputs: &[Vec<u8>]) -> Vec<Vec<u8>> {
        self.coarsest().reference_by_chunk(op, inputs)
    }

    /// The same message in the largest chunks of which each is expected to hold one thing: a kind speaks of whole units,
    /// a custom collective of its own chunks.
    pub fn coarsest(&self) -> TestMessage {
        match self.contract {
            Some(_) => self.clone(),
            None => TestMessage { shape: in_units(&self.shape), divisible: true, ..self.clone() },
        }
    }

    fn reference_by_chunk(&self, op: RedOp, inputs: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let TestMessage { shape, dtype, .. } = *self;
        let part = |input: Contribution| {
            let whole = inputs.get(input.rank.0 as usize);
            whole.and_then(|whole| whole.get(self.chunk_bytes(input.chunk))).unwrap_or_default()
        };
        let combined = |inputs: &mut dyn Iterator<Item = Contribution>| {
            let parts: Vec<&[u8]> = inputs.map(part).collect();
            match dtype.is_float() {
                true => number::reduce::<f64>(op, dtype, shape.ranks, &parts),
                false => number::reduce::<i128>(op, dtype, shape.ranks, &parts),
            }
        };
        // All ranks of an all-reduce expect the same unit.
        let mut known: Option<(u32, Vec<u8>)> = None;
        (0..shape.ranks)
            .map(|rank| {
                let rank = Rank(rank);
                let mut output = Vec::with_capacity(self.unit() * output_units(&shape, rank) as usize);
                for chunk in 0..shape.output_chunks(rank) {
                    match self.expected(rank, chunk) {
                        Expected::Copied(from) => output.extend(part(from)),
                        Expected::Reduced { chunk } => {
                            let all =
                                || (0..shape.ranks).map(|rank| Contribution { rank: Rank(rank), chunk });
                            let (_, bytes) = known
                                .take_if(|(index, _)| *index == chunk)
                                .unwrap_or_else(|| (chunk, combined(&mut all())));
                            output.extend(&bytes);
                            known = Some((chunk, bytes));
                        }
                        Expected::Combined(inputs) => output.extend(combined(&mut inputs.iter().copied())),
                        Expected::Unspecified => output.resize(self.chunk_bytes(chunk).end, 0),
                    }
                }
                output
            })
            .collect()
    }

    /// Compares results with what they should be, bit by bit; what may hold anything is passed over. An element that is missing at the end of a result is
    /// wrong (and shown as NaN); elements past the end are, too.
    pub fn compare(&self, expected: &[Vec<u8>], results: &[Vec<u8>]) -> Comparison {
        let mut comparison = Comparison::default();
        for rank in 0..expected.len().max(results.len()) {
            let of = |lists: &'_ [Vec<u8>]| lists.get(rank).cloned().unwrap_or_default();
            self.compare_rank(Rank(rank as u32), &of(expected), &of(results), &mut comparison);
        }
        comparison
    }

    fn compare_rank(&self, rank: Rank, expected: &[u8], result: &[u8], comparison: &mut Comparison) {
        let size = self.dtype.bytes();
        let elements = expected.len().max(result.len()).div_ceil(size);
        let open: Vec<Range<usize>> = match self.leaves_open() {
            true => (0..self.shape.output_chunks(rank))
                .filter(|&chunk| self.expected(rank, chunk) == Expected::Unspecified)
                .map(|chunk| self.chunk_bytes(chunk))
                .collect(),
            false => Vec::new(),
        };
        let passed_over: usize = open.iter().map(|range| range.len() / size).sum();
        comparison.elements += (elements - passed_over.min(elements)) as u64;
        if expected == result {
            return;
        }
        let value = |element: &[u8]| decode(element, self.dtype).next().unwrap_or(f64::NAN);
        let mut shown = 0;
        for i in 0..elements {
            let at =
                |bytes: &'_ [u8]| bytes.get(i * size..(i + 1) * size).map(<[u8]>::to_vec).unwrap_or_default();
            let (want, have) = (at(expected), at(result));
            let is_open = open.iter().any(|range| range.contains(&(i * size)));
            if is_open || (!want.is_empty() && want == have) {
                continue;
            }
            comparison.wrong += 1;
            if shown < Comparison::SHOWN {
                shown += 1;
                let element = i as u64;
                let (unit, position) = (element / self.count.max(1), element % self.count.max(1));
                let chunk = unit * u64::from(self.shape.chunks) + position / self.chunk_elements().max(1);
                let (expected, got) = (value(&want), value(&have));
                comparison.first.push(WrongElement { rank, element, chunk: chunk as u32, expected, got });
            }
        }
    }
}

/// 1 to `most`: different for neighbours (any `most` in a row that begin at a multiple of it), and between such rows
/// offset at random, so that no distance between positions keeps the value.
fn mixed(position: u64, shift: u64, most: u64) -> u64 {
    let row = (position / most + (shift << 32) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    // The finalizer of splitmix64 (Steele, Lea, Flood).
    let random = (row ^ (row >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let random = (random ^ (random >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    1 + (position % most + (random >> 33)) % most
}

fn encode(value: f64, dtype: DType, bytes: &mut Vec<u8>) {
    value.encode(dtype, bytes);
}

/// The elements of a buffer as numbers, 64-bit integers to the nearest one; what is left over at the end is dropped.
pub fn decode(bytes: &[u8], dtype: DType) -> impl ExactSizeIterator<Item = f64> + '_ {
    bytes.chunks_exact(dtype.bytes()).map(move |element| f64::decode(element, dtype))
}

/// One wrong element.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct WrongElement {
    /// Whose result.
    pub rank: Rank,
    /// The element's index in the result.
    pub element: u64,
    /// The chunk of the result that it lies in.
    pub chunk: u32,
    /// What it should be.
    pub expected: f64,
    /// What it is.
    pub got: f64,
}

impl fmt::Display for WrongElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let WrongElement { rank, element, chunk, expected, got } = self;
        write!(f, "rank {}: element {element} (chunk {chunk}) is {got}, must be {expected}", rank.0)
    }
}

/// How results differ from what they should be.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Comparison {
    /// Elements compared.
    pub elements: u64,
    /// Elements that are wrong.
    pub wrong: u64,
    /// The first wrong ones of each rank, at most [`Comparison::SHOWN`] a rank.
    pub first: Vec<WrongElement>,
}

impl Comparison {
    /// Most elements a rank in [`Comparison::first`].
    pub const SHOWN: usize = 8;
}

/// One line a wrong element, and how many more there are.
impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} elements are wrong", self.wrong, self.elements)?;
        for wrong in &self.first {
            write!(f, "\n  {wrong}")?;
        }
        match self.wrong - self.first.len() as u64 {
            0 => Ok(()),
            more => write!(f, "\n  and {more} more"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use half::bf16;
    use quadrille_compiler::program::contract::Promise;
    use quadrille_compiler::program::kind::Kind;

    fn message(shape: Shape, count: u64, dtype: DType) -> TestMessage {
        TestMessage { shape, contract: None, divisible: false, count, dtype }
    }

    fn shape(kind: Kind, ranks: u32, in_place: bool) -> Shape {
        Shape { in_place, ..Shape::new(kind, ranks, ranks) }
    }

    fn numbers(lists: &[Vec<f32>]) -> Vec<Vec<u8>> {
        lists.iter().map(|list| list.iter().flat_map(|x| x.to_le_bytes()).collect()).collect()
    }

    /// The result of a kind on 2 ranks with a count of 2, for f32.
    fn results(kind: Kind, inputs: &[Vec<f32>]) -> Vec<Vec<f64>> {
        let message = message(shape(kind, 2, false), 2, DType::F32);
        let outputs = message.reference(RedOp::Sum, &numbers(inputs));
        outputs.iter().map(|output| decode(output, DType::F32).collect()).collect()
    }

    #[test]
    fn references_are_what_the_kinds_say() {
        let two = [vec![1.0, 2.0], vec![10.0, 20.0]];
        let four = [vec![1.0, 2.0, 3.0, 4.0], vec![10.0, 20.0, 30.0, 40.0]];
        assert_eq!(results(Kind::AllReduce, &two), [[11.0, 22.0]; 2]);
        assert_eq!(results(Kind::AllGather, &two), [[1.0, 2.0, 10.0, 20.0]; 2]);
        assert_eq!(results(Kind::ReduceScatter, &four), [[11.0, 22.0], [33.0, 44.0]]);
        assert_eq!(results(Kind::AllToAll, &four), [[1.0, 2.0, 10.0, 20.0], [3.0, 4.0, 30.0, 40.0]]);
        assert_eq!(results(Kind::Broadcast, &[two[0].clone(), vec![]]), [[1.0, 2.0]; 2]);
        assert_eq!(results(Kind::Reduce, &two), [vec![11.0, 22.0], vec![]]);
        assert_eq!(results(Kind::Gather, &two), [vec![1.0, 2.0, 10.0, 20.0], vec![]]);
        assert_eq!(results(Kind::Scatter, &[four[0].clone(), vec![]]), [[1.0, 2.0], [3.0, 4.0]]);
        assert_eq!(results(Kind::SendRecv, &two), [[10.0, 20.0], [1.0, 2.0]]);
    }

    /// Two chunks of 4 and 2 elements: the first is what rank 1 had there, the second a sum on rank 0 and open on
    /// rank 1.
    #[test]
    fn a_custom_reference_is_what_was_promised() {
        let shape = Shape::new(Kind::Custom, 2, 2);
        let mut contract = Contract::new(2, 2);
        let input = |rank, chunk| Contribution { rank: Rank(rank), chunk };
        for rank in [0, 1] {
            contract.promise(Rank(rank), 0, Promise::Holds([input(1, 0)].into()));
        }
        contract.promise(Rank(0), 1, Promise::Holds([input(0, 1), input(1, 1)].into()));
        contract.promise(Rank(1), 1, Promise::Unspecified);
        let custom = TestMessage { contract: Some(Arc::new(contract)), ..message(shape, 6, DType::F32) };
        let inputs = numbers(&[vec![1., 2., 3., 4., 5., 6.], vec![10., 20., 30., 40., 50., 60.]]);
        let expected = custom.reference(RedOp::Sum, &inputs);
        assert_eq!(
            expected,
            numbers(&[vec![10., 20., 30., 40., 55., 66.], vec![10., 20., 30., 40., 0., 0.]])
        );
        let mut results = expected.clone();
        results[1][5 * 4..].copy_from_slice(&7f32.to_le_bytes());
        assert_eq!(custom.compare(&expected, &results), Comparison { elements: 10, ..Comparison::default() });
        results[1][3 * 4..4 * 4].copy_from_slice(&7f32.to_le_bytes());
        assert_eq!(custom.compare(&expected, &results).wrong, 1);
    }

    #[test]
    fn over_all_shifts_every_rank_contributes_every_element_once() {
        let shape = shape(Kind::ReduceScatter, 3, true);
        for dtype in DType::ALL {
            let mut times = vec![[0; 3]; 15];
            for shift in 0..3 {
                let inputs = message(shape, 5, dtype).inputs(Pattern::OneHot { shift });
                for (rank, input) in inputs.iter().enumerate() {
                    assert_eq!(input.len(), 15 * dtype.bytes());
                    for (i, value) in decode(input, dtype).enumerate() {
                        assert!((0.0..=127.0).contains(&value) && value.fract() == 0.0);
                        times[i][rank] += u32::from(value != 0.0);
                    }
                }
            }
            assert_eq!(times, vec![[1; 3]; 15]);
        }
    }

    #[test]
    fn dense_sums_are_exact_in_every_type() {
        for ranks in [1, 2, 8, 100, 300] {
            let shape = shape(Kind::AllReduce, ranks, true);
            let message = message(shape, 40, DType::Bf16);
            let inputs = message.inputs(Pattern::Dense { shift: 1 });
            let mut sums = [0.0; 40];
            for input in &inputs {
                for (sum, value) in sums.iter_mut().zip(decode(input, DType::Bf16)) {
                    assert!(value >= 1.0 || ranks > 256);
                    *sum += value;
                    assert_eq!(bf16::from_f64(*sum).to_f64(), *sum);
                }
            }
            let expected = message.reference(RedOp::Sum, &inputs);
            assert!(decode(&expected[0], DType::Bf16).eq(sums));
        }
    }

    /// A chunk in another's place must show: no distance keeps more than a few values.
    #[test]
    fn values_depend_on_the_position() {
        let shape = shape(Kind::AllGather, 2, false);
        let inputs = message(shape, 4096, DType::F32).inputs(Pattern::OneHot { shift: 0 });
        let values: Vec<f64> = inputs.iter().flat_map(|input| decode(input, DType::F32)).collect();
        for distance in (1..4096).chain([4096]) {
            let equal = (0..4096).filter(|&i| values[i] == values[i + distance]).count();
            assert!(equal < 4096 / 8, "distance {distance}: {equal} equal");
        }
    }

    #[test]
    fn a_comparison_names_the_wrong_elements() {
        let shape = Shape { chunks: 4, ..shape(Kind::AllGather, 2, false) };
        let message = message(shape, 10, DType::F32);
        let inputs = message.inputs(Pattern::OneHot { shift: 0 });
        let expected = message.reference(RedOp::Sum, &inputs);
        let mut results = expected.clone();
        assert_eq!(
            message.compare(&expected, &results),
            Comparison { elements: 40, ..Comparison::default() }
        );
        results[1][4 * 14..4 * 15].copy_from_slice(&300f32.to_le_bytes());
        results[0].truncate(4 * 19);
        let found = message.compare(&expected, &results);
        assert_eq!((found.wrong, found.elements, found.first.len()), (2, 40, 2));
        // A unit of 10 elements has chunks of 4, 4, 2 and 0.
        let [missing, wrong] = found.first[..] else { panic!("{found}") };
        assert_eq!((missing.rank, missing.element, missing.chunk), (Rank(0), 19, 6));
        assert!(missing.got.is_nan());
        assert_eq!((wrong.rank, wrong.element, wrong.chunk, wrong.got), (Rank(1), 14, 5, 300.0));
        assert!(found.to_string().contains("rank 1: element 14 (chunk 5) is 300, must be "), "{found}");
    }
}
