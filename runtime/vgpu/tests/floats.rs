//! Floating-point arithmetic against exact arithmetic on big integers, in every format and direction of rounding.

#![allow(clippy::precedence, reason = "shifts and masks read best as in the PTX manual")]

use std::cmp::Ordering;

use crate::common::apply::{R, apply, apply_body};
use crate::common::exact::{BF16, F16, F32, F64, Fmt, MODES, Mode, SCALE};
use num_bigint::BigInt;
use proptest::prelude::*;

fn register(f: Fmt) -> R {
    match f.name {
        "f32" => R::F,
        "f64" => R::D,
        _ => R::H,
    }
}

/// Bits of all kinds: any, near powers of two, subnormal, special, and close to each other.
fn bits(f: Fmt) -> impl Strategy<Value = u64> {
    let all = f.sign() | (f.sign() - 1);
    let sign = f.sign();
    prop_oneof![
        4 => any::<u64>().prop_map(move |v| v & all),
        2 => (any::<u64>(), -2i64..3).prop_map(move |(v, d)| {
            ((v & all) >> f.mantissa << f.mantissa).wrapping_add_signed(d) & all
        }),
        1 => (any::<bool>(), 0u64..4).prop_map(move |(s, v)| v | if s { sign } else { 0 }),
        1 => (any::<bool>(), any::<u64>()).prop_map(move |(s, v)| {
            v & ((1 << f.mantissa) - 1) | if s { sign } else { 0 }
        }),
        1 => (any::<bool>(), 0u64..4).prop_map(move |(s, v)| (f.top - 1 + v) | if s { sign } else { 0 }),
        // Around one, where sums cancel.
        2 => (any::<bool>(), -8i64..8).prop_map(move |(s, v)| {
            let one = ((1u64 << (f.exponent - 1)) - 1) << f.mantissa;
            one.wrapping_add_signed(v) | if s { sign } else { 0 }
        }),
    ]
}

fn triples(f: Fmt) -> impl Strategy<Value = Vec<[u64; 3]>> {
    prop::collection::vec((bits(f), bits(f), bits(f)).prop_map(|(a, b, c)| [a, b, c]), 48)
}

#[derive(Clone, Copy, Debug, Default)]
struct Extra {
    flush: bool,
    saturate: bool,
    relu: bool,
}

fn flushed(f: Fmt, extra: Extra, v: u64) -> u64 {
    if extra.flush && f.is_subnormal(v) { v & f.sign() } else { v }
}

/// `a * b + c` by definition.
fn fma(f: Fmt, a: u64, b: u64, c: u64, mode: Mode) -> Option<u64> {
    let infinite = |negative: bool| Some(if negative { f.sign() } else { 0 } | (f.top + 1));
    if [a, b, c].iter().any(|&v| f.is_nan(v)) {
        return None;
    }
    let negative = f.negative(a) != f.negative(b);
    if f.is_infinite(a) || f.is_infinite(b) {
        if f.magnitude(a) == 0 || f.magnitude(b) == 0 || f.is_infinite(c) && f.negative(c) != negative {
            return None;
        }
        return infinite(negative);
    }
    if f.is_infinite(c) {
        return infinite(f.negative(c));
    }
    let product = f.value(a) * f.value(b);
    let zero = BigInt::from(0);
    let sum = &product + (f.value(c) << SCALE);
    // A zero that is exact has the sign of its terms, if they agree.
    let zero_negative = if product == zero && f.magnitude(c) == 0 && negative == f.negative(c) {
        negative
    } else {
        mode == Mode::Down
    };
    Some(f.of(&sum, SCALE, zero_negative, mode))
}

fn finish(f: Fmt, extra: Extra, v: Option<u64>) -> u64 {
    let one = ((1u64 << (f.exponent - 1)) - 1) << f.mantissa;
    match v {
        None if extra.saturate => 0,
        None => f.nan,
        Some(v) => {
            let v = flushed(f, extra, v);
            if (extra.saturate || extra.relu) && f.negative(v) {
                0
            } else if extra.saturate {
                v.min(one)
            } else {
                v
            }
        }
    }
}

