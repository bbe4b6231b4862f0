//! Lane-wise instructions as tables: PTX names, operand widths and what happens in a lane.
//!
//! Floating-point names stand without `.rn`, `.ftz`, `.sat`, `.approx` and `.full`, which the decoder takes care of.
//! Division by zero gives all ones and the remainder the dividend, as GPUs do.

use crate::arithmetic::float::{
    add_bf16, add_f16, add_f32, div_f32, each_half, fma_bf16, fma_f16, fma_f32, max_bf16, max_f16, max_f32,
    max_nan_f32, min_bf16, min_f16, min_f32, min_nan_f32, mul_bf16, mul_f16, mul_f32, nan_if, sub_bf16,
    sub_f16, sub_f32,
};
use crate::registers::{Bank, LaneValue, Reg, Regs};

/// Makes an enum of instructions, the look-up by name, the banks of operands, and the execution.
macro_rules! table {
    ($kind:ident, $lookup:ident, $exec:ident, $map:ident, [$($reg:ident)*], $n:literal;
     $($op:ident ($($from:ident),*) -> $to:ident $([$($name:literal)*])? |$($x:ident),*| $e:expr;)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum $kind { $($op),* }

        impl $kind {
            pub(crate) fn $lookup(name: &str) -> Option<$kind> {
                Some(match name {
                    $($($($name)|* => $kind::$op,)?)*
                    _ => return None,
                })
            }

            /// Banks of the destination and of the sources.
            pub(crate) fn banks(self) -> (Bank, [Bank; $n]) {
                match self {
                    $($kind::$op => (<$to as LaneValue>::BANK, [$(<$from as LaneValue>::BANK),*]),)*
                }
            }

            #[inline(always)]
            pub(crate) fn $exec(self, regs: &mut Regs, ops: [Reg; $n + 1], mask: u32) {
                match self {
                    $($kind::$op => table!(@call $map, regs, ops, mask, ($($from),*) -> $to, |$($x),*| $e),)*
                }
            }
        }
    };
    (@call map1, $regs:ident, $ops:ident, $mask:ident, ($a:ident) -> $d:ident, $f:expr) => {
        $regs.map1::<$a, $d>($ops[0], $ops[1], $mask, $f)
    };
    (@call map2, $regs:ident, $ops:ident, $mask:ident, ($a:ident, $b:ident) -> $d:ident, $f:expr) => {
        $regs.map2::<$a, $b, $d>($ops, $mask, $f)
    };
    (@call map3, $regs:ident, $ops:ident, $mask:ident, ($a:ident, $b:ident, $c:ident) -> $d:ident, $f:expr) => {
        $regs.map3::<$a, $b, $c, $d>($ops, $mask, $f)
    };
}

#[inline(always)]
fn f(bits: u32) -> f32 {
    f32::from_bits(bits)
}

#[inline(always)]
fn g(bits: u64) -> f64 {
    f64::from_bits(bits)
}

/// Shift amounts beyond the width give 0 (or the sign), as PTX clamps.
#[inline(always)]
fn shl32(a: u32, n: u32) -> u32 {
    if n < 32 { a << n } else { 0 }
}

#[inline(always)]
fn shr32(a: u32, n: u32) -> u32 {
    if n < 32 { a >> n } else { 0 }
}

#[inline(always)]
fn shl64(a: u64, n: u32) -> u64 {
    if n < 64 { a << n } else { 0 }
}

#[inline(always)]
fn shr64(a: u64, n: u32) -> u64 {
    if n < 64 { a >> n } else { 0 }
}

