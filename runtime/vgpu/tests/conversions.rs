//! Every conversion against exact arithmetic, exhaustively where a source has 16 bits or fewer.

#![allow(clippy::precedence, reason = "shifts and masks read best as in the PTX manual")]

use crate::common::apply::{R, apply};
use crate::common::exact::{BF16, E4M3, E5M2, F16, F32, F64, Fmt, MODES, Mode, SCALE};
use crate::common::kernel;
use num_bigint::BigInt;
use proptest::prelude::*;
use quadrille_vgpu::PtxModule;

const EIGHT: [Fmt; 2] = [E4M3, E5M2];

/// A value of one format in another.
fn convert(from: Fmt, to: Fmt, bits: u64, mode: Mode, finite: bool, relu: bool) -> u64 {
    if from.is_nan(bits) {
        return to.nan;
    }
    let negative = from.negative(bits);
    let sign = if negative { to.sign() } else { 0 };
    let result = if from.is_infinite(bits) {
        sign | (to.top + 1)
    } else {
        to.of(&from.value(bits), 0, negative, mode)
    };
    let overflow = to.magnitude(result) > to.top;
    let result = if finite && overflow { sign | to.top } else { result };
    if relu && negative { 0 } else { result }
}

fn all16() -> Vec<[u64; 3]> {
    (0..1 << 16).map(|v| [v, 0, 0]).collect()
}

#[test]
fn every_half_becomes_eight_bits() {
    let inputs: Vec<[u64; 3]> = (0..1u64 << 16).map(|v| [v | (v ^ 0x8001) << 16, 0, 0]).collect();
    for to in EIGHT {
        for from in [F16, BF16] {
            for relu in [false, true] {
                let name = format!(
                    "cvt.rn.satfinite{}.{}x2.{}x2",
                    if relu { ".relu" } else { "" },
                    to.name,
                    from.name
                );
                let table: Vec<u64> =
                    (0..1 << 16).map(|v| convert(from, to, v, Mode::Nearest, true, relu)).collect();
                for (got, input) in apply(&name, R::H, &[R::W], &inputs).into_iter().zip(&inputs) {
                    let (low, high) = (input[0] & 0xffff, input[0] >> 16);
                    let expected = table[low as usize] | table[high as usize] << 8;
                    assert_eq!(got, expected, "{name} of {:#x}", input[0]);
                }
            }
        }
    }
}

#[test]
fn every_eight_bits_become_a_half() {
    for from in EIGHT {
        for relu in [false, true] {
            let name = format!("cvt.rn{}.f16x2.{}x2", if relu { ".relu" } else { "" }, from.name);
            for (got, input) in apply(&name, R::W, &[R::H], &all16()).into_iter().zip(all16()) {
                let of = |v: u64| convert(from, F16, v & 0xff, Mode::Nearest, false, relu);
                assert_eq!(got, of(input[0]) | of(input[0] >> 8) << 16, "{name} of {:#x}", input[0]);
            }
        }
    }
}

#[test]
fn every_half_becomes_integers() {
    for from in [F16, BF16] {
        let exact: Vec<[i128; 4]> = (0..1 << 16).map(|v| integers(from, v)).collect();
        for (round, mode) in [("rni", 0), ("rzi", 1), ("rmi", 2), ("rpi", 3)] {
            for (to, low, high) in [
                ("u8", 0, i128::from(u8::MAX)),
                ("s8", i128::from(i8::MIN), i128::from(i8::MAX)),
                ("u16", 0, i128::from(u16::MAX)),
                ("s16", i128::from(i16::MIN), i128::from(i16::MAX)),
                ("u32", 0, i128::from(u32::MAX)),
                ("s32", i128::from(i32::MIN), i128::from(i32::MAX)),
                ("u64", 0, i128::from(u64::MAX)),
                ("s64", i128::from(i64::MIN), i128::from(i64::MAX)),
            ] {
                let name = format!("cvt.{round}.{to}.{}", from.name);
                let got = apply(&name, R::L, &[R::H], &all16());
                for (got, input) in got.into_iter().zip(all16()) {
                    let expected = if from.is_nan(input[0]) {
                        if to.ends_with("64") { 1 << 63 } else { 0 }
                    } else {
                        exact[input[0] as usize][mode].clamp(low, high)
                    };
                    assert_eq!(got, expected as u64, "{name} of {:#x}", input[0]);
                }
            }
        }
    }
}