fn expected(op: &str, f: Fmt, [a, b, c]: [u64; 3], mode: Mode, extra: Extra) -> u64 {
    let [a, b, c] = [a, b, c].map(|v| flushed(f, extra, v));
    let one = ((1u64 << (f.exponent - 1)) - 1) << f.mantissa;
    let result = match op {
        // A product with one, and a sum with a zero of the sign that changes nothing.
        "add" => fma(f, a, one, b, mode),
        "sub" => fma(f, a, one, b ^ f.sign(), mode),
        "mul" => fma(f, a, b, (a ^ b) & f.sign(), mode),
        _ => fma(f, a, b, c, mode),
    };
    finish(f, extra, result)
}

fn same(f: Fmt, got: u64, expected: u64) -> bool {
    // The NaN of f64 has no canonical form.
    got == expected || f.name == "f64" && expected == 0 && f.is_nan(got)
}

fn check(
    op: &str,
    f: Fmt,
    inputs: &[[u64; 3]],
    mode: (&str, Mode),
    extra: Extra,
) -> Result<(), TestCaseError> {
    let modifiers = [(extra.flush, ".ftz"), (extra.saturate, ".sat"), (extra.relu, ".relu")];
    let modifiers: String = modifiers.iter().filter(|m| m.0).map(|m| m.1).collect();
    let name = format!("{op}.{}{modifiers}.{}", mode.0, f.name);
    let sources = if op == "fma" { 3 } else { 2 };
    let got = apply(&name, register(f), &[register(f); 3][..sources], inputs);
    for (got, &input) in got.into_iter().zip(inputs) {
        let expected = expected(op, f, input, mode.1, extra);
        let nan = f.name == "f64" && expected == f.nan && f.is_nan(got);
        prop_assert!(
            nan || same(f, got, expected),
            "{name} of {input:#x?}: {got:#x}, expected {expected:#x}"
        );
    }
    Ok(())
}

/// Both halves of a packed form are the single form.
fn check_packed(op: &str, f: Fmt, inputs: &[[u64; 3]], extra: Extra) -> Result<(), TestCaseError> {
    let modifiers = [(extra.flush, ".ftz"), (extra.saturate, ".sat"), (extra.relu, ".relu")];
    let modifiers: String = modifiers.iter().filter(|m| m.0).map(|m| m.1).collect();
    let name = format!("{op}.rn{modifiers}.{}x2", f.name);
    let sources = if op == "fma" { 3 } else { 2 };
    let width = f.exponent + f.mantissa + 1;
    let pairs: Vec<[u64; 3]> =
        inputs.chunks_exact(2).map(|p| std::array::from_fn(|i| p[0][i] | p[1][i] << width)).collect();
    let register = if width == 32 { R::L } else { R::W };
    let got = apply(&name, register, &[register; 3][..sources], &pairs);
    for (got, pair) in got.into_iter().zip(inputs.chunks_exact(2)) {
        let [low, high] = [0, 1].map(|i| expected(op, f, pair[i], Mode::Nearest, extra));
        prop_assert_eq!(got, low | high << width, "{} of {:#x?}", name, pair);
    }
    Ok(())
}

