//! What results of users' own data may be, and whether they are. What is copied must be the same bits, NaNs included.
//! What is summed depends on the order of additions, which a kind does not prescribe, so any result is right that
//! *some* order gives:
//! - a sum of n finite values with n - 1 roundings of relative error u each differs from the exact one by at most
//!   ((1 + u)^(n - 1) - 1) * (|x1| + .. + |xn|), whatever the order (Higham, Accuracy and Stability of Numerical
//!   Algorithms, 2nd ed., section 4.2), and by half the smallest number of the type for each rounding that underflows;
//! - a NaN, or infinities of both signs, make a NaN; infinities of one sign make that infinity;
//! - an infinity of a sign may also come from finite values, where those of that sign together may overflow.
//!
//! Sums are computed here in f64, whose own error is added to the bound.

use quadrille_compiler::dtype::{DType, RedOp};
use quadrille_compiler::ids::{Buffer, Rank};
use quadrille_compiler::kind::{Contribution, Expected, Shape};
use quadrille_runtime::data::{Message, decode};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;

/// Differences of a rank that are shown.
const SHOWN: usize = 8;

/// What a floating-point type can hold.
#[derive(Clone, Copy, Debug)]
struct Precision {
    /// Largest relative error of one rounding to nearest: 2^-p with p significant bits.
    roundoff: f64,
    /// The smallest positive number.
    smallest: f64,
    /// The largest finite number.
    largest: f64,
}

const SINGLE: Precision = Precision {
    roundoff: 1.0 / (1u64 << 24) as f64,
    smallest: f32::from_bits(1) as f64,
    largest: f32::MAX as f64,
};

impl Precision {
    fn of(dtype: DType) -> Precision {
        match dtype {
            DType::F32 => SINGLE,
            DType::Bf16 => Precision {
                roundoff: 1.0 / 256.0,
                smallest: f64::from(f32::from_bits(0x0001_0000)),
                largest: f64::from(f32::from_bits(0x7f7f_0000)),
            },
        }
    }
}

/// What one element may be.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Allowed {
    /// Finite numbers.
    finite: Option<RangeInclusive<f64>>,
    /// The sum in f64.
    sum: f64,
    nan: bool,
    /// Positive infinity.
    plus: bool,
    /// Negative infinity.
    minus: bool,
}

impl Allowed {
    /// What the sum of `values` may be, added in any order in `dtype`, or in f32 and stored as `dtype`.
    fn sum(values: impl Iterator<Item = f64>, dtype: DType) -> Allowed {
        let Precision { roundoff, smallest, largest } = Precision::of(dtype);
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
        let roundings = f64::from(count.saturating_sub(1));
        // Of f32 itself there is one rounding an addition, of a narrower type one more where the sum is stored.
        let stored = if dtype == DType::F32 { 0.0 } else { roundoff.ln_1p() };
        let growth = (roundings * (SINGLE.roundoff.ln_1p() + stored)).exp_m1();
        let double = roundings * f64::EPSILON;
        let bound = (growth + double) * (positive.0 + negative.0) + roundings * smallest / 2.0;
        // Half a step above the largest number rounding makes infinity; and it takes an addition.
        let overflows = |(part, numbers): (f64, u32)| {
            numbers > 1 && part * (1.0 + growth) > largest * (1.0 + roundoff / 2.0)
        };
        let (up, down) = (plus || overflows(positive), minus || overflows(negative));
        let special = nan || plus || minus;
        Allowed {
            finite: (!special).then_some(sum - bound..=sum + bound),
            sum: match (nan || plus && minus, plus, minus) {
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

    fn admits(&self, value: f64) -> bool {
        match value {
            value if value.is_nan() => self.nan,
            f64::INFINITY => self.plus,
            f64::NEG_INFINITY => self.minus,
            value => self.finite.as_ref().is_some_and(|range| range.contains(&value)),
        }
    }

    /// How far a value is from the sum, as a fraction of the bound.
    fn used(&self, value: f64) -> f64 {
        match &self.finite {
            Some(range) if value.is_finite() && value != self.sum => {
                (value - self.sum).abs() / (range.end() - self.sum)
            }
            _ => 0.0,
        }
    }
}

impl fmt::Display for Allowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.sum)?;
        match &self.finite {
            Some(range) if range.start() < range.end() => {
                write!(f, " to within {:.3e}", range.end() - self.sum)
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
    Sum(Allowed),
    /// The bits of another one.
    Copy {
        got: String,
        bits: String,
        value: f64,
        rank: Rank,
        element: u64,
    },
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference { rank, element, got, must } = self;
        write!(f, "rank {}: element {element} is {got}", rank.0)?;
        match must {
            Must::Sum(allowed) => write!(f, ", must be {allowed}"),
            Must::Copy { got, bits, value, rank, element } => write!(
                f,
                " ({got}), must be {value} ({bits}), as is element {element} of rank {}'s input",
                rank.0
            ),
        }
    }
}

/// How results relate to what they may be.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Judgement {
    /// Elements compared bit by bit.
    pub(crate) copied: u64,
    /// Elements compared with a sum.
    pub(crate) summed: u64,
    /// Elements that are wrong.
    pub(crate) wrong: u64,
    /// The largest difference of a right sum from that in f64, as a fraction of what it may be.
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
        write!(f, "{} of {} elements are wrong", self.wrong, self.copied + self.summed)?;
        for difference in &self.first {
            write!(f, "\n  {difference}")?;
        }
        match self.wrong - self.first.len() as u64 {
            0 => Ok(()),
            more => write!(f, "\n  and {more} more"),
        }
    }
}

