//! Conversions and bit instructions against independent definitions: the crate half, Rust's `as`, and the manual's
//! bit-by-bit text.

use crate::common::{Bytes, Gpu, PACKED, kernel};
use half::{bf16, f16};
use proptest::prelude::*;
use quadrille_vgpu::Config;

/// Runs `body` in one thread for each of the inputs; `%rd2` is the address of the thread's input, `%rd3` that of its
/// output; both are 8 bytes.
fn each<T: Bytes>(body: &str, inputs: &[T]) -> Vec<u64> {
    each_of(body, inputs, 1)
}

/// The same with `per` inputs a thread.
fn each_of<T: Bytes>(body: &str, inputs: &[T], per: usize) -> Vec<u64> {
    let n = inputs.len() / per;
    let stride = per * inputs[0].bytes().len();
    let prologue = format!(
        "mov.u32 %r20, %tid.x; mul.wide.u32 %rd2, %r20, {stride}; add.u64 %rd2, %rd2, %rd1;\n\
         mul.wide.u32 %rd3, %r20, 8; add.u64 %rd3, %rd3, %rd1; add.u64 %rd3, %rd3, {};",
        n * stride
    );
    let mut g = Gpu::new(&kernel(&format!("{prologue}\n{body}")), Config::default());
    let data = g.zeroed(0, "data", (n * (stride + 8)) as u64);
    g.machine.write(data, &inputs.bytes()).unwrap();
    g.launch(0, "k", 1, n as u32, &[&data]);
    g.run();
    g.u64s(data + (n * stride) as u64, n)
}

#[test]
fn every_f16_and_bf16_widens_exactly() {
    let all: Vec<u16> = (0..=u16::MAX).collect();
    let mut g = Gpu::new(PACKED, Config::default());
    let (input, out) = (g.upload(0, "in", &all), g.alloc(0, "out", 8 << 16));
    g.launch(0, "widen", 256, 256, &[&input, &out, &65536i32]);
    g.run();
    for (pair, bits) in g.f32s(out, 1 << 17).chunks_exact(2).zip(all) {
        for (got, expected) in
            [(pair[0], bf16::from_bits(bits).to_f32()), (pair[1], f16::from_bits(bits).to_f32())]
        {
            assert!(got.to_bits() == expected.to_bits() || got.is_nan() && expected.is_nan(), "{bits:#x}");
        }
    }
}