const OPS: [&str; 4] = ["add", "sub", "mul", "fma"];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn f32_in_every_direction(inputs in triples(F32)) {
        for op in OPS {
            for mode in MODES {
                for extra in [
                    Extra::default(),
                    Extra { flush: true, ..Extra::default() },
                    Extra { flush: true, saturate: true, ..Extra::default() },
                ] {
                    check(op, F32, &inputs, mode, extra)?;
                }
            }
        }
    }

    #[test]
    fn f64_in_every_direction(inputs in triples(F64)) {
        for op in OPS {
            for mode in MODES {
                check(op, F64, &inputs, mode, Extra::default())?;
            }
        }
    }

    #[test]
    fn halves_round_once(f16 in triples(F16), bf16 in triples(BF16)) {
        let nearest = MODES[0];
        let flush = Extra { flush: true, ..Extra::default() };
        let saturate = Extra { saturate: true, ..Extra::default() };
        for op in OPS {
            check(op, BF16, &bf16, nearest, Extra::default())?;
            check_packed(op, BF16, &bf16, Extra::default())?;
            for extra in [Extra::default(), flush, saturate] {
                check(op, F16, &f16, nearest, extra)?;
                check_packed(op, F16, &f16, extra)?;
            }
        }
        let relu = Extra { relu: true, ..Extra::default() };
        check("fma", F16, &f16, nearest, relu)?;
        check("fma", BF16, &bf16, nearest, relu)?;
        check_packed("fma", F16, &f16, Extra { flush: true, ..relu })?;
        check_packed("fma", BF16, &bf16, relu)?;
    }

    #[test]
    fn pairs_of_f32(inputs in triples(F32)) {
        for op in OPS {
            check_packed(op, F32, &inputs, Extra::default())?;
            check_packed(op, F32, &inputs, Extra { flush: true, ..Extra::default() })?;
        }
    }

    #[test]
    fn quotients_and_roots(f32s in triples(F32), f64s in triples(F64)) {
        for (f, inputs) in [(F32, &f32s), (F64, &f64s)] {
            let r = register(f);
            for (name, mode) in MODES {
                let quotients = apply(&format!("div.{name}.{}", f.name), r, &[r, r], inputs);
                let reciprocals = apply(&format!("rcp.{name}.{}", f.name), r, &[r], inputs);
                let roots = apply(&format!("sqrt.{name}.{}", f.name), r, &[r], inputs);
                let one = ((1u64 << (f.exponent - 1)) - 1) << f.mantissa;
                for (i, &[a, b, _]) in inputs.iter().enumerate() {
                    for (got, a, b, what) in [(quotients[i], a, b, "div"), (reciprocals[i], one, a, "rcp")] {
                        let expected = divide(f, a, b, mode).unwrap_or(f.nan);
                        let nan = expected == f.nan && f.is_nan(got);
                        prop_assert!(nan || got == expected, "{what}.{name} {a:#x} {b:#x}: {got:#x}, {expected:#x}");
                    }
                    let expected = root(f, a, mode).unwrap_or(f.nan);
                    let nan = expected == f.nan && f.is_nan(roots[i]);
                    prop_assert!(nan || roots[i] == expected, "sqrt.{name} {a:#x}: {:#x}, {expected:#x}", roots[i]);
                }
            }
        }
    }

    #[test]
    fn extremes(f32s in triples(F32), f16s in triples(F16), bf16s in triples(BF16), f64s in triples(F64)) {
        for (f, inputs) in [(F32, &f32s), (F16, &f16s), (BF16, &bf16s), (F64, &f64s)] {
            let r = register(f);
            for max in [false, true] {
                let head = if max { "max" } else { "min" };
                for (modifiers, nan, abs, xorsign, flush, sources) in [
                    ("", false, false, false, false, 2),
                    (".NaN", true, false, false, false, 2),
                    (".xorsign.abs", false, true, true, false, 2),
                    (".NaN.xorsign.abs", true, true, true, false, 2),
                    (".ftz", false, false, false, true, 2),
                    (".ftz.NaN", true, false, false, true, 2),
                    ("", false, false, false, false, 3),
                    (".NaN", true, false, false, false, 3),
                    (".abs", false, true, false, false, 3),
                    (".ftz.NaN.abs", true, true, false, true, 3),
                ] {
                    if f.name == "f64" && (!modifiers.is_empty() || sources == 3)
                        || f.name != "f32" && sources == 3
                        || f.name == "bf16" && flush
                    {
                        continue;
                    }
                    let name = format!("{head}{modifiers}.{}", f.name);
                    let got = apply(&name, r, &[r; 3][..sources], inputs);
                    let of = |input: &[u64; 3]| {
                        extreme(f, max, nan, abs, xorsign, &input.map(|v| flushed(f, Extra { flush, ..Extra::default() }, v))[..sources])
                    };
                    for (&got, input) in got.iter().zip(inputs) {
                        let expected = of(input);
                        prop_assert!(same(f, got, expected) || f.is_nan(expected) && f.name == "f64" && f.is_nan(got),
                            "{name} of {input:#x?}: {got:#x}, expected {expected:#x}");
                    }
                    if f.exponent + f.mantissa == 15 {
                        let pairs: Vec<[u64; 3]> = inputs.chunks_exact(2)
                            .map(|p| std::array::from_fn(|i| p[0][i] | p[1][i] << 16)).collect();
                        let packed = apply(&format!("{name}x2"), R::W, &[R::W; 2], &pairs);
                        for (packed, both) in packed.into_iter().zip(got.chunks_exact(2)) {
                            prop_assert_eq!(packed, both[0] | both[1] << 16);
                        }
                    }
                }
            }
        }
    }
}