/// A unit of a rank's result.
#[derive(Clone, Copy, Debug)]
struct Unit {
    rank: Rank,
    index: u32,
}

/// A message's shape with one chunk a unit: what a rank contributes and receives, wherever it lies.
fn in_units(shape: &Shape) -> Shape {
    Shape { chunks: 1, in_place: false, ..*shape }
}

/// Units that a rank receives.
pub(crate) fn output_units(shape: &Shape, rank: Rank) -> u32 {
    in_units(shape).units(Buffer::Output, rank)
}

/// Judges what ranks received. `inputs` and `outputs` are of each rank, as long as the message says.
pub(crate) fn judge(message: &Message, op: RedOp, inputs: &[Vec<u8>], outputs: &[Vec<u8>]) -> Judgement {
    let shape = in_units(&message.shape);
    let mut judgement = Judgement::default();
    // All ranks of an all-reduce receive the same sum: it is computed once.
    let mut sums: BTreeMap<u32, Vec<Unit>> = BTreeMap::new();
    for rank in (0..shape.ranks).map(Rank) {
        for index in 0..output_units(&shape, rank) {
            let unit = Unit { rank, index };
            match shape.expected(rank, index) {
                Expected::Copied(from) => copied(message, inputs, outputs, unit, from, &mut judgement),
                Expected::Reduced { chunk } => sums.entry(chunk).or_default().push(unit),
            }
        }
    }
    for (chunk, units) in sums {
        match op {
            RedOp::Sum => summed(message, inputs, outputs, chunk, &units, &mut judgement),
        }
    }
    judgement
}

/// The bytes of a unit; fewer where the buffer is too short.
fn unit<'a>(message: &Message, buffers: &'a [Vec<u8>], rank: Rank, index: u32) -> &'a [u8] {
    let bytes = message.count as usize * message.dtype.bytes();
    let buffer = buffers.get(rank.0 as usize).map_or(&[][..], Vec::as_slice);
    let start = (index as usize * bytes).min(buffer.len());
    &buffer[start..(start + bytes).min(buffer.len())]
}

fn copied(
    message: &Message,
    inputs: &[Vec<u8>],
    outputs: &[Vec<u8>],
    Unit { rank, index }: Unit,
    from: Contribution,
    judgement: &mut Judgement,
) {
    let must = unit(message, inputs, from.rank, from.chunk);
    let got = unit(message, outputs, rank, index);
    judgement.copied += message.count;
    if must == got {
        return;
    }
    let (size, dtype) = (message.dtype.bytes(), message.dtype);
    for i in 0..message.count {
        let at = |bytes: &'_ [u8]| bytes.get(i as usize * size..(i as usize + 1) * size).map(<[u8]>::to_vec);
        let (must, got) = (at(must).unwrap_or_default(), at(got).unwrap_or_default());
        if must == got && !got.is_empty() {
            continue;
        }
        let value = |bytes: &[u8]| decode(bytes, dtype).next().unwrap_or(f64::NAN);
        let bits = |bytes: &[u8]| match bytes {
            [] => "missing".to_owned(),
            bytes => bytes.iter().rev().fold("0x".to_owned(), |text, byte| text + &format!("{byte:02x}")),
        };
        judgement.add(Difference {
            rank,
            element: u64::from(index) * message.count + i,
            got: value(&got),
            must: Must::Copy {
                got: bits(&got),
                bits: bits(&must),
                value: value(&must),
                rank: from.rank,
                element: u64::from(from.chunk) * message.count + i,
            },
        });
    }
}