fn bits32() -> impl Strategy<Value = Vec<u32>> {
    // Any bits, and values around the borders of f16.
    let near = (any::<u16>(), -3i32..=3).prop_map(|(h, d)| {
        f16::from_bits(h).to_f32().to_bits().wrapping_add_signed(d << 12).wrapping_add_signed(d)
    });
    prop::collection::vec(prop_oneof![any::<u32>(), near], 64)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn narrowing_is_that_of_half(bits in bits32()) {
        let mut g = Gpu::new(PACKED, Config::default());
        let (input, out) = (g.upload(0, "in", &bits), g.alloc(0, "out", 16 * 64));
        g.launch(0, "narrow", 1, 64, &[&input, &out, &64i32]);
        g.run();
        for (got, &bits) in g.u32s(out, 256).chunks_exact(4).zip(&bits) {
            let v = f32::from_bits(bits);
            let (b, h) = (bf16::from_f32(v).to_bits(), f16::from_f32(v).to_bits());
            if v.is_nan() {
                prop_assert_eq!(got, [0x7fff, 0x7fff, 0x7fff, 0x7fff_7fff]);
                continue;
            }
            prop_assert_eq!(got[0], u32::from(b));
            prop_assert_eq!(got[1], u32::from(h));
            prop_assert_eq!(got[3], u32::from(b) << 16 | u32::from(b ^ 0x8000));
            // Towards zero: the last value that is not beyond the exact one.
            let z = f16::from_bits(got[2] as u16);
            prop_assert_eq!(z.is_sign_negative(), v.is_sign_negative());
            prop_assert!(z.to_f32().abs() <= v.abs());
            let next = f16::from_bits(got[2] as u16 + 1);
            prop_assert!(next.is_nan() || next.to_f32().abs() > v.abs() || v.is_infinite());
        }
    }

    #[test]
    fn f64_to_f32_rounds_in_every_direction(bits in prop::collection::vec(prop_oneof![
        any::<f64>(), any::<f32>().prop_map(f64::from), (any::<f32>(), any::<i8>()).prop_map(|(v, d)| {
            f64::from_bits(f64::from(v).to_bits().wrapping_add_signed((i64::from(d)) << 24))
        })
    ], 64)) {
        let run = |round: &str| -> Vec<f32> {
            let body = format!("ld.global.f64 %fd1, [%rd2]; cvt.{round}.f32.f64 %f1, %fd1; st.global.f32 [%rd3], %f1;");
            each(&body, &bits).into_iter().map(|v| f32::from_bits(v as u32)).collect()
        };
        let (nearest, down, up, zero) = (run("rn"), run("rm"), run("rp"), run("rz"));
        for i in 0..64 {
            let v = bits[i];
            if v.is_nan() {
                prop_assert_eq!(nearest[i].to_bits(), 0x7fff_ffff);
                continue;
            }
            prop_assert_eq!(nearest[i].to_bits(), (v as f32).to_bits());
            prop_assert!(f64::from(down[i]) <= v && f64::from(down[i].next_up()) > v || v == f64::INFINITY);
            prop_assert!(f64::from(up[i]) >= v && f64::from(up[i].next_down()) < v || v == f64::NEG_INFINITY);
            prop_assert_eq!(zero[i].to_bits(), if v.is_sign_negative() { up[i] } else { down[i] }.to_bits());
        }
    }

    #[test]
    fn integers_and_floats(ints in prop::collection::vec(any::<u64>().prop_flat_map(|v| (0..64u32).prop_map(move |s| v >> s)), 64),
                           floats in prop::collection::vec(prop_oneof![any::<f32>(), (-1e10f32..1e10), (-300f32..300.0)], 64)) {
        let load = "ld.global.u64 %rd4, [%rd2]; cvt.u32.u64 %r1, %rd4;";
        let check = |cvt: &str, store: &str, f: &dyn Fn(u64) -> u64| {
            let got = each(&format!("{load} {cvt}; st.global.{store};"), &ints);
            for (got, &v) in got.into_iter().zip(&ints) {
                assert_eq!(got, f(v), "{cvt} of {v:#x}");
            }
        };
        check("cvt.rn.f32.u64 %f1, %rd4", "f32 [%rd3], %f1", &|v| (v as f32).to_bits().into());
        check("cvt.rn.f32.s64 %f1, %rd4", "f32 [%rd3], %f1", &|v| (v as i64 as f32).to_bits().into());
        check("cvt.rn.f32.s32 %f1, %r1", "f32 [%rd3], %f1", &|v| (v as i32 as f32).to_bits().into());
        check("cvt.rn.f64.u64 %fd1, %rd4", "f64 [%rd3], %fd1", &|v| (v as f64).to_bits());
        check("cvt.rn.f16.u32 %h1, %r1", "b16 [%rd3], %h1", &|v| f16::from_f64(f64::from(v as u32)).to_bits().into());
        check("cvt.s64.s8 %rd5, %rd4", "u64 [%rd3], %rd5", &|v| i64::from(v as i8) as u64);
        check("cvt.u32.u8 %r2, %r1", "u32 [%rd3], %r2", &|v| u64::from(v as u8));
        check("cvt.sat.s8.s32 %r2, %r1", "u32 [%rd3], %r2", &|v| u64::from((v as i32).clamp(-128, 127) as u32));
        check("cvt.sat.u16.s64 %h1, %rd4", "u16 [%rd3], %h1", &|v| (v as i64).clamp(0, 65535) as u64);

        let load = "ld.global.f32 %f2, [%rd2];";
        let check = |cvt: &str, store: &str, f: &dyn Fn(f32) -> u64| {
            let got = each(&format!("{load} {cvt}; st.global.{store};"), &floats);
            for (got, &v) in got.into_iter().zip(&floats) {
                assert_eq!(got, f(v), "{cvt} of {v}");
            }
        };
        check("cvt.rzi.s32.f32 %r1, %f2", "u32 [%rd3], %r1", &|v| u64::from(v as i32 as u32));
        check("cvt.rzi.u32.f32 %r1, %f2", "u32 [%rd3], %r1", &|v| u64::from(v as u32));
        check("cvt.rmi.s32.f32 %r1, %f2", "u32 [%rd3], %r1", &|v| u64::from(v.floor() as i32 as u32));
        check("cvt.rni.u64.f32 %rd4, %f2", "u64 [%rd3], %rd4", &|v| if v.is_nan() { 1 << 63 } else { v.round_ties_even() as u64 });
        check("cvt.sat.f32.f32 %f1, %f2", "f32 [%rd3], %f1", &|v| if v > 0.0 { v.min(1.0).to_bits().into() } else { 0 });
        check("add.ftz.f32 %f1, %f2, 0f00000000", "f32 [%rd3], %f1", &|v| match v {
            v if v.is_nan() => 0x7fff_ffff,
            v if v.is_subnormal() || v == 0.0 => 0,
            v => v.to_bits().into(),
        });
    }

    #[test]
    fn bit_fields(words in prop::collection::vec(prop_oneof![any::<u32>(), 0u32..70], 4 * 32)) {
        let load = "ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd2];";
        let run = |op: &str| each_of(&format!("{load} {op}; st.global.u32 [%rd3], %r5;"), &words, 4);
        let (ubfe, sbfe) = (run("bfe.u32 %r5, %r1, %r3, %r4"), run("bfe.s32 %r5, %r1, %r3, %r4"));
        let bfi = run("bfi.b32 %r5, %r1, %r2, %r3, %r4");
        let lop3 = run("lop3.b32 %r5, %r1, %r2, %r3, 0xca");
        let prmt = run("prmt.b32 %r5, %r1, %r2, %r3");
        let (left, right) = (run("shf.l.clamp.b32 %r5, %r1, %r2, %r3"), run("shf.r.wrap.b32 %r5, %r1, %r2, %r3"));
        for (i, w) in words.chunks_exact(4).enumerate() {
            let [a, b, c, d] = [w[0], w[1], w[2], w[3]];
            let (pos, len) = (c & 0xff, d & 0xff);
            let bit = |v: u32, i: u32| v >> i & 1;
            let extract = |signed: bool| {
                let sign = if !signed || len == 0 { 0 } else { bit(a, (pos + len - 1).min(31)) };
                (0..32).fold(0, |out, i| out | if i < len && pos + i < 32 { bit(a, pos + i) } else { sign } << i)
            };
            prop_assert_eq!(ubfe[i], u64::from(extract(false)));
            prop_assert_eq!(sbfe[i], u64::from(extract(true)));
            let inserted = (0..32).fold(0, |out, i| {
                out | if i >= pos && i < pos + len { bit(a, i - pos) } else { bit(b, i) } << i
            });
            prop_assert_eq!(bfi[i], u64::from(inserted));
            // 0xca picks b where a is set, else c.
            prop_assert_eq!(lop3[i], u64::from(a & b | !a & c));
            let bytes = [a.to_le_bytes(), b.to_le_bytes()].concat();
            let permuted = (0..4).map(|k| {
                let pick = c >> (4 * k) & 15;
                let byte = bytes[(pick & 7) as usize];
                if pick < 8 { byte } else if byte > 127 { 255 } else { 0 }
            });
            prop_assert_eq!(prmt[i].to_le_bytes()[..4].to_vec(), permuted.collect::<Vec<_>>());
            let both = u64::from(b) << 32 | u64::from(a);
            prop_assert_eq!(left[i], u64::from((u128::from(both) << c.min(32) >> 32) as u32));
            prop_assert_eq!(right[i], u64::from((both >> (c & 31)) as u32));
        }
    }
}