fn divide(f: Fmt, a: u64, b: u64, mode: Mode) -> Option<u64> {
    if f.is_nan(a) || f.is_nan(b) || f.is_infinite(a) && f.is_infinite(b) {
        return None;
    }
    let negative = f.negative(a) != f.negative(b);
    let sign = if negative { f.sign() } else { 0 };
    match (f.magnitude(a), f.magnitude(b)) {
        (0, 0) => return None,
        (0, _) => return Some(sign),
        (_, 0) => return Some(sign | (f.top + 1)),
        _ if f.is_infinite(a) => return Some(sign | (f.top + 1)),
        _ if f.is_infinite(b) => return Some(sign),
        _ => {}
    }
    let (x, y) = (f.value(f.magnitude(a)) << SCALE, f.value(f.magnitude(b)));
    Some(f.round(negative, mode, |q| x.cmp(&(q * &y))))
}

fn root(f: Fmt, a: u64, mode: Mode) -> Option<u64> {
    if f.magnitude(a) == 0 {
        return Some(a);
    }
    if f.is_nan(a) || f.negative(a) {
        return None;
    }
    if f.is_infinite(a) {
        return Some(a);
    }
    let x = f.value(a) << SCALE;
    Some(f.round(false, mode, |r| x.cmp(&(r * r))))
}

/// The manual's pseudo-code.
fn extreme(f: Fmt, max: bool, nan: bool, abs: bool, xorsign: bool, values: &[u64]) -> u64 {
    let sign = (values[0] ^ values[1]) & f.sign();
    let below = |x: u64, y: u64| match f.value(x).cmp(&f.value(y)) {
        Ordering::Equal => f.negative(x) && !f.negative(y),
        order => order == Ordering::Less,
    };
    let value = |v: u64| if abs { f.magnitude(v) } else { v };
    let finite = |v: u64| if f.is_infinite(v) { v - 1 } else { v };
    let pick = |x: u64, y: u64| match (f.is_nan(x), f.is_nan(y)) {
        (true, true) => f.nan | (f.top + 2) & if f.nan == 0 { u64::MAX } else { 0 },
        (true, false) => {
            if nan {
                f.nan
            } else {
                y
            }
        }
        (false, true) => {
            if nan {
                f.nan
            } else {
                x
            }
        }
        _ => {
            // Infinities compare as their neighbours, except with those.
            let first =
                if finite(x) == finite(y) { (x < y) != f.negative(x) } else { below(finite(x), finite(y)) };
            if first != max { x } else { y }
        }
    };
    let result = values[1..].iter().fold(value(values[0]), |d, &v| pick(d, value(v)));
    if xorsign && !f.is_nan(result) { f.magnitude(result) | sign } else { result }
}