table! { UnaryOp, parse, exec, map1, [d a], 1;
    Mov16 (u16) -> u16 ["mov.b16" "mov.u16" "mov.s16" "mov.f16" "mov.bf16"] |a| a;
    Mov32 (u32) -> u32 ["mov.b32" "mov.u32" "mov.s32" "mov.f32" "mov.f16x2" "mov.bf16x2"] |a| a;
    Mov64 (u64) -> u64 ["mov.b64" "mov.u64" "mov.s64" "mov.f64"] |a| a;
    Not16 (u16) -> u16 ["not.b16"] |a| !a;
    Not32 (u32) -> u32 ["not.b32"] |a| !a;
    Not64 (u64) -> u64 ["not.b64"] |a| !a;
    Cnot16 (u16) -> u16 ["cnot.b16"] |a| u16::from(a == 0);
    Cnot32 (u32) -> u32 ["cnot.b32"] |a| u32::from(a == 0);
    Cnot64 (u64) -> u64 ["cnot.b64"] |a| u64::from(a == 0);
    Neg16 (u16) -> u16 ["neg.s16"] |a| a.wrapping_neg();
    Neg32 (u32) -> u32 ["neg.s32"] |a| a.wrapping_neg();
    Neg64 (u64) -> u64 ["neg.s64"] |a| a.wrapping_neg();
    Abs16 (u16) -> u16 ["abs.s16"] |a| (a as i16).wrapping_abs() as u16;
    Abs32 (u32) -> u32 ["abs.s32"] |a| (a as i32).wrapping_abs() as u32;
    Abs64 (u64) -> u64 ["abs.s64"] |a| (a as i64).wrapping_abs() as u64;
    Popc32 (u32) -> u32 ["popc.b32"] |a| a.count_ones();
    Popc64 (u64) -> u32 ["popc.b64"] |a| a.count_ones();
    Clz32 (u32) -> u32 ["clz.b32"] |a| a.leading_zeros();
    Clz64 (u64) -> u32 ["clz.b64"] |a| a.leading_zeros();
    Brev32 (u32) -> u32 ["brev.b32"] |a| a.reverse_bits();
    Brev64 (u64) -> u64 ["brev.b64"] |a| a.reverse_bits();
    BfindU32 (u32) -> u32 ["bfind.u32"] |a| 31u32.wrapping_sub(a.leading_zeros());
    BfindS32 (u32) -> u32 ["bfind.s32"] |a| 31u32.wrapping_sub((a ^ ((a as i32) >> 31) as u32).leading_zeros());
    BfindU64 (u64) -> u32 ["bfind.u64"] |a| 63u32.wrapping_sub(a.leading_zeros());
    BfindS64 (u64) -> u32 ["bfind.s64"] |a| 63u32.wrapping_sub((a ^ ((a as i64) >> 63) as u64).leading_zeros());
    BfindShiftU32 (u32) -> u32 ["bfind.shiftamt.u32"] |a| if a == 0 { u32::MAX } else { a.leading_zeros() };
    BfindShiftU64 (u64) -> u32 ["bfind.shiftamt.u64"] |a| if a == 0 { u32::MAX } else { a.leading_zeros() };
    BfindShiftS32 (u32) -> u32 ["bfind.shiftamt.s32"] |a| shift_amount(31, bfind_signed(a.into(), 32));
    BfindShiftS64 (u64) -> u32 ["bfind.shiftamt.s64"] |a| shift_amount(63, bfind_signed(a, 64));
    NegF32 (u32) -> u32 ["neg.f32"] |a| a ^ 0x8000_0000;
    NegF64 (u64) -> u64 ["neg.f64"] |a| a ^ 1 << 63;
    NegF16 (u16) -> u16 ["neg.f16" "neg.bf16"] |a| a ^ 0x8000;
    NegF16x2 (u32) -> u32 ["neg.f16x2" "neg.bf16x2"] |a| a ^ 0x8000_8000;
    AbsF32 (u32) -> u32 ["abs.f32"] |a| a & 0x7fff_ffff;
    AbsF64 (u64) -> u64 ["abs.f64"] |a| a & !(1 << 63);
    AbsF16 (u16) -> u16 ["abs.f16" "abs.bf16"] |a| a & 0x7fff;
    AbsF16x2 (u32) -> u32 ["abs.f16x2" "abs.bf16x2"] |a| a & 0x7fff_7fff;
    SqrtF32 (u32) -> u32 ["sqrt.f32"] |a| nan_if(f(a).sqrt());
    SqrtF64 (u64) -> u64 ["sqrt.f64"] |a| g(a).sqrt().to_bits();
    RcpF32 (u32) -> u32 ["rcp.f32"] |a| nan_if(1.0 / f(a));
    RcpF64 (u64) -> u64 ["rcp.f64"] |a| (1.0 / g(a)).to_bits();
    RsqrtF32 (u32) -> u32 ["rsqrt.f32"] |a| nan_if((1.0 / f64::from(f(a)).sqrt()) as f32);
    RsqrtF64 (u64) -> u64 ["rsqrt.f64"] |a| (1.0 / g(a).sqrt()).to_bits();
    Ex2F32 (u32) -> u32 ["ex2.f32"] |a| nan_if(f(a).exp2());
    Lg2F32 (u32) -> u32 ["lg2.f32"] |a| nan_if(f(a).log2());
    SinF32 (u32) -> u32 ["sin.f32"] |a| nan_if(f(a).sin());
    CosF32 (u32) -> u32 ["cos.f32"] |a| nan_if(f(a).cos());
    TanhF32 (u32) -> u32 ["tanh.f32"] |a| nan_if(f(a).tanh());
    // Steps that the decoder puts around `.ftz` and `.sat`.
    FlushF32 (u32) -> u32 |a| if a & 0x7f80_0000 == 0 { a & 0x8000_0000 } else { a };
    SatF32 (u32) -> u32 |a| if f(a) > 0.0 { f(a).min(1.0).to_bits() } else { 0 };
    SatF64 (u64) -> u64 |a| if g(a) > 0.0 { g(a).min(1.0).to_bits() } else { 0 };
    // Conversions and halves of wider registers.
    U16ToU32 (u16) -> u32 ["cvt.u32.u16" "cvt.s32.u16"] |a| a.into();
    S16ToS32 (u16) -> u32 ["cvt.s32.s16" "cvt.u32.s16"] |a| a as i16 as u32;
    U32ToU64 (u32) -> u64 ["cvt.u64.u32" "cvt.s64.u32"] |a| a.into();
    S32ToS64 (u32) -> u64 ["cvt.s64.s32" "cvt.u64.s32"] |a| a as i32 as u64;
    U64ToU32 (u64) -> u32 ["cvt.u32.u64" "cvt.s32.s64" "cvt.u32.s64" "cvt.s32.u64"] |a| a as u32;
    U32ToU16 (u32) -> u16 ["cvt.u16.u32" "cvt.s16.s32" "cvt.u16.s32" "cvt.s16.u32"] |a| a as u16;
    U16ToU64 (u16) -> u64 ["cvt.u64.u16" "cvt.s64.u16"] |a| a.into();
    U64ToU16 (u64) -> u16 ["cvt.u16.u64" "cvt.s16.s64" "cvt.u16.s64" "cvt.s16.u64"] |a| a as u16;
    Bf16ToF32 (u16) -> u32 ["cvt.f32.bf16"] |a| nan_if(f(u32::from(a) << 16));
    F16ToF32 (u16) -> u32 ["cvt.f32.f16"] |a| nan_if(half::f16::from_bits(a).to_f32());
    F32ToBf16 (u32) -> u16 ["cvt.bf16.f32"] |a| crate::arithmetic::float::bf16_of(f(a));
    F32ToF16 (u32) -> u16 ["cvt.f16.f32"] |a| crate::arithmetic::float::f16_of(f(a));
    High16 (u32) -> u16 |a| (a >> 16) as u16;
    High32 (u64) -> u32 |a| (a >> 32) as u32;
}

