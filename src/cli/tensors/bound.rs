//! Bounds of results of users' own data, and the check of results against them.
//!
//! What is copied must be the same bits, NaNs included. Integers, minima and maxima do not depend on the order of
//! operations, and must be what the reference has. What rounds depends on that order, which a kind does not prescribe; so
//! any result is right that *some* order gives:
//! - a sum of n finite values with n - 1 roundings of relative error u each differs from the exact one by at most
//!   ((1 + u)^(n - 1) - 1) * (|x1| + .. + |xn|), whatever the order (Higham, Accuracy and Stability of Numerical
//!   Algorithms, 2nd ed., section 4.2), and by half the smallest number of the type for each rounding that underflows;
//!   a product likewise by that part of |x1 * .. * xn|;
//! - a NaN, or infinities of both signs, make the sum a NaN; infinities of one sign make that infinity;
//! - an infinity of a sign may also come from finite values, where those of that sign together may overflow.
//!
//! The results are computed here in f64, whose own error is added to the bound.

use quadrille_compiler::program::dtype::{DType, ElementClass, RedOp, Scalar};
use quadrille_compiler::program::ids::Rank;
use quadrille_compiler::program::kind::{Contribution, Expected};
use quadrille_testing::data::{TestMessage, decode};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;

/// Differences of a rank that are shown.
const SHOWN: usize = 8;

/// How a floating-point type rounds.
#[derive(Clone, Copy, Debug)]
struct Precision {
    /// ln(1 + u) over all roundings of one operation: that of its arithmetic, and that of storing where the type is
    /// narrower. A rounding to nearest has u = 2^-p with p significant bits.
    growth: f64,
    /// The smallest positive number.
    smallest: f64,
    /// Larger numbers become infinity: half a step above the largest number.
    limit: f64,
}

impl Precision {
    fn of(dtype: DType) -> Precision {
        let roundoff = |bits: u32| (-f64::from(bits)).exp2();
        let (smallest, largest) = match dtype.class() {
            ElementClass::Float(format) => (format.smallest, format.largest),
            // Integers do not come here.
            ElementClass::Signed | ElementClass::Unsigned => (f64::from_bits(1), f64::MAX),
        };
        let own = roundoff(dtype.exact_bits());
        let single = roundoff(DType::F32.exact_bits());
        let growth = if own > single { own.ln_1p() + single.ln_1p() } else { own.ln_1p() };
        Precision { growth, smallest, limit: largest * (1.0 + own / 2.0) }
    }

    /// The relative error that so many operations make at most.
    fn error(self, operations: f64) -> f64 {
        (operations * self.growth).exp_m1()
    }
}

/// The values that one element may have.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Allowed {
    /// Finite numbers.
    finite: Option<RangeInclusive<f64>>,
    /// The result in f64.
    value: f64,
    nan: bool,
    /// Positive infinity.
    plus: bool,
    /// Negative infinity.
    minus: bool,
}

impl Allowed {
    /// Returns the results of `op` over `values` in any order, computed in f32 and stored as `dtype`, or in f64.
    fn result(values: impl Iterator<Item = f64>, op: RedOp, dtype: DType, ranks: u32) -> Allowed {
        match op {
            RedOp::Prod => Allowed::product(values, dtype),
            RedOp::Avg => Allowed::sum(values, dtype, 1.0).over(ranks, dtype),
            RedOp::PremulSum(Scalar(factor)) => {
                let factor =
                    if dtype.computed_in() == DType::F64 { factor } else { f64::from(factor as f32) };
                Allowed::sum(values.map(|value| value * factor), dtype, 2.0)
            }
            RedOp::Sum | RedOp::Min | RedOp::Max => Allowed::sum(values, dtype, 0.0),
        }
    }

    /// `further` operations touch a summand beside its additions.
    fn sum(values: impl Iterator<Item = f64>, dtype: DType, further: f64) -> Allowed {
        let precision = Precision::of(dtype);
        // Of each sign the sum of the absolute values, and how many there are.
        let (mut positive, mut negative, mut sum, mut count) = ((0.0, 0u32), (0.0, 0u32), 0.0, 0u32);
        let (mut nan, mut plus, mut minus) = (false, false, false);
        for value in values {
            count += 1;
            nan |= value.is_nan();
            plus |= value == f64::INFINITY;
            minus |= value == f64::NEG_INFINITY;
            if value.is_finite() {
                sum += value;
                let part = if value > 0.0 { &mut positive } else { &mut negative };
                *part = (part.0 + value.abs(), part.1 + 1);
            }
        }
        let operations = f64::from(count.saturating_sub(1)) + further;
        let error = precision.error(operations);
        let double = operations * f64::EPSILON;
        let underflow =
            (f64::from(count.saturating_sub(1)) + further * f64::from(count)) * precision.smallest / 2.0;
        let bound = (error + double) * (positive.0 + negative.0) + underflow;
        // It takes an operation.
        let overflows = |(part, numbers): (f64, u32)| {
            f64::from(numbers) + further > 1.0 && part * (1.0 + error) > precision.limit
        };
        let (up, down) = (plus || overflows(positive), minus || overflows(negative));
        let special = nan || plus || minus;
        Allowed {
            finite: (!special).then(|| around(sum, bound)),
            value: match (nan || plus && minus, plus, minus) {
                (true, ..) => f64::NAN,
                (_, true, _) => f64::INFINITY,
                (_, _, true) => f64::NEG_INFINITY,
                _ => sum,
            },
            nan: nan || up && down,
            plus: up && !nan && !minus,
            minus: down && !nan && !plus,
        }
    }

