//! Instructions that work on registers only.

use crate::arithmetic::tables::{bfi, lop3};
use crate::arithmetic::types::Ty;
use crate::execute::context::pred;
use crate::execute::{carry, convert};
use crate::isa::{Cmp, PtxOp};
use crate::registers::{ALL, Bank, LANES, LaneValue, Lanes, NO_REG, Reg, Regs, lanes};

/// Executes an instruction for the lanes of `active`; `false` if it works on more than registers.
#[inline(always)]
pub(crate) fn compute(op: &PtxOp, regs: &mut Regs, active: u32) -> bool {
    match *op {
        PtxOp::Unary(kind, ops) => kind.exec(regs, ops, active),
        PtxOp::Binary(kind, ops) => kind.exec(regs, ops, active),
        PtxOp::Ternary(kind, ops) => kind.exec(regs, ops, active),
        PtxOp::Lop3(ops, table) => regs.map3(ops, active, |a, b, c| lop3(a, b, c, table)),
        PtxOp::Bfi { wide: false, ops } => bit_field::<u32>(regs, ops, active, 32),
        PtxOp::Bfi { wide: true, ops } => bit_field::<u64>(regs, ops, active, 64),
        PtxOp::Setp { cmp, ty, d, q, a, b, logic } => {
            let holds = compare(regs, cmp, ty, a, b);
            let (yes, no) = match logic {
                Some((logic, c)) => {
                    let c = pred(regs, c);
                    (logic.apply(holds, c), logic.apply(!holds, c))
                }
                None => (holds, !holds),
            };
            regs.put_pred(d, active, yes);
            if q != NO_REG {
                regs.put_pred(q, active, no);
            }
        }
        PtxOp::Selp { bank, d, a, b, p } => {
            let p = pred(regs, p);
            match bank {
                Bank::B16 => regs.select::<u16>([d, a, b], p, active),
                Bank::B32 => regs.select::<u32>([d, a, b], p, active),
                Bank::B64 => regs.select::<u64>([d, a, b], p, active),
            }
        }
        PtxOp::PredLogic(logic, d, a, b) => {
            let value = logic.apply(pred(regs, a), pred(regs, b));
            regs.put_pred(d, active, value);
        }
        PtxOp::PredMov(d, a) => {
            let value = pred(regs, a);
            regs.put_pred(d, active, value);
        }
        PtxOp::PredConst(d, value) => regs.put_pred(d, active, if value { ALL } else { 0 }),
        PtxOp::ActiveMask(d) => regs.put(d, active, &[active; LANES]),
        PtxOp::Convert(ref c, d, a) => {
            for lane in lanes(active) {
                let value = convert::convert(c, regs.read(c.from_bank, a, lane));
                regs.write(c.to_bank, d, lane, value);
            }
        }
        PtxOp::ConvertPair(ref c, d, high, low) => {
            lanes(active).for_each(|l| convert::convert_pair(c, regs, [d, high, low], l));
        }
        PtxOp::ConvertEach(ref c, d, a) => {
            lanes(active).for_each(|l| convert::convert_each(c, regs, [d, a], l));
        }
        PtxOp::Float(ref op, ops) => op.exec(regs, ops, active),
        PtxOp::Carry(ref c, ops) => carry::exec(c, regs, ops, active),
        PtxOp::Test { kind, wide, d, a } => carry::test(kind, wide, regs, [d, a], active),
        _ => return false,
    }
    true
}

/// `bfi`: the low bits of `a` replace those of `b`, as many as `l` says, from position `p` on.
fn bit_field<T: LaneValue>(regs: &mut Regs, [d, a, b, p, l]: [Reg; 5], mask: u32, width: u32) {
    let mut out = [T::default(); LANES];
    for (i, out) in out.iter_mut().enumerate() {
        let (a, b) = (regs.get::<T>(a)[i].bits(), regs.get::<T>(b)[i].bits());
        *out = T::from_bits(bfi(a, b, regs.r32[p as usize][i], regs.r32[l as usize][i], width));
    }
    regs.put(d, mask, &out);
}

/// The lanes where the comparison holds.
#[inline(always)]
fn compare(regs: &Regs, cmp: Cmp, ty: Ty, a: Reg, b: Reg) -> u32 {
    let half = |v: u16| half::f16::from_bits(v).to_f32();
    let brain = |v: u16| half::bf16::from_bits(v).to_f32();
    match ty {
        Ty::U16 => compare_as(regs, cmp, a, b, |v: u16| v),
        Ty::S16 => compare_as(regs, cmp, a, b, |v: u16| v as i16),
        Ty::S32 => compare_as(regs, cmp, a, b, |v: u32| v as i32),
        Ty::U64 => compare_as(regs, cmp, a, b, |v: u64| v),
        Ty::S64 => compare_as(regs, cmp, a, b, |v: u64| v as i64),
        Ty::F16 => compare_as(regs, cmp, a, b, half),
        Ty::Bf16 => compare_as(regs, cmp, a, b, brain),
        Ty::F32 => compare_as(regs, cmp, a, b, f32::from_bits),
        Ty::F64 => compare_as(regs, cmp, a, b, f64::from_bits),
        _ => compare_as(regs, cmp, a, b, |v: u32| v),
    }
}

#[inline(always)]
fn compare_as<T: LaneValue, V: PartialOrd + Copy>(
    regs: &Regs,
    cmp: Cmp,
    a: Reg,
    b: Reg,
    value: impl Fn(T) -> V,
) -> u32 {
    let (x, y) = (regs.get::<T>(a), regs.get::<T>(b));
    #[expect(clippy::eq_op, reason = "NaN differs from itself")]
    let nan = |a: V, b: V| a != a || b != b;
    match cmp {
        Cmp::Eq => holds(x, y, |a, b| value(a) == value(b)),
        Cmp::Ne => holds(x, y, |a, b| value(a) != value(b) && !nan(value(a), value(b))),
        Cmp::Lt => holds(x, y, |a, b| value(a) < value(b)),
        Cmp::Le => holds(x, y, |a, b| value(a) <= value(b)),
        Cmp::Gt => holds(x, y, |a, b| value(a) > value(b)),
        Cmp::Ge => holds(x, y, |a, b| value(a) >= value(b)),
        Cmp::Equ => holds(x, y, |a, b| value(a) == value(b) || nan(value(a), value(b))),
        Cmp::Neu => holds(x, y, |a, b| value(a) != value(b)),
        Cmp::Ltu => holds(x, y, |a, b| value(a) < value(b) || nan(value(a), value(b))),
        Cmp::Leu => holds(x, y, |a, b| value(a) <= value(b) || nan(value(a), value(b))),
        Cmp::Gtu => holds(x, y, |a, b| value(a) > value(b) || nan(value(a), value(b))),
        Cmp::Geu => holds(x, y, |a, b| value(a) >= value(b) || nan(value(a), value(b))),
        Cmp::Num => holds(x, y, |a, b| !nan(value(a), value(b))),
        Cmp::Nan => holds(x, y, |a, b| nan(value(a), value(b))),
    }
}

#[inline(always)]
fn holds<T: LaneValue>(x: &Lanes<T>, y: &Lanes<T>, f: impl Fn(T, T) -> bool) -> u32 {
    let mut bits = 0;
    for i in 0..LANES {
        bits |= u32::from(f(x[i], y[i])) << i;
    }
    bits
}
