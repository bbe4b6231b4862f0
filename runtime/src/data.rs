//! Test data whose results are exact, the exact results, and the comparison.
//!
//! Everything here follows from the kind's definition alone ([`Shape::initial`], [`Shape::expected`],
//! [`Shape::output_location`], taken for whole units), never from a program or a schedule.

use half::bf16;
use quadrille_compiler::dtype::{DType, RedOp};
use quadrille_compiler::ids::{Buffer, Location, Rank};
use quadrille_compiler::kind::{Expected, Shape};
use std::fmt;
use std::ops::Range;

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

/// The shape in whole units: one chunk a unit.
fn in_units(shape: &Shape) -> Shape {
    Shape { chunks: 1, ..*shape }
}

/// Units of what `rank` contributes, wherever it lies; 0 where the rank contributes nothing.
pub fn input_units(shape: &Shape, rank: Rank) -> u32 {
    Shape { in_place: false, ..in_units(shape) }.units(Buffer::Input, rank)
}

/// Units of what a rank receives.
pub fn output_units(shape: &Shape) -> u32 {
    in_units(shape).output_chunks()
}

/// Where `rank`'s contribution lies in its `data` (in place) or `input`: pairs of a unit there and the input's unit
/// that it begins with. All else is not written when a call begins.
pub fn placement(shape: &Shape, rank: Rank) -> Vec<(u32, u32)> {
    let shape = in_units(shape);
    let buffer = if shape.in_place { Buffer::Data } else { Buffer::Input };
    let unit = |chunk| Some((chunk, shape.initial(Location { buffer, rank, chunk })?.chunk));
    (0..shape.units(buffer, rank)).filter_map(unit).collect()
}

/// Where `rank`'s result lies in its `data` (in place) or `output`, in units.
pub fn result_units(shape: &Shape, rank: Rank) -> Range<u32> {
    let first = in_units(shape).output_location(rank, 0).chunk;
    first..first + output_units(shape)
}

/// Elements of one chunk but the last ones, which may be shorter or empty: `count` over C, rounded up to 16 bytes.
pub fn chunk_elements(shape: &Shape, count: u64, dtype: DType) -> u64 {
    let vector = 16 / dtype.bytes() as u64;
    count.div_ceil(u64::from(shape.chunks)).next_multiple_of(vector)
}

/// What each rank contributes, in bytes of `dtype`, for units of `count` elements.
pub fn inputs(shape: &Shape, count: u64, dtype: DType, pattern: Pattern) -> Vec<Vec<u8>> {
    let reduces = matches!(in_units(shape).expected(Rank(0), 0), Expected::Reduced { .. });
    let ranks = u64::from(shape.ranks);
    let shift = u64::from(pattern.shift());
    // The largest integer up to which all are exact.
    let exact = 1u64 << match dtype {
        DType::F32 => 24,
        DType::Bf16 => 8,
    };
    let dense = exact / ranks;
    let value = |rank: u64, elements: u64, i: u64| match pattern {
        _ if !reduces => mixed(rank * elements + i, shift, 127),
        Pattern::OneHot { .. } if (i + shift) % ranks == rank => mixed(i, shift, 127),
        Pattern::OneHot { .. } => 0,
        Pattern::Dense { .. } if dense > 0 => mixed(rank * elements + i, shift, dense.min(127)),
        Pattern::Dense { .. } => u64::from((i + shift + rank) % ranks < exact),
    };
    (0..shape.ranks)
        .map(|rank| {
            let elements = u64::from(input_units(shape, Rank(rank))) * count;
            let mut bytes = Vec::with_capacity(elements as usize * dtype.bytes());
            for i in 0..elements {
                encode(value(u64::from(rank), elements, i) as f64, dtype, &mut bytes);
            }
            bytes
        })
        .collect()
}