fn summed(
    message: &Message,
    inputs: &[Vec<u8>],
    outputs: &[Vec<u8>],
    chunk: u32,
    units: &[Unit],
    judgement: &mut Judgement,
) {
    let dtype = message.dtype;
    let ranks = (0..message.shape.ranks).map(Rank);
    let mut values: Vec<_> = ranks.map(|rank| decode(unit(message, inputs, rank, chunk), dtype)).collect();
    let mut results: Vec<_> =
        units.iter().map(|at| decode(unit(message, outputs, at.rank, at.index), dtype)).collect();
    for i in 0..message.count {
        let allowed = Allowed::sum(values.iter_mut().filter_map(Iterator::next), dtype);
        for (at, result) in units.iter().zip(&mut results) {
            judgement.summed += 1;
            let got = result.next();
            match got.filter(|&got| allowed.admits(got)) {
                Some(got) => judgement.used = judgement.used.max(allowed.used(got)),
                None => judgement.add(Difference {
                    rank: at.rank,
                    element: u64::from(at.index) * message.count + i,
                    got: got.unwrap_or(f64::NAN),
                    must: Must::Sum(allowed.clone()),
                }),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use half::bf16;
    use quadrille_compiler::kind::Kind;

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
                DType::Bf16 => bf16::from_f32(sum).to_f32(),
            });
        }
        f64::from(parts[0])
    }

    #[test]
    fn every_order_of_additions_is_admitted_and_little_more() {
        for dtype in DType::ALL {
            let mut most = 0.0f64;
            for n in 0..2000 {
                let count = 2 + n as usize % 15;
                let values: Vec<f32> = numbers(n)
                    .take(count)
                    .map(|value| if dtype == DType::F32 { value } else { bf16::from_f32(value).to_f32() })
                    .collect();
                let allowed = Allowed::sum(values.iter().map(|&value| f64::from(value)), dtype);
                for order in 0..4 {
                    let sum = added(&values, dtype, n * 4 + order);
                    assert!(allowed.admits(sum), "{dtype} {values:?}: {sum}, {allowed}");
                    most = most.max(allowed.used(sum));
                }
                let range = allowed.finite.clone().unwrap();
                let bound = range.end() - allowed.sum;
                for outside in
                    [allowed.sum + 1.01 * bound, allowed.sum - 1.01 * bound, f64::NAN, f64::INFINITY]
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
        let allowed = Allowed::sum([1.5].into_iter(), DType::Bf16);
        assert!(allowed.admits(1.5) && !allowed.admits(1.5 + f64::EPSILON));
        let largest = Allowed::sum([f64::from(f32::MAX)].into_iter(), DType::F32);
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
            let allowed = Allowed::sum(values.iter().copied(), DType::F32);
            assert_eq!([nan, inf, -inf, 0.0].map(|value| allowed.admits(value)), may, "{values:?}");
        }
        // Where the finite sum is admitted, too.
        assert!(Allowed::sum([max, max, -max].into_iter(), DType::F32).admits(max));
        let bf16_max = f64::from(f32::from_bits(0x7f7f_0000));
        assert!(Allowed::sum([bf16_max, bf16_max / 256.0].into_iter(), DType::Bf16).admits(inf));
        assert!(!Allowed::sum([bf16_max / 2.0, 1.0].into_iter(), DType::Bf16).admits(inf));
    }

    #[test]
    fn numbers_that_underflow_are_within_half_of_the_smallest() {
        let tiny = f64::from(f32::from_bits(0x0001_0000));
        // The f32 sum of these is between two numbers of bf16.
        let allowed = Allowed::sum([tiny, tiny / 2.0].into_iter(), DType::Bf16);
        assert!(allowed.admits(tiny) && allowed.admits(2.0 * tiny) && !allowed.admits(3.0 * tiny));
    }

    fn message(kind: Kind, count: u64) -> Message {
        let shape = Shape { kind, ranks: 2, chunks: 2, in_place: false, root: Rank(0) };
        Message { shape, divisible: false, count, dtype: DType::F32 }
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
        assert_eq!((right.copied, right.summed, right.wrong), (0, 4, 0));
        let wrong = judge(Kind::AllReduce, 2, &[&[11.0, 22.0], &[11.0, 12.0]]);
        assert_eq!(wrong.wrong, 1);
        assert!(wrong.to_string().contains("\n  rank 1: element 1 is 12, must be 22 to within "), "{wrong}");
        let right = judge(Kind::ReduceScatter, 1, &[&[11.0], &[22.0]]);
        assert_eq!((right.summed, right.wrong), (2, 0));
        assert_eq!(judge(Kind::ReduceScatter, 1, &[&[22.0], &[11.0]]).wrong, 2);
        let right = judge(Kind::AllToAll, 1, &[&[1.0, 10.0], &[2.0, 20.0]]);
        assert_eq!((right.copied, right.summed, right.wrong), (4, 0, 0));
        let wrong = judge(Kind::AllToAll, 1, &[&[1.0, 10.0], &[20.0, 2.0]]);
        let told =
            "rank 1: element 0 is 20 (0x41a00000), must be 2 (0x40000000), as is element 1 of rank 0's input";
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
}