#[test]
fn mixed_precision_and_other_forms() {
    let inputs: Vec<[u64; 3]> = [(1.5f32, 0x3e00u64), (1e-8, 0x0001), (-2.0, 0xfbff), (f32::MAX, 0x7bff)]
        .iter()
        .map(|&(c, h)| [h, u64::from(c.to_bits()), h ^ 0x8000])
        .collect();
    let half = |v: u64| half::f16::from_bits(v as u16).to_f32();
    let got = apply("add.rn.f32.f16", R::F, &[R::H, R::F], &inputs);
    for (got, i) in got.into_iter().zip(&inputs) {
        assert_eq!(f32::from_bits(got as u32), half(i[0]) + f32::from_bits(i[1] as u32));
    }
    let swapped: Vec<[u64; 3]> = inputs.iter().map(|i| [i[0], i[2], i[1]]).collect();
    let got = apply("fma.rz.f32.f16", R::F, &[R::H, R::H, R::F], &swapped);
    for (got, i) in got.into_iter().zip(&swapped) {
        let widened = i.map(|v| u64::from(half(v).to_bits()));
        let expected = expected("fma", F32, [widened[0], widened[1], i[2]], Mode::Zero, Extra::default());
        assert_eq!(got, expected);
    }
}

#[test]
fn approximations_are_close() {
    let values: Vec<[u64; 3]> =
        (0..400).map(|i| [u64::from((f32::from(i as i16) * 0.05 - 9.0).to_bits()), 0, 0]).collect();
    type Function = fn(f32) -> f32;
    let functions: [(&str, Function); 6] = [
        ("ex2", f32::exp2),
        ("tanh", f32::tanh),
        ("sin", f32::sin),
        ("cos", f32::cos),
        ("lg2", f32::log2),
        ("rsqrt", |v| 1.0 / v.sqrt()),
    ];
    for (name, function) in functions {
        let got = apply(&format!("{name}.approx.f32"), R::F, &[R::F], &values);
        for (got, v) in got.into_iter().zip(&values) {
            let (got, expected) = (f32::from_bits(got as u32), function(f32::from_bits(v[0] as u32)));
            let near = (got - expected).abs() <= 1e-5 * expected.abs().max(1.0);
            assert!(near || got == expected || got.is_nan() && expected.is_nan(), "{name}: {got} {expected}");
        }
    }
    for (name, f) in
        [("ex2.approx.f16x2", F16), ("tanh.approx.bf16x2", BF16), ("ex2.approx.ftz.bf16x2", BF16)]
    {
        let narrow = |v: f32| {
            if f.name == "f16" { half::f16::from_f32(v).to_bits() } else { half::bf16::from_f32(v).to_bits() }
        };
        let wide = |v: u16| {
            if f.name == "f16" { half::f16::from_bits(v).to_f32() } else { half::bf16::from_bits(v).to_f32() }
        };
        let pairs: Vec<[u64; 3]> = values
            .iter()
            .map(|v| {
                let half = u64::from(narrow(f32::from_bits(v[0] as u32)));
                [half | (half ^ 0x8000) << 16, 0, 0]
            })
            .collect();
        let got = apply(name, R::W, &[R::W], &pairs);
        for (got, v) in got.into_iter().zip(&pairs) {
            for shift in [0, 16] {
                let x = wide((v[0] >> shift) as u16);
                let expected = if name.starts_with("ex2") { x.exp2() } else { x.tanh() };
                let got = wide((got >> shift) as u16);
                assert!(
                    (got - expected).abs() <= expected.abs() / 100.0 + 1e-6,
                    "{name} {x}: {got} {expected}"
                );
            }
        }
    }
    // Only the upper half of the f64 takes part.
    let got = apply("rcp.approx.ftz.f64", R::D, &[R::D], &[[3f64.to_bits() | 0xffff_ffff, 0, 0]]);
    assert_eq!(got[0] & 0xffff_ffff, 0);
    assert!((f64::from_bits(got[0]) - 1.0 / 3.0).abs() < 1e-5);
}