table! { BinaryOp, parse, exec, map2, [d a b], 2;
    Add16 (u16, u16) -> u16 ["add.u16" "add.s16"] |a, b| a.wrapping_add(b);
    Add32 (u32, u32) -> u32 ["add.u32" "add.s32"] |a, b| a.wrapping_add(b);
    Add64 (u64, u64) -> u64 ["add.u64" "add.s64"] |a, b| a.wrapping_add(b);
    AddSat32 (u32, u32) -> u32 ["add.sat.s32"] |a, b| (a as i32).saturating_add(b as i32) as u32;
    Add16x2 (u32, u32) -> u32 ["add.u16x2" "add.s16x2"] |a, b| each_half(a, b, u16::wrapping_add);
    Sub16 (u16, u16) -> u16 ["sub.u16" "sub.s16"] |a, b| a.wrapping_sub(b);
    Sub32 (u32, u32) -> u32 ["sub.u32" "sub.s32"] |a, b| a.wrapping_sub(b);
    Sub64 (u64, u64) -> u64 ["sub.u64" "sub.s64"] |a, b| a.wrapping_sub(b);
    SubSat32 (u32, u32) -> u32 ["sub.sat.s32"] |a, b| (a as i32).saturating_sub(b as i32) as u32;
    Mul16 (u16, u16) -> u16 ["mul.lo.u16" "mul.lo.s16"] |a, b| a.wrapping_mul(b);
    Mul32 (u32, u32) -> u32 ["mul.lo.u32" "mul.lo.s32"] |a, b| a.wrapping_mul(b);
    Mul24LoU32 (u32, u32) -> u32 ["mul24.lo.u32"] |a, b| (low24(a, false) * low24(b, false)) as u32;
    Mul24LoS32 (u32, u32) -> u32 ["mul24.lo.s32"] |a, b| (low24(a, true) * low24(b, true)) as u32;
    Mul24HiU32 (u32, u32) -> u32 ["mul24.hi.u32"] |a, b| (low24(a, false) * low24(b, false) >> 16) as u32;
    Mul24HiS32 (u32, u32) -> u32 ["mul24.hi.s32"] |a, b| (low24(a, true) * low24(b, true) >> 16) as u32;
    Mul64 (u64, u64) -> u64 ["mul.lo.u64" "mul.lo.s64"] |a, b| a.wrapping_mul(b);
    MulHiU16 (u16, u16) -> u16 ["mul.hi.u16"] |a, b| (u32::from(a) * u32::from(b) >> 16) as u16;
    MulHiS16 (u16, u16) -> u16 ["mul.hi.s16"] |a, b| (i32::from(a as i16) * i32::from(b as i16) >> 16) as u16;
    MulHiU32 (u32, u32) -> u32 ["mul.hi.u32"] |a, b| (u64::from(a) * u64::from(b) >> 32) as u32;
    MulHiS32 (u32, u32) -> u32 ["mul.hi.s32"] |a, b| (i64::from(a as i32) * i64::from(b as i32) >> 32) as u32;
    MulHiU64 (u64, u64) -> u64 ["mul.hi.u64"] |a, b| (u128::from(a) * u128::from(b) >> 64) as u64;
    MulHiS64 (u64, u64) -> u64 ["mul.hi.s64"] |a, b| (i128::from(a as i64) * i128::from(b as i64) >> 64) as u64;
    MulWideU16 (u16, u16) -> u32 ["mul.wide.u16"] |a, b| u32::from(a) * u32::from(b);
    MulWideS16 (u16, u16) -> u32 ["mul.wide.s16"] |a, b| (i32::from(a as i16) * i32::from(b as i16)) as u32;
    MulWideU32 (u32, u32) -> u64 ["mul.wide.u32"] |a, b| u64::from(a) * u64::from(b);
    MulWideS32 (u32, u32) -> u64 ["mul.wide.s32"] |a, b| (i64::from(a as i32) * i64::from(b as i32)) as u64;
    DivU16 (u16, u16) -> u16 ["div.u16"] |a, b| a.checked_div(b).unwrap_or(u16::MAX);
    DivS16 (u16, u16) -> u16 ["div.s16"] |a, b| if b == 0 { u16::MAX } else { (a as i16).wrapping_div(b as i16) as u16 };
    DivU32 (u32, u32) -> u32 ["div.u32"] |a, b| a.checked_div(b).unwrap_or(u32::MAX);
    DivS32 (u32, u32) -> u32 ["div.s32"] |a, b| if b == 0 { u32::MAX } else { (a as i32).wrapping_div(b as i32) as u32 };
    DivU64 (u64, u64) -> u64 ["div.u64"] |a, b| a.checked_div(b).unwrap_or(u64::MAX);
    DivS64 (u64, u64) -> u64 ["div.s64"] |a, b| if b == 0 { u64::MAX } else { (a as i64).wrapping_div(b as i64) as u64 };
    RemU16 (u16, u16) -> u16 ["rem.u16"] |a, b| a.checked_rem(b).unwrap_or(a);
    RemS16 (u16, u16) -> u16 ["rem.s16"] |a, b| if b == 0 { a } else { (a as i16).wrapping_rem(b as i16) as u16 };
    RemU32 (u32, u32) -> u32 ["rem.u32"] |a, b| a.checked_rem(b).unwrap_or(a);
    RemS32 (u32, u32) -> u32 ["rem.s32"] |a, b| if b == 0 { a } else { (a as i32).wrapping_rem(b as i32) as u32 };
    RemU64 (u64, u64) -> u64 ["rem.u64"] |a, b| a.checked_rem(b).unwrap_or(a);
    RemS64 (u64, u64) -> u64 ["rem.s64"] |a, b| if b == 0 { a } else { (a as i64).wrapping_rem(b as i64) as u64 };
    MinU16 (u16, u16) -> u16 ["min.u16"] |a, b| a.min(b);
    MinS16 (u16, u16) -> u16 ["min.s16"] |a, b| (a as i16).min(b as i16) as u16;
    MinU32 (u32, u32) -> u32 ["min.u32"] |a, b| a.min(b);
    MinS32 (u32, u32) -> u32 ["min.s32"] |a, b| (a as i32).min(b as i32) as u32;
    MinU64 (u64, u64) -> u64 ["min.u64"] |a, b| a.min(b);
    MinS64 (u64, u64) -> u64 ["min.s64"] |a, b| (a as i64).min(b as i64) as u64;
    MaxU16 (u16, u16) -> u16 ["max.u16"] |a, b| a.max(b);
    MaxS16 (u16, u16) -> u16 ["max.s16"] |a, b| (a as i16).max(b as i16) as u16;
    MaxU32 (u32, u32) -> u32 ["max.u32"] |a, b| a.max(b);
    MaxS32 (u32, u32) -> u32 ["max.s32"] |a, b| (a as i32).max(b as i32) as u32;
    MaxU64 (u64, u64) -> u64 ["max.u64"] |a, b| a.max(b);
    MaxS64 (u64, u64) -> u64 ["max.s64"] |a, b| (a as i64).max(b as i64) as u64;
    MinU16x2 (u32, u32) -> u32 ["min.u16x2"] |a, b| each_half(a, b, u16::min);
    MinS16x2 (u32, u32) -> u32 ["min.s16x2"] |a, b| each_half(a, b, |x, y| (x as i16).min(y as i16) as u16);
    MaxU16x2 (u32, u32) -> u32 ["max.u16x2"] |a, b| each_half(a, b, u16::max);
    MaxS16x2 (u32, u32) -> u32 ["max.s16x2"] |a, b| each_half(a, b, |x, y| (x as i16).max(y as i16) as u16);
    MinReluS32 (u32, u32) -> u32 ["min.relu.s32"] |a, b| (a as i32).min(b as i32).max(0) as u32;
    MaxReluS32 (u32, u32) -> u32 ["max.relu.s32"] |a, b| (a as i32).max(b as i32).max(0) as u32;
    MinReluS16x2 (u32, u32) -> u32 ["min.relu.s16x2"] |a, b| each_half(a, b, |x, y| (x as i16).min(y as i16).max(0) as u16);
    MaxReluS16x2 (u32, u32) -> u32 ["max.relu.s16x2"] |a, b| each_half(a, b, |x, y| (x as i16).max(y as i16).max(0) as u16);
    SzextWrapU32 (u32, u32) -> u32 ["szext.wrap.u32"] |a, n| szext(a, n & 31, false);
    SzextWrapS32 (u32, u32) -> u32 ["szext.wrap.s32"] |a, n| szext(a, n & 31, true);
    SzextClampU32 (u32, u32) -> u32 ["szext.clamp.u32"] |a, n| szext(a, n.min(32), false);
    SzextClampS32 (u32, u32) -> u32 ["szext.clamp.s32"] |a, n| szext(a, n.min(32), true);
    BmskWrap (u32, u32) -> u32 ["bmsk.wrap.b32"] |a, n| bmsk(a & 31, n & 31);
    BmskClamp (u32, u32) -> u32 ["bmsk.clamp.b32"] |a, n| bmsk(a, n);
    And16 (u16, u16) -> u16 ["and.b16"] |a, b| a & b;
    And32 (u32, u32) -> u32 ["and.b32"] |a, b| a & b;
    And64 (u64, u64) -> u64 ["and.b64"] |a, b| a & b;
    Or16 (u16, u16) -> u16 ["or.b16"] |a, b| a | b;
    Or32 (u32, u32) -> u32 ["or.b32"] |a, b| a | b;
    Or64 (u64, u64) -> u64 ["or.b64"] |a, b| a | b;
    Xor16 (u16, u16) -> u16 ["xor.b16"] |a, b| a ^ b;
    Xor32 (u32, u32) -> u32 ["xor.b32"] |a, b| a ^ b;
    Xor64 (u64, u64) -> u64 ["xor.b64"] |a, b| a ^ b;
    Shl16 (u16, u32) -> u16 ["shl.b16"] |a, n| shl32(a.into(), n) as u16;
    Shl32 (u32, u32) -> u32 ["shl.b32"] |a, n| shl32(a, n);
    Shl64 (u64, u32) -> u64 ["shl.b64"] |a, n| shl64(a, n);
    ShrU16 (u16, u32) -> u16 ["shr.u16" "shr.b16"] |a, n| shr32(a.into(), n) as u16;
    ShrU32 (u32, u32) -> u32 ["shr.u32" "shr.b32"] |a, n| shr32(a, n);
    ShrU64 (u64, u32) -> u64 ["shr.u64" "shr.b64"] |a, n| shr64(a, n);
    ShrS16 (u16, u32) -> u16 ["shr.s16"] |a, n| (a as i16 >> n.min(15)) as u16;
    ShrS32 (u32, u32) -> u32 ["shr.s32"] |a, n| (a as i32 >> n.min(31)) as u32;
    ShrS64 (u64, u32) -> u64 ["shr.s64"] |a, n| (a as i64 >> n.min(63)) as u64;
    AddF32 (u32, u32) -> u32 ["add.f32"] |a, b| add_f32(a, b);
    SubF32 (u32, u32) -> u32 ["sub.f32"] |a, b| sub_f32(a, b);
    MulF32 (u32, u32) -> u32 ["mul.f32"] |a, b| mul_f32(a, b);
    DivF32 (u32, u32) -> u32 ["div.f32"] |a, b| div_f32(a, b);
    MinF32 (u32, u32) -> u32 ["min.f32"] |a, b| min_f32(a, b);
    MaxF32 (u32, u32) -> u32 ["max.f32"] |a, b| max_f32(a, b);
    MinNanF32 (u32, u32) -> u32 ["min.NaN.f32"] |a, b| min_nan_f32(a, b);
    MaxNanF32 (u32, u32) -> u32 ["max.NaN.f32"] |a, b| max_nan_f32(a, b);
    CopysignF32 (u32, u32) -> u32 ["copysign.f32"] |a, b| b & 0x7fff_ffff | a & 0x8000_0000;
    CopysignF64 (u64, u64) -> u64 ["copysign.f64"] |a, b| b & !(1 << 63) | a & 1 << 63;
    AddF64 (u64, u64) -> u64 ["add.f64"] |a, b| (g(a) + g(b)).to_bits();
    SubF64 (u64, u64) -> u64 ["sub.f64"] |a, b| (g(a) - g(b)).to_bits();
    MulF64 (u64, u64) -> u64 ["mul.f64"] |a, b| (g(a) * g(b)).to_bits();
    DivF64 (u64, u64) -> u64 ["div.f64"] |a, b| (g(a) / g(b)).to_bits();
    MinF64 (u64, u64) -> u64 ["min.f64"] |a, b| crate::arithmetic::float::min_f64(a, b);
    MaxF64 (u64, u64) -> u64 ["max.f64"] |a, b| crate::arithmetic::float::max_f64(a, b);
    AddF16 (u16, u16) -> u16 ["add.f16"] |a, b| add_f16(a, b);
    SubF16 (u16, u16) -> u16 ["sub.f16"] |a, b| sub_f16(a, b);
    MulF16 (u16, u16) -> u16 ["mul.f16"] |a, b| mul_f16(a, b);
    MinF16 (u16, u16) -> u16 ["min.f16"] |a, b| min_f16::<false>(a, b);
    MaxF16 (u16, u16) -> u16 ["max.f16"] |a, b| max_f16::<false>(a, b);
    MinNanF16 (u16, u16) -> u16 ["min.NaN.f16"] |a, b| min_f16::<true>(a, b);
    MaxNanF16 (u16, u16) -> u16 ["max.NaN.f16"] |a, b| max_f16::<true>(a, b);
    AddF16x2 (u32, u32) -> u32 ["add.f16x2"] |a, b| each_half(a, b, add_f16);
    SubF16x2 (u32, u32) -> u32 ["sub.f16x2"] |a, b| each_half(a, b, sub_f16);
    MulF16x2 (u32, u32) -> u32 ["mul.f16x2"] |a, b| each_half(a, b, mul_f16);
    MinF16x2 (u32, u32) -> u32 ["min.f16x2"] |a, b| each_half(a, b, min_f16::<false>);
    MaxF16x2 (u32, u32) -> u32 ["max.f16x2"] |a, b| each_half(a, b, max_f16::<false>);
    MinNanF16x2 (u32, u32) -> u32 ["min.NaN.f16x2"] |a, b| each_half(a, b, min_f16::<true>);
    MaxNanF16x2 (u32, u32) -> u32 ["max.NaN.f16x2"] |a, b| each_half(a, b, max_f16::<true>);
    AddBf16 (u16, u16) -> u16 ["add.bf16"] |a, b| add_bf16(a, b);
    SubBf16 (u16, u16) -> u16 ["sub.bf16"] |a, b| sub_bf16(a, b);
    MulBf16 (u16, u16) -> u16 ["mul.bf16"] |a, b| mul_bf16(a, b);
    MinBf16 (u16, u16) -> u16 ["min.bf16"] |a, b| min_bf16::<false>(a, b);
    MaxBf16 (u16, u16) -> u16 ["max.bf16"] |a, b| max_bf16::<false>(a, b);
    MinNanBf16 (u16, u16) -> u16 ["min.NaN.bf16"] |a, b| min_bf16::<true>(a, b);
    MaxNanBf16 (u16, u16) -> u16 ["max.NaN.bf16"] |a, b| max_bf16::<true>(a, b);
    AddBf16x2 (u32, u32) -> u32 ["add.bf16x2"] |a, b| each_half(a, b, add_bf16);
    SubBf16x2 (u32, u32) -> u32 ["sub.bf16x2"] |a, b| each_half(a, b, sub_bf16);
    MulBf16x2 (u32, u32) -> u32 ["mul.bf16x2"] |a, b| each_half(a, b, mul_bf16);
    MinBf16x2 (u32, u32) -> u32 ["min.bf16x2"] |a, b| each_half(a, b, min_bf16::<false>);
    MaxBf16x2 (u32, u32) -> u32 ["max.bf16x2"] |a, b| each_half(a, b, max_bf16::<false>);
    MinNanBf16x2 (u32, u32) -> u32 ["min.NaN.bf16x2"] |a, b| each_half(a, b, min_bf16::<true>);
    MaxNanBf16x2 (u32, u32) -> u32 ["max.NaN.bf16x2"] |a, b| each_half(a, b, max_bf16::<true>);
    // Vectors packed into wider registers.
    Pack16 (u16, u16) -> u32 |a, b| u32::from(a) | u32::from(b) << 16;
    Pack32 (u32, u32) -> u64 |a, b| u64::from(a) | u64::from(b) << 32;
}

