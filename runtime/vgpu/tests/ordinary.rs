//! Ordinary kernels, compiled by three versions of NVRTC for three targets, against the same computation on the CPU.

#![allow(clippy::precedence, reason = "shifts and masks read best as in the PTX manual")]

use crate::common::exact::{F32, F64, Fmt, Mode, SCALE};
use crate::common::{Bytes, Gpu};
use half::f16;
use quadrille_vgpu::Config;

/// Modules of compute_80, compute_90 and compute_100.
const MODULES: [&str; 3] = [
    include_str!("ptx/ordinary_sm80.ptx"),
    include_str!("ptx/ordinary_sm90.ptx"),
    include_str!("ptx/ordinary_sm100.ptx"),
];

fn each(mut test: impl FnMut(&mut Gpu)) {
    for module in MODULES {
        test(&mut Gpu::new(module, Config::default()));
    }
}

fn noise(n: usize, scale: f32) -> Vec<f32> {
    (0..n as u32).map(|i| ((i.wrapping_mul(2654435761) >> 8) as f32 / 8388608.0 - 1.0) * scale).collect()
}

fn close(got: &[f32], expected: &[f64], tolerance: f64) {
    for (i, (&got, &expected)) in got.iter().zip(expected).enumerate() {
        let near = (f64::from(got) - expected).abs() <= tolerance * expected.abs().max(1e-3);
        assert!(near, "value {i}: {got}, expected {expected}");
    }
}

#[test]
fn softmax() {
    let (rows, columns) = (3, 500);
    let values = noise(rows * columns, 6.0);
    let expected: Vec<f64> = values
        .chunks(columns)
        .flat_map(|row| {
            let powers: Vec<f64> = row.iter().map(|&v| f64::from(v).exp()).collect();
            let sum: f64 = powers.iter().sum();
            powers.into_iter().map(move |v| v / sum)
        })
        .collect();
    each(|g| {
        let (input, out) = (g.upload(0, "in", &values), g.alloc(0, "out", 4 * values.len() as u64));
        g.launch(0, "softmax", rows as u32, 128, &[&input, &out, &(columns as i32)]);
        g.run();
        close(&g.f32s(out, values.len()), &expected, 2e-5);
    });
}

#[test]
fn layer_norm() {
    let (rows, columns) = (2, 333);
    let (values, gain) = (noise(rows * columns, 3.0), noise(columns, 2.0));
    let expected: Vec<f64> = values
        .chunks(columns)
        .flat_map(|row| {
            let n = columns as f64;
            let mean = row.iter().map(|&v| f64::from(v)).sum::<f64>() / n;
            let variance = row.iter().map(|&v| (f64::from(v) - mean).powi(2)).sum::<f64>() / n;
            let scale = 1.0 / (variance + 1e-5).sqrt();
            row.iter()
                .zip(&gain)
                .map(move |(&v, &g)| (f64::from(v) - mean) * scale * f64::from(g))
                .collect::<Vec<_>>()
        })
        .collect();
    each(|g| {
        let (input, gains) = (g.upload(0, "in", &values), g.upload(0, "gain", &gain));
        let out = g.alloc(0, "out", 4 * values.len() as u64);
        g.launch(0, "layer_norm", rows as u32, 64, &[&input, &gains, &out, &(columns as i32), &1e-5f32]);
        g.run();
        close(&g.f32s(out, values.len()), &expected, 1e-3);
    });
}

#[test]
fn exclusive_scan() {
    let values: Vec<u32> = (0..768).map(|i| i * i % 97).collect();
    each(|g| {
        let (input, out, sums) =
            (g.upload(0, "in", &values), g.alloc(0, "out", 3072), g.alloc(0, "sums", 12));
        g.launch(0, "exclusive_scan", 3, 128, &[&input, &out, &sums]);
        g.run();
        let (got, sums) = (g.u32s(out, 768), g.u32s(sums, 3));
        for (block, chunk) in values.chunks(256).enumerate() {
            let mut sum = 0;
            for (i, v) in chunk.iter().enumerate() {
                assert_eq!(got[256 * block + i], sum);
                sum += v;
            }
            assert_eq!(sums[block], sum);
        }
    });
}