/// The integers that a value rounds to: nearest, towards zero, down, up; infinities are large.
fn integers(f: Fmt, bits: u64) -> [i128; 4] {
    let negative = f.negative(bits);
    if f.is_nan(bits) || f.is_infinite(bits) {
        return [if negative { i128::MIN } else { i128::MAX }; 4];
    }
    let value = f.value(bits);
    let one = BigInt::from(1) << SCALE;
    // BigInt shifts right towards minus infinity.
    let floor: BigInt = &value >> SCALE;
    let rest = value - (&floor << SCALE);
    let ceil = if rest == BigInt::from(0) { floor.clone() } else { &floor + 1 };
    let twice = rest << 1;
    let odd = &floor % 2 != BigInt::from(0);
    let nearest = if twice > one || twice == one && odd { &ceil } else { &floor };
    let zero = if negative { &ceil } else { &floor };
    [nearest, zero, &floor, &ceil]
        .map(|v| i128::try_from(v).unwrap_or(if negative { i128::MIN } else { i128::MAX }))
}

fn bits32() -> impl Strategy<Value = u64> {
    // Any bits, and values near those that narrow formats have.
    prop_oneof![
        any::<u32>().prop_map(u64::from),
        (any::<u16>(), -3i32..4, 12u32..22).prop_map(|(h, d, s)| {
            let near = half::f16::from_bits(h).to_f32().to_bits();
            u64::from(near.wrapping_add_signed(d << s).wrapping_add_signed(d))
        }),
        any::<u16>().prop_map(|h| u64::from(half::bf16::from_bits(h).to_f32().to_bits() | 0x8000)),
    ]
}