table! { TernaryOp, parse, exec, map3, [d a b c], 3;
    Mad16 (u16, u16, u16) -> u16 ["mad.lo.u16" "mad.lo.s16"] |a, b, c| a.wrapping_mul(b).wrapping_add(c);
    Mad32 (u32, u32, u32) -> u32 ["mad.lo.u32" "mad.lo.s32"] |a, b, c| a.wrapping_mul(b).wrapping_add(c);
    Mad64 (u64, u64, u64) -> u64 ["mad.lo.u64" "mad.lo.s64"] |a, b, c| a.wrapping_mul(b).wrapping_add(c);
    MadHiU32 (u32, u32, u32) -> u32 ["mad.hi.u32"] |a, b, c| ((u64::from(a) * u64::from(b) >> 32) as u32).wrapping_add(c);
    MadHiS32 (u32, u32, u32) -> u32 ["mad.hi.s32"] |a, b, c| ((i64::from(a as i32) * i64::from(b as i32) >> 32) as u32).wrapping_add(c);
    MadHiU64 (u64, u64, u64) -> u64 ["mad.hi.u64"] |a, b, c| ((u128::from(a) * u128::from(b) >> 64) as u64).wrapping_add(c);
    MadHiS64 (u64, u64, u64) -> u64 ["mad.hi.s64"] |a, b, c| ((i128::from(a as i64) * i128::from(b as i64) >> 64) as u64).wrapping_add(c);
    MadWideU16 (u16, u16, u32) -> u32 ["mad.wide.u16"] |a, b, c| (u32::from(a) * u32::from(b)).wrapping_add(c);
    MadWideS16 (u16, u16, u32) -> u32 ["mad.wide.s16"] |a, b, c| ((i32::from(a as i16) * i32::from(b as i16)) as u32).wrapping_add(c);
    MadWideU32 (u32, u32, u64) -> u64 ["mad.wide.u32"] |a, b, c| (u64::from(a) * u64::from(b)).wrapping_add(c);
    MadWideS32 (u32, u32, u64) -> u64 ["mad.wide.s32"] |a, b, c| ((i64::from(a as i32) * i64::from(b as i32)) as u64).wrapping_add(c);
    SadU32 (u32, u32, u32) -> u32 ["sad.u32"] |a, b, c| a.abs_diff(b).wrapping_add(c);
    SadS32 (u32, u32, u32) -> u32 ["sad.s32"] |a, b, c| (a as i32).abs_diff(b as i32).wrapping_add(c);
    SadU16 (u16, u16, u16) -> u16 ["sad.u16"] |a, b, c| a.abs_diff(b).wrapping_add(c);
    SadS16 (u16, u16, u16) -> u16 ["sad.s16"] |a, b, c| (a as i16).abs_diff(b as i16).wrapping_add(c);
    SadU64 (u64, u64, u64) -> u64 ["sad.u64"] |a, b, c| a.abs_diff(b).wrapping_add(c);
    SadS64 (u64, u64, u64) -> u64 ["sad.s64"] |a, b, c| (a as i64).abs_diff(b as i64).wrapping_add(c);
    MadHiSatS32 (u32, u32, u32) -> u32 ["mad.hi.sat.s32"] |a, b, c| ((i64::from(a as i32) * i64::from(b as i32) >> 32) as i32).saturating_add(c as i32) as u32;
    Mad24LoU32 (u32, u32, u32) -> u32 ["mad24.lo.u32"] |a, b, c| ((low24(a, false) * low24(b, false)) as u32).wrapping_add(c);
    Mad24LoS32 (u32, u32, u32) -> u32 ["mad24.lo.s32"] |a, b, c| ((low24(a, true) * low24(b, true)) as u32).wrapping_add(c);
    Mad24HiU32 (u32, u32, u32) -> u32 ["mad24.hi.u32"] |a, b, c| ((low24(a, false) * low24(b, false) >> 16) as u32).wrapping_add(c);
    Mad24HiS32 (u32, u32, u32) -> u32 ["mad24.hi.s32"] |a, b, c| ((low24(a, true) * low24(b, true) >> 16) as u32).wrapping_add(c);
    Mad24HiSatS32 (u32, u32, u32) -> u32 ["mad24.hi.sat.s32"] |a, b, c| ((low24(a, true) * low24(b, true) >> 16) as i32).saturating_add(c as i32) as u32;
    Fns (u32, u32, u32) -> u32 ["fns.b32"] |a, b, c| fns(a, b, c);
    FmaF32 (u32, u32, u32) -> u32 ["fma.f32" "mad.f32"] |a, b, c| fma_f32(a, b, c);
    FmaF64 (u64, u64, u64) -> u64 ["fma.f64" "mad.f64"] |a, b, c| g(a).mul_add(g(b), g(c)).to_bits();
    FmaF16 (u16, u16, u16) -> u16 ["fma.f16"] |a, b, c| fma_f16(a, b, c);
    FmaBf16 (u16, u16, u16) -> u16 ["fma.bf16"] |a, b, c| fma_bf16(a, b, c);
    FmaF16x2 (u32, u32, u32) -> u32 ["fma.f16x2"] |a, b, c| crate::arithmetic::float::each_half3(a, b, c, fma_f16);
    FmaBf16x2 (u32, u32, u32) -> u32 ["fma.bf16x2"] |a, b, c| crate::arithmetic::float::each_half3(a, b, c, fma_bf16);
    BfeU32 (u32, u32, u32) -> u32 ["bfe.u32"] |a, b, c| bfe(a.into(), b, c, 32, false) as u32;
    BfeS32 (u32, u32, u32) -> u32 ["bfe.s32"] |a, b, c| bfe(a.into(), b, c, 32, true) as u32;
    BfeU64 (u64, u32, u32) -> u64 ["bfe.u64"] |a, b, c| bfe(a, b, c, 64, false);
    BfeS64 (u64, u32, u32) -> u64 ["bfe.s64"] |a, b, c| bfe(a, b, c, 64, true);
    Prmt (u32, u32, u32) -> u32 ["prmt.b32"] |a, b, c| prmt(a, b, c);
    PrmtF4e (u32, u32, u32) -> u32 ["prmt.b32.f4e"] |a, b, c| prmt(a, b, [0x3210, 0x4321, 0x5432, 0x6543][c as usize & 3]);
    PrmtB4e (u32, u32, u32) -> u32 ["prmt.b32.b4e"] |a, b, c| prmt(a, b, [0x5670, 0x6701, 0x7012, 0x0123][c as usize & 3]);
    PrmtRc8 (u32, u32, u32) -> u32 ["prmt.b32.rc8"] |a, b, c| prmt(a, b, (c & 3) * 0x1111);
    PrmtEcl (u32, u32, u32) -> u32 ["prmt.b32.ecl"] |a, b, c| prmt(a, b, [0x3210, 0x3211, 0x3222, 0x3333][c as usize & 3]);
    PrmtEcr (u32, u32, u32) -> u32 ["prmt.b32.ecr"] |a, b, c| prmt(a, b, [0x0000, 0x1110, 0x2210, 0x3210][c as usize & 3]);
    PrmtRc16 (u32, u32, u32) -> u32 ["prmt.b32.rc16"] |a, b, c| prmt(a, b, [0x1010, 0x3232][c as usize & 1]);
    ShfLeftWrap (u32, u32, u32) -> u32 ["shf.l.wrap.b32"] |a, b, c| shl64(pair(a, b), c & 31).bits_high();
    ShfLeftClamp (u32, u32, u32) -> u32 ["shf.l.clamp.b32"] |a, b, c| shl64(pair(a, b), c.min(32)).bits_high();
    ShfRightWrap (u32, u32, u32) -> u32 ["shf.r.wrap.b32"] |a, b, c| (pair(a, b) >> (c & 31)) as u32;
    ShfRightClamp (u32, u32, u32) -> u32 ["shf.r.clamp.b32"] |a, b, c| (pair(a, b) >> c.min(32)) as u32;
    Slct32 (u32, u32, u32) -> u32 ["slct.b32.s32" "slct.u32.s32" "slct.s32.s32" "slct.f32.s32"] |a, b, c| if (c as i32) >= 0 { a } else { b };
    Slct64 (u64, u64, u32) -> u64 ["slct.b64.s32" "slct.u64.s32" "slct.s64.s32" "slct.f64.s32"] |a, b, c| if (c as i32) >= 0 { a } else { b };
    SlctF32 (u32, u32, u32) -> u32 ["slct.b32.f32" "slct.u32.f32" "slct.s32.f32" "slct.f32.f32"] |a, b, c| if f(c) >= 0.0 { a } else { b };
    Dp4aUU (u32, u32, u32) -> u32 ["dp4a.u32.u32"] |a, b, c| dp4a(a, b, c, false, false);
    Dp4aSS (u32, u32, u32) -> u32 ["dp4a.s32.s32"] |a, b, c| dp4a(a, b, c, true, true);
    Dp4aUS (u32, u32, u32) -> u32 ["dp4a.u32.s32"] |a, b, c| dp4a(a, b, c, false, true);
    Dp2aLoUU (u32, u32, u32) -> u32 ["dp2a.lo.u32.u32"] |a, b, c| dp2a(a, b, c, false, false);
    Dp2aLoSS (u32, u32, u32) -> u32 ["dp2a.lo.s32.s32"] |a, b, c| dp2a(a, b, c, true, true);
    Dp2aLoUS (u32, u32, u32) -> u32 ["dp2a.lo.u32.s32"] |a, b, c| dp2a(a, b, c, false, true);
    Dp2aLoSU (u32, u32, u32) -> u32 ["dp2a.lo.s32.u32"] |a, b, c| dp2a(a, b, c, true, false);
    Dp2aHiUU (u32, u32, u32) -> u32 ["dp2a.hi.u32.u32"] |a, b, c| dp2a(a, b >> 16, c, false, false);
    Dp2aHiSS (u32, u32, u32) -> u32 ["dp2a.hi.s32.s32"] |a, b, c| dp2a(a, b >> 16, c, true, true);
    Dp2aHiUS (u32, u32, u32) -> u32 ["dp2a.hi.u32.s32"] |a, b, c| dp2a(a, b >> 16, c, false, true);
    Dp2aHiSU (u32, u32, u32) -> u32 ["dp2a.hi.s32.u32"] |a, b, c| dp2a(a, b >> 16, c, true, false);
    Dp4aSU (u32, u32, u32) -> u32 ["dp4a.s32.u32"] |a, b, c| dp4a(a, b, c, true, false);
}

