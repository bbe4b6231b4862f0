use super::*;
use half::bf16;
use quadrille_compiler::program::kind::{Kind, Shape};

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

fn message(kind: Kind, count: u64) -> TestMessage {
    let shape = Shape::new(kind, 2, 2);
    TestMessage { shape, contract: None, divisible: false, count, dtype: DType::F32 }
}

fn bytes(lists: &[&[f32]]) -> Vec<Vec<u8>> {
    lists.iter().map(|list| list.iter().flat_map(|value| value.to_le_bytes()).collect()).collect()
}

#[test]
fn every_wrong_element_is_found_and_told() {
    let inputs = bytes(&[&[1.0, 2.0], &[10.0, 20.0]]);
    let judge =
        |kind, count, outputs: &[&[f32]]| judge(&message(kind, count), RedOp::Sum, &inputs, &bytes(outputs));
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
    assert!(text.starts_with("100 of 200 elements are wrong") && text.ends_with("\n  and 92 more"), "{text}");
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
    assert!(infinite.admits(-inf) && !infinite.admits(inf) && !infinite.admits(nan) && !infinite.admits(0.0));
}

#[test]
fn integers_and_extremes_are_exact() {
    let message = |dtype| TestMessage { dtype, ..message(Kind::AllReduce, 2) };
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
    let judge =
        |outputs: &[&[f32]]| super::judge(&message(DType::F32), RedOp::Max, &inputs, &bytes(outputs)).wrong;
    assert_eq!(judge(&[&[f32::from_bits(0x7fc0_1234), 0.0], &[f32::NAN, -0.0]]), 0);
    assert_eq!(judge(&[&[1.0, 0.0], &[f32::NAN, 1e-45]]), 2);
}
