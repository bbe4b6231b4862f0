//! What results of users' own data may be, and whether they are.
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

use quadrille_compiler::dtype::{DType, RedOp, Scalar};
use quadrille_compiler::ids::Rank;
use quadrille_compiler::kind::{Contribution, Expected};
use quadrille_runtime::data::{Message, decode};
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
    /// What is larger becomes infinity: half a step above the largest number.
    limit: f64,
}

impl Precision {
    fn of(dtype: DType) -> Precision {
        let roundoff = |bits: u32| (-f64::from(bits)).exp2();
        let (smallest, largest) = match dtype {
            DType::Bf16 => (f32::from_bits(0x0001_0000).into(), f32::from_bits(0x7f7f_0000).into()),
            DType::F16 => (roundoff(24), 65504.0),
            DType::F64 => (f64::from_bits(1), f64::MAX),
            // Integers do not come here.
            _ => (f32::from_bits(1).into(), f32::MAX.into()),
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

/// What one element may be.
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
    /// What `op` may make of `values` in any order, computed in f32 and stored as `dtype`, or in f64.
    fn result(values: impl Iterator<Item = f64>, op: RedOp, dtype: DType, ranks: u32) -> Allowed {
        match op {
            RedOp::Prod => Allowed::product(values, dtype),
            RedOp::Avg => Allowed::sum(values, dtype, 1.0).over(ranks, dtype),
            RedOp::PremulSum(Scalar(factor)) => {
                let factor = if dtype == DType::F64 { factor } else { f64::from(factor as f32) };
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

/// What an element must be.
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
type Chunk = (Rank, u32);

/// Judges what ranks received. `inputs` and `outputs` are of each rank, as long as the message says. What may hold
/// anything is passed over.
pub(crate) fn judge(message: &Message, op: RedOp, inputs: &[Vec<u8>], outputs: &[Vec<u8>]) -> Judgement {
    let reference = message.reference(op, inputs);
    let message = &message.coarsest();
    let ordered = !message.dtype.is_float() || matches!(op, RedOp::Min | RedOp::Max);
    let mut judgement = Judgement::default();
    // All ranks of an all-reduce receive the same: it is computed once.
    let mut results: BTreeMap<Vec<Contribution>, Vec<Chunk>> = BTreeMap::new();
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
fn part<'a>(message: &Message, buffers: &'a [Vec<u8>], rank: Rank, chunk: u32) -> &'a [u8] {
    let buffer = buffers.get(rank.0 as usize).map_or(&[][..], Vec::as_slice);
    let range = message.chunk_bytes(chunk);
    &buffer[range.start.min(buffer.len())..range.end.min(buffer.len())]
}

/// Compares with the reference: bits, but of a combined floating-point value the number.
fn exactly(
    message: &Message,
    reference: &[Vec<u8>],
    outputs: &[Vec<u8>],
    (rank, chunk): Chunk,
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
    message: &Message,
    op: RedOp,
    inputs: &[Vec<u8>],
    outputs: &[Vec<u8>],
    from: &[Contribution],
    chunks: &[Chunk],
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
mod tests {
    use super::*;
    use half::bf16;
    use quadrille_compiler::kind::{Kind, Shape};

    fn sum(values: &[f64], dtype: DType) -> Allowed {
        Allowed::result(values.iter().copied(), RedOp::Sum, dtype, 2)
    }

    /// Numbers of all magnitudes and both signs; the same for the same `n`.
    fn numbers(n: u64) -> impl Iterator<Item = f32> {
        let mut state = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        std::iter::repeat_with(move || {
            // A xorshift generator (Marsaglia).
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let value = (state >> 40) as f32 / 1000.0 * 2f32.powi((state % 40) as i32 - 20);
            if state & 64 == 0 { value } else { -value }
        })
    }

    /// Added pair by pair, in an order that `n` decides, and rounded to the type each time.
    fn added(values: &[f32], dtype: DType, n: u64) -> f64 {
        let mut parts = values.to_vec();
        let mut random = numbers(n ^ 0x5555).map(|value| value.abs().to_bits() as usize);
        while parts.len() > 1 {
            let mut take = || parts.swap_remove(random.next().unwrap_or(0) % parts.len());
            let sum = take() + take();
            parts.push(match dtype {
                DType::F32 => sum,
                _ => bf16::from_f32(sum).to_f32(),
            });
        }
        f64::from(parts[0])
    }

    #[test]
    fn every_order_of_additions_is_admitted_and_little_more() {
        for dtype in [DType::F32, DType::Bf16] {
            let mut most = 0.0f64;
            for n in 0..2000 {
                let count = 2 + n as usize % 15;
                let values: Vec<f32> = numbers(n)
                    .take(count)
                    .map(|value| if dtype == DType::F32 { value } else { bf16::from_f32(value).to_f32() })
                    .collect();
                let allowed = sum(&values.iter().map(|&value| f64::from(value)).collect::<Vec<_>>(), dtype);
                for order in 0..4 {
                    let got = added(&values, dtype, n * 4 + order);
                    assert!(allowed.admits(got), "{dtype} {values:?}: {got}, {allowed}");
                    most = most.max(allowed.used(got));
                }
                let range = allowed.finite.clone().unwrap();
                let bound = range.end() - allowed.value;
                for outside in
                    [allowed.value + 1.01 * bound, allowed.value - 1.01 * bound, f64::NAN, f64::INFINITY]
                {
                    assert!(!allowed.admits(outside), "{outside}, {allowed}");
                }
            }
            // The bound is not so wide that nothing could miss it.
            assert!((0.2..=1.0).contains(&most), "{dtype}: {most}");
        }
    }

    #[test]
    fn one_number_is_itself() {
        let allowed = sum(&[1.5], DType::Bf16);
        assert!(allowed.admits(1.5) && !allowed.admits(1.5 + f64::EPSILON));
        let largest = sum(&[f64::from(f32::MAX)], DType::F32);
        assert!(!largest.admits(f64::INFINITY));
    }

    #[test]
    fn nan_and_infinity_are_as_ieee_says() {
        let (nan, inf, max) = (f64::NAN, f64::INFINITY, f64::from(f32::MAX));
        // What may come out of it: NaN, positive infinity, negative infinity, zero.
        let cases: [(&[f64], [bool; 4]); 11] = [
            (&[nan, 1.0], [true, false, false, false]),
            (&[nan, inf], [true, false, false, false]),
            (&[inf, 1.0], [false, true, false, false]),
            (&[-inf, 1.0], [false, false, true, false]),
            (&[inf, -inf, 1.0], [true, false, false, false]),
            (&[max, -max], [false, false, false, true]),
            // Only together do they overflow; so the order decides.
            (&[max, max, -max, -max], [true, true, true, true]),
            (&[max, max], [false, true, false, false]),
            (&[-max, -max], [false, false, true, false]),
            (&[max, max, -max], [false, true, false, false]),
            // Before the infinity comes, the others may have made the other one.
            (&[inf, -max, -max], [true, true, false, false]),
        ];
        for (values, may) in cases {
            let allowed = sum(values, DType::F32);
            assert_eq!([nan, inf, -inf, 0.0].map(|value| allowed.admits(value)), may, "{values:?}");
        }
        // Where the finite sum is admitted, too.
        assert!(sum(&[max, max, -max], DType::F32).admits(max));
        let bf16_max = f64::from(f32::from_bits(0x7f7f_0000));
        assert!(sum(&[bf16_max, bf16_max / 256.0], DType::Bf16).admits(inf));
        assert!(!sum(&[bf16_max / 2.0, 1.0], DType::Bf16).admits(inf));
    }

    #[test]
    fn numbers_that_underflow_are_within_half_of_the_smallest() {
        let tiny = f64::from(f32::from_bits(0x0001_0000));
        // The f32 sum of these is between two numbers of bf16.
        let allowed = sum(&[tiny, tiny / 2.0], DType::Bf16);
        assert!(allowed.admits(tiny) && allowed.admits(2.0 * tiny) && !allowed.admits(3.0 * tiny));
    }

    fn message(kind: Kind, count: u64) -> Message {
        let shape = Shape::new(kind, 2, 2);
        Message { shape, contract: None, divisible: false, count, dtype: DType::F32 }
    }

    fn bytes(lists: &[&[f32]]) -> Vec<Vec<u8>> {
        lists.iter().map(|list| list.iter().flat_map(|value| value.to_le_bytes()).collect()).collect()
    }

    #[test]
    fn every_wrong_element_is_found_and_told() {
        let inputs = bytes(&[&[1.0, 2.0], &[10.0, 20.0]]);
        let judge = |kind, count, outputs: &[&[f32]]| {
            judge(&message(kind, count), RedOp::Sum, &inputs, &bytes(outputs))
        };
        let right = judge(Kind::AllReduce, 2, &[&[11.0, 22.0], &[11.0, 22.0]]);
        assert_eq!((right.exact, right.rounded, right.wrong), (0, 4, 0));
        let wrong = judge(Kind::AllReduce, 2, &[&[11.0, 22.0], &[11.0, 12.0]]);
        assert_eq!(wrong.wrong, 1);
        assert!(wrong.to_string().contains("\n  rank 1: element 1 is 12, must be 22 to within "), "{wrong}");
        let right = judge(Kind::ReduceScatter, 1, &[&[11.0], &[22.0]]);
        assert_eq!((right.rounded, right.wrong), (2, 0));
        assert_eq!(judge(Kind::ReduceScatter, 1, &[&[22.0], &[11.0]]).wrong, 2);
        let right = judge(Kind::AllToAll, 1, &[&[1.0, 10.0], &[2.0, 20.0]]);
        assert_eq!((right.exact, right.rounded, right.wrong), (4, 0, 0));
        let wrong = judge(Kind::AllToAll, 1, &[&[1.0, 10.0], &[20.0, 2.0]]);
        let told = "rank 1: element 0 is 20 (0x41a00000), must be 2 (0x40000000)";
        assert!(wrong.wrong == 2 && wrong.to_string().contains(told), "{wrong}");
        // What is missing is wrong, also where a NaN would be right.
        assert_eq!(judge(Kind::AllGather, 2, &[&[1.0, 2.0, 10.0, 20.0], &[1.0, 2.0, 10.0]]).wrong, 1);
        let nan = bytes(&[&[f32::NAN], &[1.0]]);
        let short = super::judge(&message(Kind::AllReduce, 1), RedOp::Sum, &nan, &bytes(&[&[f32::NAN], &[]]));
        assert_eq!(short.wrong, 1);
    }

    #[test]
    fn copies_of_nan_have_its_bits() {
        let nan = |bits: u32| f32::from_bits(bits);
        let inputs = bytes(&[&[nan(0x7fc0_0001)], &[]]);
        let judge = |got| {
            judge(&message(Kind::Broadcast, 1), RedOp::Sum, &inputs, &bytes(&[&[nan(0x7fc0_0001)], &[got]]))
        };
        assert_eq!(judge(nan(0x7fc0_0001)).wrong, 0);
        let wrong = judge(nan(0x7fc0_0000));
        assert!(
            wrong.wrong == 1 && wrong.to_string().contains("is NaN (0x7fc00000), must be NaN (0x7fc00001)"),
            "{wrong}"
        );
    }

    #[test]
    fn a_few_differences_a_rank_are_shown() {
        let inputs = bytes(&[&[1.0; 100], &[1.0; 100]]);
        let outputs = bytes(&[&[0.0; 100], &[2.0; 100]]);
        let wrong = judge(&message(Kind::AllReduce, 100), RedOp::Sum, &inputs, &outputs);
        let text = wrong.to_string();
        assert!(
            text.starts_with("100 of 200 elements are wrong") && text.ends_with("\n  and 92 more"),
            "{text}"
        );
    }

    #[test]
    fn other_operators_are_judged_by_their_own_arithmetic() {
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        let of = |op, values: &[f64]| Allowed::result(values.iter().copied(), op, DType::F32, 4);
        let near = |allowed: Allowed, value: f64| {
            allowed.admits(value)
                && !allowed.admits(value * 1.001)
                && !allowed.admits(nan)
                && !allowed.admits(inf)
        };
        assert!(near(of(RedOp::Avg, &[1.0, 2.0, 3.0, 5.0]), 2.75));
        assert!(near(of(RedOp::PremulSum(Scalar(0.5)), &[1.0, 2.0, 4.0]), 3.5));
        assert!(near(of(RedOp::Prod, &[3.0, -2.0, 0.5]), -3.0));
        assert!(of(RedOp::Prod, &[0.0, 3.0]).admits(0.0) && !of(RedOp::Prod, &[0.0, 3.0]).admits(1e-30));
        // The order decides whether it overflows, or vanishes, on the way.
        let wide = of(RedOp::Prod, &[1e30, 1e30, 1e-30, 1e-30]);
        assert!(wide.admits(1.0) && wide.admits(inf) && wide.admits(nan) && !wide.admits(-inf));
        assert!(of(RedOp::Prod, &[inf, 0.0]).admits(nan) && !of(RedOp::Prod, &[inf, 0.0]).admits(0.0));
        let infinite = of(RedOp::Prod, &[inf, -2.0]);
        assert!(
            infinite.admits(-inf) && !infinite.admits(inf) && !infinite.admits(nan) && !infinite.admits(0.0)
        );
    }

    #[test]
    fn integers_and_extremes_are_exact() {
        let message = |dtype| Message { dtype, ..message(Kind::AllReduce, 2) };
        let integers = |list: &[i32]| list.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
        let inputs = [integers(&[i32::MAX, 1]), integers(&[1, 2])];
        let judge = |outputs: &[Vec<u8>]| super::judge(&message(DType::I32), RedOp::Sum, &inputs, outputs);
        let right = integers(&[i32::MIN, 3]);
        assert_eq!(
            (judge(&[right.clone(), right.clone()]).exact, judge(&[right.clone(), right.clone()]).wrong),
            (4, 0)
        );
        assert_eq!(judge(&[right, integers(&[i32::MIN, 4])]).wrong, 1);
        let inputs = bytes(&[&[f32::NAN, -0.0], &[1.0, 0.0]]);
        let judge = |outputs: &[&[f32]]| {
            super::judge(&message(DType::F32), RedOp::Max, &inputs, &bytes(outputs)).wrong
        };
        assert_eq!(judge(&[&[f32::from_bits(0x7fc0_1234), 0.0], &[f32::NAN, -0.0]]), 0);
        assert_eq!(judge(&[&[1.0, 0.0], &[f32::NAN, 1e-45]]), 2);
    }
}