#[test]
fn matrices() {
    let (m, n, k) = (19usize, 35usize, 21usize);
    let small = |i: usize| (i * 7 % 13) as f32 - 6.0;
    let (a, b): (Vec<f32>, Vec<f32>) =
        ((0..m * k).map(small).collect(), (0..k * n).map(|i| small(i + 5)).collect());
    // Small integers: every sum is exact, also in f16.
    let product: Vec<f32> =
        (0..m * n).map(|i| (0..k).map(|j| a[i / n * k + j] * b[j * n + i % n]).sum()).collect();
    let narrow = |v: &[f32]| -> Vec<u16> { v.iter().map(|&v| f16::from_f32(v).to_bits()).collect() };
    each(|g| {
        let (da, db, dc) = (g.upload(0, "a", &a), g.upload(0, "b", &b), g.alloc(0, "c", 4 * (m * n) as u64));
        let (ha, hb, hc) = (
            g.upload(0, "ha", &narrow(&a)),
            g.upload(0, "hb", &narrow(&b)),
            g.alloc(0, "hc", 2 * (m * n) as u64),
        );
        let sizes = [m as i32, n as i32, k as i32];
        for (kernel, [a, b, c]) in [("gemm", [da, db, dc]), ("gemm_tiled", [ha, hb, hc])] {
            let params: [&dyn Bytes; 6] = [&a, &b, &c, &sizes[0], &sizes[1], &sizes[2]];
            g.try_launch(0, kernel, [3, 2, 1], [16, 16, 1], 0, &params).unwrap();
        }
        g.run();
        assert_eq!(g.f32s(dc, m * n), product);
        let bytes = g.machine.read(hc, 2 * m * n).unwrap();
        let got: Vec<u16> = bytes.chunks_exact(2).map(|c| u16::from_le_bytes([c[0], c[1]])).collect();
        assert_eq!(got, narrow(&product));
    });
}

/// `a op b` exactly, then rounded.
fn rounded(f: Fmt, a: u64, b: u64, op: char, mode: Mode) -> u64 {
    let (x, y) = (f.value(a), f.value(b));
    let negative = f.negative(a) != f.negative(b);
    match op {
        '+' => f.of(&((x + y) << SCALE), SCALE, mode == Mode::Down, mode),
        '*' => f.of(&(x * y), SCALE, negative, mode),
        _ => {
            let (x, y) = (f.value(f.magnitude(a)) << SCALE, f.value(f.magnitude(b)));
            f.round(negative, mode, |q| x.cmp(&(q * &y)))
        }
    }
}

#[test]
fn double_precision() {
    let pairs: Vec<f64> = (0..64)
        .map(|i| (f64::from(i) - 20.3) * 1.37f64.powi(i % 9) + 0.1)
        .flat_map(|v| [v, 3.7 - v / 7.0])
        .collect();
    each(|g| {
        let (input, out) = (g.upload(0, "in", &pairs), g.alloc(0, "out", 64 * 80));
        g.launch(0, "doubles", 1, 64, &[&input, &out]);
        g.run();
        let got: Vec<f64> = g.u64s(out, 640).into_iter().map(f64::from_bits).collect();
        for (pair, got) in pairs.chunks(2).zip(got.chunks(10)) {
            let (a, b) = (pair[0], pair[1]);
            let exact = |op, mode| f64::from_bits(rounded(F64, a.to_bits(), b.to_bits(), op, mode));
            for (k, expected) in [
                (0, a / b),
                (1, a.abs().sqrt()),
                (2, a.mul_add(b, -a)),
                (5, exact('+', Mode::Zero)),
                (6, exact('*', Mode::Up)),
                (7, exact('/', Mode::Down)),
                (8, a.round_ties_even() + b.floor()),
                (9, a % b),
            ] {
                assert_eq!(got[k], expected, "result {k} of {a}, {b}");
            }
            for (k, expected) in [(3, (a * 0.01).exp()), (4, b.abs().ln())] {
                assert!(
                    (got[k] - expected).abs() <= 1e-14 * expected.abs().max(1.0),
                    "result {k} of {a}, {b}"
                );
            }
        }
    });
}