fn inputs32() -> impl Strategy<Value = Vec<[u64; 3]>> {
    prop::collection::vec((bits32(), bits32()).prop_map(|(a, b)| [a, b, 0]), 64)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn singles_narrow(inputs in inputs32()) {
        for (to, rounds) in [
            (E4M3, &MODES[..1]), (E5M2, &MODES[..1]), (F16, &MODES[..2]), (BF16, &MODES[..2]),
        ] {
            for &(round, mode) in rounds {
                for (modifiers, finite, relu) in [
                    ("", false, false), (".relu", false, true), (".satfinite", true, false),
                    (".satfinite.relu", true, true), (".relu.satfinite", true, true),
                ] {
                    let eight = to.mantissa < 7;
                    if eight && !finite {
                        continue;
                    }
                    let name = format!("cvt.{round}{modifiers}.{}x2.f32", to.name);
                    let register = if eight { R::H } else { R::W };
                    let got = apply(&name, register, &[R::F, R::F], &inputs);
                    let width = if eight { 8 } else { 16 };
                    for (got, &[a, b, _]) in got.into_iter().zip(&inputs) {
                        let of = |v| convert(F32, to, v, mode, finite, relu);
                        prop_assert_eq!(got, of(b) | of(a) << width, "{} of {:#x}, {:#x}", name, a, b);
                    }
                    if !eight {
                        let name = format!("cvt.{round}{modifiers}.{}.f32", to.name);
                        for (got, &[a, ..]) in apply(&name, R::H, &[R::F], &inputs).into_iter().zip(&inputs) {
                            prop_assert_eq!(got, convert(F32, to, a, mode, finite, relu), "{} of {:#x}", name, a);
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn formats_become_each_other(inputs in inputs32(), wide in prop::collection::vec(any::<u64>(), 64)) {
        let halves: Vec<[u64; 3]> = inputs.iter().map(|i| [i[0] >> 13 & 0xffff, 0, 0]).collect();
        let wide: Vec<[u64; 3]> = wide.into_iter().map(|v| [v, 0, 0]).collect();
        for (round, mode) in MODES {
            for (to, from, d, a, inputs) in [
                (BF16, F16, R::H, R::H, &halves), (F16, BF16, R::H, R::H, &halves),
                (F32, F64, R::F, R::D, &wide), (F16, F64, R::H, R::D, &wide),
                (F16, F32, R::H, R::F, &inputs), (BF16, F32, R::H, R::F, &inputs),
            ] {
                let name = format!("cvt.{round}.{}.{}", to.name, from.name);
                for (got, input) in apply(&name, d, &[a], inputs).into_iter().zip(inputs) {
                    prop_assert_eq!(got, convert(from, to, input[0], mode, false, false), "{} of {:#x}", name, input[0]);
                }
            }
        }
        // tf32: the upper 19 bits of an f32, also rounded with ties away from zero.
        let tf32 = Fmt { name: "tf32", exponent: 8, mantissa: 10, top: 0x3_fbff, nan: 0x7fff_ffff, infinite: true };
        for (name, mode, finite) in [
            ("cvt.rn.tf32.f32", Some(Mode::Nearest), false), ("cvt.rz.tf32.f32", Some(Mode::Zero), false),
            ("cvt.rna.tf32.f32", None, false), ("cvt.rna.satfinite.tf32.f32", None, true),
        ] {
            for (got, input) in apply(name, R::W, &[R::F], &inputs).into_iter().zip(&inputs) {
                let v = input[0];
                let expected = if F32.is_nan(v) {
                    0x7fff_ffff
                } else if let Some(mode) = mode {
                    convert(F32, tf32, v, mode, finite, false) << 13
                } else {
                    let rounded = (v + 0x1000) & 0xffff_e000;
                    if F32.is_infinite(v) || F32.magnitude(rounded) > F32.top {
                        v & F32.sign() | if finite { 0x7f7f_e000 } else { 0x7f80_0000 }
                    } else {
                        rounded
                    }
                };
                prop_assert_eq!(got, expected, "{} of {:#x}", name, v);
            }
        }
    }

    #[test]
    fn integers_become_floats(values in prop::collection::vec((any::<i64>(), 0u32..64).prop_map(|(v, s)| v >> s), 64)) {
        let inputs: Vec<[u64; 3]> = values.iter().map(|&v| [v as u64, 0, 0]).collect();
        for (round, mode) in MODES {
            for (to, d) in [(F16, R::H), (BF16, R::H), (F32, R::F), (F64, R::D)] {
                for from in ["u64", "s64", "u32", "s32", "u16", "s16", "u8", "s8"] {
                    let name = format!("cvt.{round}.{}.{from}", to.name);
                    for (got, &v) in apply(&name, d, &[R::L], &inputs).into_iter().zip(&values) {
                        let v: i128 = match from {
                            "u64" => (v as u64).into(), "s64" => v.into(), "u32" => (v as u32).into(),
                            "s32" => (v as i32).into(), "u16" => (v as u16).into(), "s16" => (v as i16).into(),
                            "u8" => (v as u8).into(), _ => (v as i8).into(),
                        };
                        let expected = to.of(&(BigInt::from(v) << SCALE), 0, false, mode);
                        prop_assert_eq!(got, expected, "{} of {}", name, v);
                    }
                }
            }
        }
    }

    #[test]
    fn wide_floats_become_integers(values in prop::collection::vec(prop_oneof![any::<f64>(), -1e10..1e10, -300.0..300.0, Just(f64::NAN)], 64)) {
        let inputs: Vec<[u64; 3]> = values.iter().map(|v| [v.to_bits(), 0, 0]).collect();
        for (round, mode) in [("rni", 0), ("rzi", 1), ("rmi", 2), ("rpi", 3)] {
            for (to, bits, signed) in [("u8", 8, false), ("s16", 16, true), ("u32", 32, false), ("s32", 32, true), ("u64", 64, false), ("s64", 64, true)] {
                let name = format!("cvt.{round}.{to}.f64");
                let (low, high) = if signed { (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1) } else { (0, (1i128 << bits) - 1) };
                for (got, v) in apply(&name, R::L, &[R::D], &inputs).into_iter().zip(&values) {
                    let nan = if signed { low } else { 1 << (bits - 1) };
                    let expected = if v.is_nan() { nan } else { integers(F64, v.to_bits())[mode].clamp(low, high) };
                    prop_assert_eq!(got, expected as u64, "{} of {}", name, v);
                }
            }
        }
    }

    #[test]
    fn integers_saturate(values in prop::collection::vec((any::<i64>(), 0u32..64).prop_map(|(v, s)| v >> s), 64)) {
        let inputs: Vec<[u64; 3]> = values.iter().map(|&v| [v as u64, 0, 0]).collect();
        for (to, low, high) in [("u8", 0, 255), ("s8", -128, 127), ("u16", 0, 65535), ("s32", i64::from(i32::MIN), i64::from(i32::MAX)), ("u32", 0, i64::from(u32::MAX))] {
            for (got, &v) in apply(&format!("cvt.sat.{to}.s64"), R::L, &[R::L], &inputs).into_iter().zip(&values) {
                prop_assert_eq!(got, v.clamp(low, high) as u64, "{} of {}", to, v);
            }
        }
    }

    #[test]
    fn floats_saturate_and_flush(inputs in inputs32()) {
        for (got, input) in apply("cvt.sat.f32.f32", R::F, &[R::F], &inputs).into_iter().zip(&inputs) {
            let v = f32::from_bits(input[0] as u32);
            let expected = if v > 0.0 { v.min(1.0).to_bits() } else { 0 };
            prop_assert_eq!(got, u64::from(expected));
        }
        for (got, input) in apply("cvt.rni.ftz.f32.f32", R::F, &[R::F], &inputs).into_iter().zip(&inputs) {
            let v = f32::from_bits(input[0] as u32);
            let v = if v.is_subnormal() { 0f32.copysign(v) } else { v };
            prop_assert!(got == u64::from(v.round_ties_even().to_bits()) || v.is_nan());
        }
    }
}

#[test]
fn a_conversion_that_must_round_says_how() {
    let refused = |body: &str| PtxModule::parse(&kernel(body)).is_err();
    assert!(refused("cvt.f16.f32 %h1, %f1;"));
    assert!(refused("cvt.f32.s32 %f0, %r1;"));
    assert!(refused("cvt.rn.e4m3x2.f32 %h1, %f1, %f1;"));
    assert!(!refused("cvt.f64.f32 %fd1, %f1;"));
}