/// 1 to `most`: different for neighbours (any `most` in a row that begin at a multiple of it), and between such rows
/// offset at random, so that no distance between positions keeps the value.
fn mixed(position: u64, shift: u64, most: u64) -> u64 {
    let row = (position / most).wrapping_add(shift.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let random = (row ^ (row >> 31)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    1 + (position % most + (random >> 33)) % most
}

fn encode(value: f64, dtype: DType, bytes: &mut Vec<u8>) {
    match dtype {
        DType::F32 => bytes.extend((value as f32).to_le_bytes()),
        DType::Bf16 => bytes.extend(bf16::from_f64(value).to_le_bytes()),
    }
}

/// The elements of a buffer as numbers; what is left over at the end is dropped.
pub fn decode(bytes: &[u8], dtype: DType) -> impl ExactSizeIterator<Item = f64> + '_ {
    bytes.chunks_exact(dtype.bytes()).map(move |element| match (dtype, element) {
        (DType::F32, &[a, b, c, d]) => f64::from(f32::from_le_bytes([a, b, c, d])),
        (DType::Bf16, &[a, b]) => f64::from(bf16::from_le_bytes([a, b])),
        _ => f64::NAN,
    })
}

/// What each rank must receive: reduced in f64 over the ranks in order and rounded once; copied where the kind
/// copies. Where a partial result is not exact in the type, a right program may differ from it.
///
/// `inputs` are as [`inputs`] makes them: [`input_units`] of `count` elements each. What is missing there is missing
/// in the results.
pub fn reference(shape: &Shape, count: u64, dtype: DType, op: RedOp, inputs: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let shape = in_units(shape);
    let unit = count as usize * dtype.bytes();
    let part = |rank: usize, index: u32| {
        let start = index as usize * unit;
        inputs.get(rank).and_then(|input| input.get(start..start + unit)).unwrap_or_default()
    };
    let combine = match op {
        RedOp::Sum => |a: f64, b: f64| a + b,
    };
    let reduced = |index: u32| {
        let mut sums: Vec<f64> = decode(part(0, index), dtype).collect();
        for rank in 1..inputs.len() {
            for (sum, value) in sums.iter_mut().zip(decode(part(rank, index), dtype)) {
                *sum = combine(*sum, value);
            }
        }
        let mut bytes = Vec::with_capacity(unit);
        sums.into_iter().for_each(|sum| encode(sum, dtype, &mut bytes));
        bytes
    };
    // All ranks of an all-reduce expect the same unit.
    let mut known: Option<(u32, Vec<u8>)> = None;
    (0..shape.ranks)
        .map(|rank| {
            let mut output = Vec::with_capacity(unit * output_units(&shape) as usize);
            for chunk in 0..shape.output_chunks() {
                match shape.expected(Rank(rank), chunk) {
                    Expected::Copied(from) => output.extend(part(from.rank.0 as usize, from.chunk)),
                    Expected::Reduced { chunk } => {
                        let (_, bytes) = known
                            .take_if(|(index, _)| *index == chunk)
                            .unwrap_or_else(|| (chunk, reduced(chunk)));
                        output.extend(&bytes);
                        known = Some((chunk, bytes));
                    }
                }
            }
            output
        })
        .collect()
}

/// One wrong element.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Wrong {
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

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Wrong { rank, element, chunk, expected, got } = self;
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
    pub first: Vec<Wrong>,
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

/// Compares results with what they should be, bit by bit. An element that is missing at the end of a result is
/// wrong (and shown as NaN); elements past the end are, too.
pub fn compare(
    shape: &Shape,
    count: u64,
    dtype: DType,
    expected: &[Vec<u8>],
    results: &[Vec<u8>],
) -> Comparison {
    let size = dtype.bytes();
    let length = chunk_elements(shape, count, dtype).max(1);
    let value = |element: Option<&[u8]>| element.and_then(|e| decode(e, dtype).next()).unwrap_or(f64::NAN);
    let mut comparison = Comparison::default();
    for rank in 0..expected.len().max(results.len()) {
        let none = Vec::new();
        let (expected, got) = (expected.get(rank).unwrap_or(&none), results.get(rank).unwrap_or(&none));
        let elements = expected.len().max(got.len()).div_ceil(size);
        comparison.elements += elements as u64;
        if expected == got {
            continue;
        }
        let at = |bytes: &'_ [u8], i: usize| bytes.get(i * size..(i + 1) * size).map(<[u8]>::to_vec);
        let mut shown = 0;
        for i in 0..elements {
            let (want, have) = (at(expected, i), at(got, i));
            if want.is_some() && want == have {
                continue;
            }
            comparison.wrong += 1;
            if shown < Comparison::SHOWN {
                shown += 1;
                let element = i as u64;
                let (unit, position) = (element / count.max(1), element % count.max(1));
                let chunk = unit * u64::from(shape.chunks) + position / length;
                comparison.first.push(Wrong {
                    rank: Rank(rank as u32),
                    element,
                    chunk: chunk as u32,
                    expected: value(want.as_deref()),
                    got: value(have.as_deref()),
                });
            }
        }
    }
    comparison
}