#[test]
fn directed_rounding() {
    let pairs: Vec<f32> = noise(64, 900.0).into_iter().flat_map(|v| [v, v * 0.37 + 1.0 / 3.0]).collect();
    each(|g| {
        let (input, out) = (g.upload(0, "in", &pairs), g.alloc(0, "out", 64 * 32));
        g.launch(0, "roundings", 1, 64, &[&input, &out]);
        g.run();
        let got = g.f32s(out, 512);
        for (pair, got) in pairs.chunks(2).zip(got.chunks(8)) {
            let (a, b) = (pair[0], pair[1]);
            let bits = |v: f32| u64::from(v.to_bits());
            let exact = |a, b, op, mode| f32::from_bits(rounded(F32, bits(a), bits(b), op, mode) as u32);
            let fma = F32.value(bits(a)) * F32.value(bits(b)) + (F32.value(bits(a)) << SCALE);
            let root = F32.value(bits(a.abs())) << SCALE;
            let expected = [
                exact(a, b, '+', Mode::Zero),
                exact(a, b, '*', Mode::Down),
                f32::from_bits(F32.of(&fma, SCALE, false, Mode::Up) as u32),
                exact(a, b, '/', Mode::Zero),
                f32::from_bits(F32.round(false, Mode::Down, |r| root.cmp(&(r * r))) as u32),
                exact(1.0, b, '/', Mode::Up),
                a.floor() + b.abs().ceil(),
                a.clamp(0.0, 1.0),
            ];
            assert_eq!(got, expected, "of {a}, {b}");
        }
    });
}

#[test]
fn bit_tricks() {
    let pairs: Vec<u32> = (0..128u32).map(|i| i.wrapping_mul(0x9e37_79b9).rotate_left(i) ^ i).collect();
    each(|g| {
        let (input, out) = (g.upload(0, "in", &pairs), g.alloc(0, "out", 64 * 40));
        g.launch(0, "bits", 1, 64, &[&input, &out]);
        g.run();
        let got = g.u32s(out, 640);
        for (pair, got) in pairs.chunks(2).zip(got.chunks(10)) {
            let (a, b) = (pair[0], pair[1]);
            let signed = |v: u32, i: usize| i32::from(v.to_le_bytes()[i] as i8);
            let low24 = |v: u32| (v << 8) as i32 >> 8;
            let half = |v: u32, s: u32| (v >> s) as u16;
            let halves = |f: fn(u16, u16) -> u16| {
                u32::from(f(half(a, 0), half(b, 0))) | u32::from(f(half(a, 16), half(b, 16))) << 16
            };
            let wide = (u64::from(a) << 32 | u64::from(b))
                .wrapping_mul(0x9e37_79b9_7f4a_7c15)
                .wrapping_add(u64::from(a ^ b));
            let bytes = [a.to_le_bytes(), b.to_le_bytes()].concat();
            let permuted = u32::from_le_bytes(std::array::from_fn(|i| {
                // The intrinsic looks at three bits of each nibble.
                bytes[(a >> (4 * i) & 7) as usize]
            }));
            let expected = [
                (0..4).fold(7, |s, i| s + signed(a, i) * signed(b, i)) as u32,
                (a as i32).abs_diff(b as i32).wrapping_add(a),
                low24(a).wrapping_mul(low24(b)) as u32,
                (u64::from(a) * u64::from(b) >> 32) as u32,
                if a == 0 { 0 } else { a.trailing_zeros() + 1 },
                (5..32).filter(|i| a >> i & 1 != 0).nth(1).unwrap_or(u32::MAX),
                halves(u16::wrapping_add),
                halves(|x, y| (x as i16).max(y as i16) as u16),
                ((wide % 1_000_003) as u32).wrapping_add((wide / u64::from(b | 1)) as u32),
                (wide as i64 >> 17) as u32 ^ permuted,
            ];
            assert_eq!(got, expected, "of {a:#x}, {b:#x}");
        }
    });
}
