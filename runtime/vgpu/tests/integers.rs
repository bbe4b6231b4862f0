//! Integer instructions against wide arithmetic and the manual's bit-by-bit definitions.

#![allow(clippy::precedence, reason = "shifts and masks read best as in the PTX manual")]

use crate::common::apply::{R, apply, apply_body};
use proptest::prelude::*;

fn word() -> impl Strategy<Value = u64> {
    prop_oneof![any::<u64>(), 0u64..70, (0u32..64).prop_map(|s| 1 << s), (0u64..3).prop_map(|v| !v)]
}

fn words() -> impl Strategy<Value = Vec<[u64; 3]>> {
    prop::collection::vec([word(), word(), word()], 64)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn chains_carry(inputs in words()) {
        // 128-bit sums and differences of 32-bit limbs, whose upper halves are squares of the lower.
        for (head, first, rest) in [("add", "add.cc", "addc"), ("sub", "sub.cc", "subc")] {
            let body = format!(
                "mov.b64 {{%r1, %r2}}, %rd15; mov.b64 {{%r3, %r4}}, %rd16;\n\
                 {first}.u32 %r5, %r1, %r3; {rest}.cc.u32 %r6, %r2, %r4; {rest}.cc.s32 %r7, %r4, %r1; {rest}.u32 %r8, 0, 0;\n\
                 xor.b32 %r7, %r7, %r8; mov.b64 %rd14, {{%r5, %r6}}; cvt.u64.u32 %rd18, %r7; shl.b64 %rd18, %rd18, 1;\n\
                 xor.b64 %rd14, %rd14, %rd18;"
            );
            let wide = format!("{first}.u64 %rd18, %rd15, %rd16; {rest}.cc.s64 %rd19, %rd16, %rd17; {rest}.u64 %rd14, %rd17, %rd18;");
            let got = apply_body(&body, R::L, &[R::L, R::L], &inputs);
            let got_wide = apply_body(&wide, R::L, &[R::L; 3], &inputs);
            for (i, &[a, b, c]) in inputs.iter().enumerate() {
                let sum = |a: u64, b: u64, carry: bool, bits: u32| {
                    let (a, b) = (i128::from(a), i128::from(b));
                    let exact = if head == "add" { a + b + i128::from(carry) } else { a - b - i128::from(carry) };
                    let out = exact < 0 || exact >> bits != 0;
                    (exact as u64 & (u64::MAX >> (64 - bits)), out)
                };
                let (low, carry) = sum(a & 0xffff_ffff, b & 0xffff_ffff, false, 32);
                let (high, carry) = sum(a >> 32, b >> 32, carry, 32);
                let (third, carry) = sum(b >> 32, a & 0xffff_ffff, carry, 32);
                let (fourth, _) = sum(0, 0, carry, 32);
                prop_assert_eq!(got[i], (low | high << 32) ^ (third ^ fourth) << 1);
                let (low, carry) = sum(a, b, false, 64);
                let (_, carry) = sum(b, c, carry, 64);
                prop_assert_eq!(got_wide[i], sum(c, low, carry, 64).0);
            }
        }
    }

    #[test]
    fn products_in_chains(inputs in words()) {
        // The 64-bit product of 32-bit halves plus a 64-bit addend, as compilers write it.
        let body = "mov.b64 {%r1, %r2}, %rd15; mov.b64 {%r3, %r4}, %rd16;\n\
                    mad.lo.cc.u32 %r5, %r1, %r2, %r3; madc.hi.u32 %r6, %r1, %r2, %r4; mov.b64 %rd14, {%r5, %r6};";
        let signed = "mov.b64 {%r1, %r2}, %rd15; mov.b64 {%r3, %r4}, %rd16;\n\
                      mad.lo.cc.s32 %r5, %r1, %r2, %r3; madc.hi.cc.s32 %r6, %r1, %r2, %r4; addc.u32 %r7, 0, 0;\n\
                      add.u32 %r6, %r6, %r7; mov.b64 %rd14, {%r5, %r6};";
        let wide = "mad.lo.cc.u64 %rd18, %rd15, %rd16, %rd17; madc.hi.u64 %rd19, %rd15, %rd16, %rd15; xor.b64 %rd14, %rd18, %rd19;";
        let got = apply_body(body, R::L, &[R::L, R::L], &inputs);
        let got_signed = apply_body(signed, R::L, &[R::L, R::L], &inputs);
        let got_wide = apply_body(wide, R::L, &[R::L; 3], &inputs);
        for (i, &[a, b, c]) in inputs.iter().enumerate() {
            prop_assert_eq!(got[i], (a & 0xffff_ffff).wrapping_mul(a >> 32).wrapping_add(b));
            // The carry out of the upper half, as unsigned addition of the halves.
            let product = i64::from(a as i32).wrapping_mul(i64::from((a >> 32) as i32)) as u64;
            let (sum, carry) = product.overflowing_add(b);
            prop_assert_eq!(got_signed[i], (sum & 0xffff_ffff) | ((sum >> 32) as u32).wrapping_add(u32::from(carry)) as u64 * (1 << 32));
            let full = u128::from(a) * u128::from(b) + u128::from(c);
            prop_assert_eq!(got_wide[i], full as u64 ^ ((full >> 64) as u64).wrapping_add(a));
        }
    }

    #[test]
    fn bits_and_bytes(inputs in words()) {
        let of = |op: &str, n: usize| apply(op, R::W, &[R::W; 3][..n], &inputs);
        let (wrap, clamp) = (of("szext.wrap.s32", 2), of("szext.clamp.u32", 2));
        let (mask, mask_wrap) = (of("bmsk.clamp.b32", 2), of("bmsk.wrap.b32", 2));
        let nth = of("fns.b32", 3);
        let (low, high) = (of("dp2a.lo.s32.u32", 3), of("dp2a.hi.u32.s32", 3));
        let (find, shift) = (of("bfind.s32", 1), of("bfind.shiftamt.s32", 1));
        let modes: Vec<Vec<u64>> =
            ["f4e", "b4e", "rc8", "ecl", "ecr", "rc16"].iter().map(|m| of(&format!("prmt.b32.{m}"), 3)).collect();
        let (lo24, hi24) = (of("mul24.lo.s32", 2), of("mul24.hi.u32", 2));
        let mad24 = of("mad24.hi.sat.s32", 3);
        let (relu, relu2) = (of("max.relu.s32", 2), of("min.relu.s16x2", 2));
        let sat = of("mad.hi.sat.s32", 3);
        for (i, input) in inputs.iter().enumerate() {
            let [a, b, c] = input.map(|v| v as u32);
            let bit = |v: u32, i: u32| v >> i & 1;
            let keep = |n: u32| (0..32).map(move |i| (i, i < n));
            let n = b & 31;
            let extended = keep(n).fold(0, |out, (i, low)| {
                out | (if low { bit(a, i) } else if n == 0 { 0 } else { bit(a, n - 1) }) << i
            });
            prop_assert_eq!(wrap[i], u64::from(extended));
            let kept = keep(b.min(32)).fold(0, |out, (i, low)| out | if low { bit(a, i) << i } else { 0 });
            prop_assert_eq!(clamp[i], u64::from(kept));
            let ones = |at: u32, n: u32| (0..32).filter(|i| *i >= at && u64::from(*i) < u64::from(at) + u64::from(n)).fold(0u32, |m, i| m | 1 << i);
            prop_assert_eq!(mask[i], u64::from(ones(a, b)));
            prop_assert_eq!(mask_wrap[i], u64::from(ones(a & 31, b & 31)));
            let mut expected = u32::MAX;
            let (base, offset) = (b as i32, c as i32);
            if offset == 0 {
                if (0..32).contains(&base) && bit(a, b) == 1 { expected = b; }
            } else {
                let (mut at, mut left) = (i64::from(base), offset.unsigned_abs() - 1);
                while (0..32).contains(&at) {
                    if bit(a, at as u32) == 1 {
                        if left == 0 { expected = at as u32; break; }
                        left -= 1;
                    }
                    at += i64::from(offset.signum());
                }
            }
            prop_assert_eq!(nth[i], u64::from(expected), "fns {:#x} {} {}", a, base, offset);
            let half = |k: u32| (a >> (16 * k)) as u16;
            let byte = |k: u32| (b >> (8 * k)) as u8;
            let dp = (0..2).fold(c as i32, |s, k| s.wrapping_add(i32::from(half(k) as i16) * i32::from(byte(k))));
            prop_assert_eq!(low[i], u64::from(dp as u32));
            let dp = (0..2).fold(c as i32, |s, k| s.wrapping_add(i32::from(half(k)) * i32::from(byte(k + 2) as i8)));
            prop_assert_eq!(high[i], u64::from(dp as u32));
            let top = (0..32).rev().find(|&k| bit(a, k) != bit(a, 31));
            prop_assert_eq!(find[i], u64::from(top.unwrap_or(u32::MAX)));
            prop_assert_eq!(shift[i], u64::from(top.map_or(u32::MAX, |t| 31 - t)));
            let bytes: Vec<u8> = [a.to_le_bytes(), b.to_le_bytes()].concat();
            let k = c as usize & 3;
            let picks: [[usize; 4]; 6] = [
                [k, k + 1, k + 2, k + 3],
                [k, (k + 7) % 8, (k + 6) % 8, (k + 5) % 8],
                [k; 4],
                [k, k.max(1), k.max(2), 3],
                [0, k.min(1), k.min(2), k],
                [k % 2 * 2, k % 2 * 2 + 1, k % 2 * 2, k % 2 * 2 + 1],
            ];
            for (mode, pick) in modes.iter().zip(picks) {
                prop_assert_eq!(mode[i], u64::from(u32::from_le_bytes(pick.map(|p| bytes[p]))), "{:?}", pick);
            }
            let signed24 = |v: u32| i64::from((v << 8) as i32 >> 8);
            let unsigned24 = |v: u32| u64::from(v & 0xff_ffff);
            prop_assert_eq!(lo24[i], u64::from((signed24(a) * signed24(b)) as u32));
            prop_assert_eq!(hi24[i], u64::from((unsigned24(a) * unsigned24(b) >> 16) as u32));
            let clamp32 = |v: i64| v.clamp(i32::MIN.into(), i32::MAX.into()) as u32;
            let product = (signed24(a) * signed24(b) >> 16) as i32;
            prop_assert_eq!(mad24[i], u64::from(clamp32(i64::from(product) + i64::from(c as i32))));
            let product = i64::from(a as i32) * i64::from(b as i32) >> 32;
            prop_assert_eq!(sat[i], u64::from(clamp32(product + i64::from(c as i32))));
            prop_assert_eq!(relu[i], (a as i32).max(b as i32).max(0) as u64);
            let part = |s: u32| ((a >> s) as i16).min((b >> s) as i16).max(0) as u64;
            prop_assert_eq!(relu2[i], part(0) | part(16) << 16);
        }
    }

    #[test]
    fn wide_registers(inputs in words()) {
        let body = "mov.b128 %q0, {%rd15, %rd16}; mov.b128 %q1, %q0; mov.b128 {%r1, %r2, %r3, %r4}, %q1;\n\
                    mov.b128 %q2, {%r4, %r3, %r2, %r1}; mov.b128 {%rd18, %rd19}, %q2; xor.b64 %rd14, %rd18, %rd16;\n\
                    add.u64 %rd14, %rd14, %rd19;";
        for (got, &[a, b, _]) in apply_body(body, R::L, &[R::L, R::L], &inputs).into_iter().zip(&inputs) {
            prop_assert_eq!(got, (b.rotate_left(32) ^ b).wrapping_add(a.rotate_left(32)));
        }
    }

    #[test]
    fn logic_of_three_with_a_predicate(inputs in words()) {
        for (op, or) in [("or", true), ("and", false)] {
            let body = format!("lop3.{op}.b32 %r4|%p1, %r1, %r2, %r3, 0x96, %p2; selp.u32 %r0, 1, 0, %p1; xor.b32 %r0, %r0, %r4;");
            let body = format!("setp.lt.u32 %p2, %r1, %r2; {body}");
            for (got, input) in apply_body(&body, R::W, &[R::W; 3], &inputs).into_iter().zip(&inputs) {
                let [a, b, c] = input.map(|v| v as u32);
                let (value, q) = (a ^ b ^ c, a < b);
                let p = if or { value != 0 || q } else { value != 0 && q };
                prop_assert_eq!(got, u64::from(value ^ u32::from(p)));
            }
        }
    }
}

#[test]
fn minimum_of_floats_over_a_warp() {
    let values = |nan: bool| -> Vec<[u64; 3]> {
        (0..32)
            .map(|i| {
                let v = if nan && i == 7 { f32::NAN } else { 3.0 - i as f32 };
                [u64::from(v.to_bits()), 0, 0]
            })
            .collect()
    };
    for (op, nan, expected) in [
        ("redux.sync.min.f32", false, (-28f32).to_bits()),
        ("redux.sync.max.f32", true, 3f32.to_bits()),
        ("redux.sync.min.abs.f32", false, 0),
        ("redux.sync.max.abs.f32", false, 28f32.to_bits()),
        ("redux.sync.max.NaN.f32", true, 0x7fff_ffff),
        ("redux.sync.max.abs.NaN.f32", true, 0x7fff_ffff),
    ] {
        let got = apply_body(&format!("{op} %f0, %f1, 0xffffffff;"), R::F, &[R::F], &values(nan));
        assert_eq!(got, [u64::from(expected); 32], "{op}");
    }
}