#[test]
fn bf16_fma_rounds_once() {
    // 1.0078125^2 = 1 + 2^-6 + 2^-14; times 2^7 scaled so that the product ends in a tie, which a tiny addend breaks.
    let value = |v: f32| bf16::from_f32(v).to_bits();
    let half_ulp = value(1.0 + 1.0 / 128.0);
    for (c, up) in [(value(0.0), false), (value(1e-30), true), (value(-1e-30), false)] {
        // 1.0078125 * 1.5 = 1.51171875 lies half-way between 1.5078125 (odd) and 1.515625 (even).
        let input = [half_ulp, value(1.5), c, 0];
        let got = each_of(
            "ld.global.v4.b16 {%h1, %h2, %h3, %h4}, [%rd2]; fma.rn.bf16 %h5, %h1, %h2, %h3; st.global.b16 [%rd3], %h5;",
            &input,
            4,
        )[0];
        let tie_to_even = bf16::from_f32(1.515625).to_bits();
        let expected = if up || c == value(0.0) { tie_to_even } else { bf16::from_f32(1.5078125).to_bits() };
        assert_eq!(got, u64::from(expected), "addend {:?}", bf16::from_bits(c));
    }
}

#[test]
fn indexed_branches_and_collectives() {
    let body = "mov.u32 %r1, %laneid; and.b32 %r2, %r1, 3;\n\
                T: .branchtargets A, B, C, A;\n\
                brx.idx %r2, T;\n\
                A: mov.u32 %r3, 10; bra E;\nB: mov.u32 %r3, 20; bra E;\nC: mov.u32 %r3, 30; bra E;\n\
                E: match.any.sync.b32 %r4, %r3, 0xffffffff;\n\
                redux.sync.add.s32 %r5, %r3, 0xffffffff;\n\
                elect.sync %r6|%p1, 0xffffffff;\n\
                selp.u32 %r6, 1000, 0, %p1; add.u32 %r5, %r5, %r6;\n\
                mul.wide.u32 %rd2, %r1, 8; add.u64 %rd2, %rd2, %rd1; st.global.v2.u32 [%rd2], {%r4, %r5};";
    let mut g = Gpu::new(&kernel(body), Config::default());
    let out = g.alloc(0, "out", 256);
    g.launch(0, "k", 1, 32, &[&out]);
    g.run();
    let got = g.u32s(out, 64);
    for lane in 0..32 {
        let value = |l: u32| [10, 20, 30, 10][(l & 3) as usize];
        let same = (0..32).filter(|&l| value(l) == value(lane)).fold(0u32, |m, l| m | 1 << l);
        let sum = 8 * 70 + if lane == 0 { 1000 } else { 0 };
        assert_eq!(got[2 * lane as usize..][..2], [same, sum]);
    }
}