    /// A sum, divided by the number of ranks.
    fn over(self, ranks: u32, dtype: DType) -> Allowed {
        let (n, half) = (f64::from(ranks), Precision::of(dtype).smallest / 2.0);
        let finite = self.finite.map(|range| range.start() / n - half..=range.end() / n + half);
        Allowed { finite, value: self.value / n, ..self }
    }

    fn product(values: impl Iterator<Item = f64>, dtype: DType) -> Allowed {
        let precision = Precision::of(dtype);
        let (mut product, mut large, mut small, mut count) = (1.0, 1.0, 1.0, 0u32);
        let (mut infinite, mut zero) = (false, false);
        for value in values {
            count += 1;
            product *= value;
            infinite |= value.is_infinite();
            zero |= value == 0.0;
            // What some order may reach on the way.
            large *= value.abs().max(1.0);
            small *= value.abs().min(1.0);
        }
        let operations = f64::from(count.saturating_sub(1));
        let error = precision.error(operations);
        let bound = (error + operations * f64::EPSILON) * product.abs()
            + operations * precision.smallest / 2.0 * large * (1.0 + error);
        let overflows = infinite || count > 1 && large * (1.0 + error) > precision.limit;
        let vanishes = zero || count > 1 && small * (1.0 - error) < precision.smallest;
        let nan = product.is_nan();
        let negative = product.is_sign_negative();
        Allowed {
            finite: (!nan && !infinite).then(|| around(product, bound)),
            value: product,
            nan: nan || overflows && vanishes,
            plus: !nan && overflows && !negative,
            minus: !nan && overflows && negative,
        }
    }

    fn admits(&self, value: f64) -> bool {
        match value {
            value if value.is_nan() => self.nan,
            f64::INFINITY => self.plus,
            f64::NEG_INFINITY => self.minus,
            value => self.finite.as_ref().is_some_and(|range| range.contains(&value)),
        }
    }

    /// How far a value is from the result in f64, as a fraction of the bound.
    fn used(&self, value: f64) -> f64 {
        match &self.finite {
            Some(range) if value.is_finite() && value != self.value => {
                (value - self.value).abs() / (range.end() - self.value)
            }
            _ => 0.0,
        }
    }
}

/// The numbers that are no further than `bound` from a value; all, where f64 itself overflows.
fn around(value: f64, bound: f64) -> RangeInclusive<f64> {
    if value.is_finite() && bound.is_finite() { value - bound..=value + bound } else { f64::MIN..=f64::MAX }
}

impl fmt::Display for Allowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.value)?;
        match &self.finite {
            Some(range) if range.start() < range.end() => {
                write!(f, " to within {:.3e}", range.end() - self.value)
            }
            _ => Ok(()),
        }
    }
}

/// One wrong element.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Difference {
    rank: Rank,
    /// Its index in the rank's result.
    element: u64,
    got: f64,
    must: Must,
}

/// The value that an element must have.
#[derive(Clone, PartialEq, Debug)]
enum Must {
    /// In some order of operations.
    Rounded(Allowed),
    /// These bits.
    Exactly { got: String, bits: String, value: f64 },
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference { rank, element, got, must } = self;
        write!(f, "rank {}: element {element} is {got}", rank.0)?;
        match must {
            Must::Rounded(allowed) => write!(f, ", must be {allowed}"),
            Must::Exactly { got, bits, value } => write!(f, " ({got}), must be {value} ({bits})"),
        }
    }
}

/// How results relate to what they may be.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Judgement {
    /// Elements compared with the one thing that they can be.
    pub(crate) exact: u64,
    /// Elements that depend on the order of operations.
    pub(crate) rounded: u64,
    /// Elements that are wrong.
    pub(crate) wrong: u64,
    /// The largest difference of a right element that rounds, as a fraction of what it may be.
    pub(crate) used: f64,
    first: Vec<Difference>,
}

impl Judgement {
    fn add(&mut self, difference: Difference) {
        self.wrong += 1;
        if self.first.iter().filter(|known| known.rank == difference.rank).count() < SHOWN {
            self.first.push(difference);
        }
    }
}

/// A line for each of the first differences, and how many more there are.
impl fmt::Display for Judgement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} elements are wrong", self.wrong, self.exact + self.rounded)?;
        for difference in &self.first {
            write!(f, "\n  {difference}")?;
        }
        match self.wrong - self.first.len() as u64 {
            0 => Ok(()),
            more => write!(f, "\n  and {more} more"),
        }
    }
}

/// A chunk of a rank's result.
type BoundChunk = (Rank, u32);