#[inline(always)]
fn pair(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

trait High {
    fn bits_high(self) -> u32;
}

impl High for u64 {
    #[inline(always)]
    fn bits_high(self) -> u32 {
        (self >> 32) as u32
    }
}

/// Bit field extract as PTX defines it: position and length are taken modulo 256, the sign bit is the field's top
/// bit or the source's where the field reaches beyond it.
#[inline(always)]
fn bfe(a: u64, position: u32, length: u32, width: u32, signed: bool) -> u64 {
    let (position, length) = (position & 0xff, length & 0xff);
    let top = (position + length).saturating_sub(1).min(width - 1);
    let sign = signed && length > 0 && a >> top & 1 != 0;
    let field = shr64(a, position);
    let kept = length.min(width.saturating_sub(position));
    let mask = shl64(1, kept).wrapping_sub(1);
    field & mask | if sign { !mask } else { 0 }
}

/// Bit field insert: the low `length` bits of `a` replace those of `b` from `position` on.
#[inline(always)]
pub(crate) fn bfi(a: u64, b: u64, position: u32, length: u32, width: u32) -> u64 {
    let (position, length) = (position & 0xff, length & 0xff);
    if position >= width {
        return b;
    }
    let mask = shl64(1, length.min(width - position)).wrapping_sub(1) << position;
    b & !mask | a << position & mask
}

#[inline(always)]
pub(crate) fn prmt(a: u32, b: u32, selector: u32) -> u32 {
    let bytes = pair(a, b);
    let mut out = 0;
    for i in 0..4 {
        let pick = selector >> (4 * i) & 0xf;
        let byte = (bytes >> (8 * (pick & 7))) as u8;
        let byte = if pick & 8 != 0 { ((byte as i8) >> 7) as u8 } else { byte };
        out |= u32::from(byte) << (8 * i);
    }
    out
}

#[inline(always)]
fn dp4a(a: u32, b: u32, c: u32, a_signed: bool, b_signed: bool) -> u32 {
    let byte = |v: u32, i: u32, signed| {
        let byte = (v >> (8 * i)) as u8;
        if signed { i32::from(byte as i8) } else { i32::from(byte) }
    };
    (0..4).fold(c, |sum, i| sum.wrapping_add(byte(a, i, a_signed).wrapping_mul(byte(b, i, b_signed)) as u32))
}

/// Any function of three bits, bit `4a + 2b + c` of the table.
#[inline(always)]
pub(crate) fn lop3(a: u32, b: u32, c: u32, table: u8) -> u32 {
    let mut out = 0;
    for i in 0..8 {
        if table >> i & 1 != 0 {
            let pick = |v: u32, bit: u8| if i >> bit & 1 != 0 { v } else { !v };
            out |= pick(a, 2) & pick(b, 1) & pick(c, 0);
        }
    }
    out
}

/// The product of two 16-bit parts of `a` with the lower two bytes of `b`, added to `c`.
fn dp2a(a: u32, b: u32, c: u32, a_signed: bool, b_signed: bool) -> u32 {
    let half = |i: u32| {
        let v = (a >> (16 * i)) as u16;
        if a_signed { i32::from(v as i16) } else { i32::from(v) }
    };
    let byte = |i: u32| {
        let v = (b >> (8 * i)) as u8;
        if b_signed { i32::from(v as i8) } else { i32::from(v) }
    };
    (0..2).fold(c, |sum, i| sum.wrapping_add((half(i) * byte(i)) as u32))
}

/// The low 24 bits, extended.
fn low24(a: u32, signed: bool) -> i64 {
    if signed { i64::from((a << 8) as i32 >> 8) } else { i64::from(a & 0xff_ffff) }
}

/// Position of the highest bit that differs from the sign; all ones if there is none.
fn bfind_signed(a: u64, width: u32) -> u32 {
    let signed = if width == 32 { i64::from(a as i32) } else { a as i64 };
    63u32.wrapping_sub((signed ^ signed >> 63).leading_zeros())
}

fn shift_amount(top: u32, position: u32) -> u32 {
    if position == u32::MAX { position } else { top - position }
}

/// Extends the low `n` bits, `n` up to 32.
fn szext(a: u32, n: u32, signed: bool) -> u32 {
    if n == 0 {
        0
    } else if signed {
        ((a << (32 - n)) as i32 >> (32 - n)) as u32
    } else {
        a & u32::MAX >> (32 - n)
    }
}

/// `n` ones from bit `a` on, as far as they fit.
fn bmsk(a: u32, n: u32) -> u32 {
    let ones = shl64(1, n.min(32)) - 1;
    shl64(ones, a.min(32)) as u32
}

/// The position of the `offset`-th set bit counted from `base` upwards, or downwards if negative.
fn fns(mask: u32, base: u32, offset: u32) -> u32 {
    let set = |i: &i64| mask >> i & 1 != 0;
    let (base, offset) = (i64::from(base as i32), offset as i32);
    if !(0..32).contains(&base) {
        return u32::MAX;
    }
    let found = match offset {
        0 => Some(base).filter(|i| set(i)),
        1.. => (base..32).filter(set).nth(offset as usize - 1),
        _ => (0..=base).rev().filter(set).nth(offset.unsigned_abs() as usize - 1),
    };
    found.map_or(u32::MAX, |i| i as u32)
}