#[test]
fn kinds_of_floats() {
    let values =
        [0.0f32, -0.0, 1.0, -1.5, 1e-40, -1e-40, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::MAX];
    let inputs: Vec<[u64; 3]> = values.iter().map(|v| [v.to_bits().into(), 0, 0]).collect();
    type Test = fn(f32) -> bool;
    let tests: [(&str, Test); 6] = [
        ("finite", f32::is_finite),
        ("infinite", f32::is_infinite),
        ("number", |v| !v.is_nan()),
        ("notanumber", f32::is_nan),
        ("normal", |v| v.is_normal() || v == 0.0),
        ("subnormal", f32::is_subnormal),
    ];
    for (name, test) in tests {
        let expected: Vec<u64> = values.iter().map(|&v| test(v).into()).collect();
        assert_eq!(apply(&format!("testp.{name}.f32"), R::P, &[R::F], &inputs), expected, "{name}");
        let wide: Vec<[u64; 3]> = values
            .iter()
            .map(|&v| [if v.is_subnormal() { 1 } else { f64::from(v).to_bits() }, 0, 0])
            .collect();
        assert_eq!(apply(&format!("testp.{name}.f64"), R::P, &[R::D], &wide), expected, "{name}");
    }
}

#[test]
fn packed_comparisons() {
    let pairs = [(1.0f32, 1.0f32), (1.0, 2.0), (2.0, 1.0), (f32::NAN, 1.0), (0.0, -0.0)];
    let inputs: Vec<[u64; 3]> = pairs
        .iter()
        .flat_map(|&(a, b)| pairs.iter().map(move |&(c, d)| (a, b, c, d)))
        .map(|(a, b, c, d)| {
            let pack = |low: f32, high: f32| {
                let bits = |v| u64::from(half::f16::from_f32(v).to_bits());
                bits(low) | bits(high) << 16
            };
            [pack(a, c), pack(b, d), u64::from(a < c)]
        })
        .collect();
    type Holds = fn(f32, f32) -> bool;
    let comparisons: [(&str, Holds); 5] = [
        ("eq", |a, b| a == b),
        ("lt", |a, b| a < b),
        ("ge", |a, b| a >= b),
        ("neu", |a, b| a != b),
        ("ltu", |a, b| a < b || a.is_nan() || b.is_nan()),
    ];
    for (name, holds) in comparisons {
        let of = |input: &[u64; 3]| {
            let value = |v: u64, s: u32| half::f16::from_bits((v >> s) as u16).to_f32();
            [0, 16].map(|s| holds(value(input[0], s), value(input[1], s)))
        };
        let ones = apply(&format!("set.{name}.f16x2.f16x2"), R::W, &[R::W; 2], &inputs);
        let masks = apply(&format!("set.{name}.u32.f16x2"), R::W, &[R::W; 2], &inputs);
        let both = apply_body(
            &format!(
                "setp.{name}.and.f16x2 %p0|%p1, %r1, %r2, %p3; selp.u32 %r0, 1, 0, %p0; @%p1 add.u32 %r0, %r0, 2;"
            ),
            R::W,
            &[R::W, R::W, R::P],
            &inputs,
        );
        for (i, input) in inputs.iter().enumerate() {
            let [low, high] = of(input);
            let pack = |v: u64| u64::from(low) * v | (u64::from(high) * v) << 16;
            assert_eq!(ones[i], pack(0x3c00), "{name} {input:#x?}");
            assert_eq!(masks[i], pack(0xffff), "{name} {input:#x?}");
            let c = input[2] != 0;
            assert_eq!(both[i], u64::from(low && c) | u64::from(high && c) << 1, "{name} {input:#x?}");
        }
    }
}