/// Judges what ranks received. `inputs` and `outputs` are of each rank, as long as the message says. What may hold
/// anything is passed over.
pub(crate) fn judge(message: &TestMessage, op: RedOp, inputs: &[Vec<u8>], outputs: &[Vec<u8>]) -> Judgement {
    let reference = message.reference(op, inputs);
    let message = &message.coarsest();
    let ordered = !message.dtype.is_float() || matches!(op, RedOp::Min | RedOp::Max);
    let mut judgement = Judgement::default();
    // All ranks of an all-reduce receive the same: it is computed once.
    let mut results: BTreeMap<Vec<Contribution>, Vec<BoundChunk>> = BTreeMap::new();
    for (rank, chunk) in message.shape.outputs() {
        let combined = match message.expected(rank, chunk) {
            Expected::Unspecified => continue,
            Expected::Copied(_) => None,
            Expected::Reduced { chunk } => {
                Some((0..message.shape.ranks).map(|rank| Contribution { rank: Rank(rank), chunk }).collect())
            }
            Expected::Combined(inputs) => Some(inputs.to_vec()),
        };
        match combined {
            Some(inputs) if !ordered => results.entry(inputs).or_default().push((rank, chunk)),
            combined => {
                exactly(message, &reference, outputs, (rank, chunk), combined.is_some(), &mut judgement)
            }
        }
    }
    for (from, chunks) in results {
        rounded(message, op, inputs, outputs, &from, &chunks, &mut judgement);
    }
    judgement
}

/// The bytes of a chunk; fewer where the buffer is too short.
fn part<'a>(message: &TestMessage, buffers: &'a [Vec<u8>], rank: Rank, chunk: u32) -> &'a [u8] {
    let buffer = buffers.get(rank.0 as usize).map_or(&[][..], Vec::as_slice);
    let range = message.chunk_bytes(chunk);
    &buffer[range.start.min(buffer.len())..range.end.min(buffer.len())]
}

/// Compares with the reference: bits, but of a combined floating-point value the number.
fn exactly(
    message: &TestMessage,
    reference: &[Vec<u8>],
    outputs: &[Vec<u8>],
    (rank, chunk): BoundChunk,
    combined: bool,
    judgement: &mut Judgement,
) {
    let (size, dtype) = (message.dtype.bytes(), message.dtype);
    let range = message.chunk_bytes(chunk);
    let must = part(message, reference, rank, chunk);
    let got = part(message, outputs, rank, chunk);
    judgement.exact += (range.len() / size) as u64;
    if must == got {
        return;
    }
    for i in 0..range.len() / size {
        let at =
            |bytes: &'_ [u8]| bytes.get(i * size..(i + 1) * size).map(<[u8]>::to_vec).unwrap_or_default();
        let (must, got) = (at(must), at(got));
        let value = |bytes: &[u8]| decode(bytes, dtype).next().unwrap_or(f64::NAN);
        let equal = |a: f64, b: f64| a == b || a.is_nan() && b.is_nan();
        let same = combined && dtype.is_float() && equal(value(&must), value(&got));
        if !got.is_empty() && (must == got || same) {
            continue;
        }
        let bits = |bytes: &[u8]| match bytes {
            [] => "missing".to_owned(),
            bytes => bytes.iter().rev().fold("0x".to_owned(), |text, byte| text + &format!("{byte:02x}")),
        };
        judgement.add(Difference {
            rank,
            element: (range.start / size + i) as u64,
            got: value(&got),
            must: Must::Exactly { got: bits(&got), bits: bits(&must), value: value(&must) },
        });
    }
}

fn rounded(
    message: &TestMessage,
    op: RedOp,
    inputs: &[Vec<u8>],
    outputs: &[Vec<u8>],
    from: &[Contribution],
    chunks: &[BoundChunk],
    judgement: &mut Judgement,
) {
    let (dtype, size, ranks) = (message.dtype, message.dtype.bytes(), message.shape.ranks);
    let mut values: Vec<_> =
        from.iter().map(|input| decode(part(message, inputs, input.rank, input.chunk), dtype)).collect();
    let mut results: Vec<_> =
        chunks.iter().map(|&(rank, chunk)| decode(part(message, outputs, rank, chunk), dtype)).collect();
    let elements = chunks.first().map_or(0, |&(_, chunk)| message.chunk_bytes(chunk).len() / size);
    for i in 0..elements {
        let allowed = Allowed::result(values.iter_mut().filter_map(Iterator::next), op, dtype, ranks);
        for (&(rank, chunk), result) in chunks.iter().zip(&mut results) {
            judgement.rounded += 1;
            let got = result.next();
            match got.filter(|&got| allowed.admits(got)) {
                Some(got) => judgement.used = judgement.used.max(allowed.used(got)),
                None => judgement.add(Difference {
                    rank,
                    element: (message.chunk_bytes(chunk).start / size + i) as u64,
                    got: got.unwrap_or(f64::NAN),
                    must: Must::Rounded(allowed.clone()),
                }),
            }
        }
    }
}

#[cfg(test)]
mod tests;