#[test]
fn atomics_of_all_kinds() {
    for (op, ty, old, b, c, expected) in [
        ("add", "u32", 5u32, 7u32, None, 12u32),
        ("min", "s32", 5, -7i32 as u32, None, -7i32 as u32),
        ("max", "u32", 5, -7i32 as u32, None, -7i32 as u32),
        ("and", "b32", 12, 10, None, 8),
        ("or", "b32", 12, 10, None, 14),
        ("xor", "b32", 12, 10, None, 6),
        ("exch", "b32", 12, 10, None, 10),
        ("inc", "u32", 5, 5, None, 0),
        ("inc", "u32", 5, 9, None, 6),
        ("dec", "u32", 0, 9, None, 9),
        ("dec", "u32", 5, 9, None, 4),
        ("cas", "b32", 5, 5, Some(9u32), 9),
        ("cas", "b32", 5, 6, Some(9), 5),
        ("add", "f32", 1.5f32.to_bits(), 2.25f32.to_bits(), None, 3.75f32.to_bits()),
        ("add.noftz", "f16x2", 0x3c00_4000, 0x3c00_3c00, None, 0x4000_4200),
        ("add.noftz", "bf16x2", 0x3f80_4000, 0x3f80_3f80, None, 0x4000_4040),
    ] {
        let last = c.map_or(String::new(), |c| format!(", {c}"));
        let body = format!(
            "mov.u32 %r2, {b}; atom.acq_rel.sys.global.{op}.{ty} %r1, [%rd1], %r2{last}; st.global.u32 [%rd1+4], %r1;"
        );
        let mut g = Gpu::new(&kernel(&body), Config::default());
        let out = g.upload(0, "out", &[old, 0]);
        g.launch(0, "k", 1, 1, &[&out]);
        g.run();
        assert_eq!(g.u32s(out, 2), [expected, old], "{op}.{ty}");
    }
}
