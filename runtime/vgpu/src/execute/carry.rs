//! Instructions that work on predicates of lanes: carry chains, and tests of the kind of a float.

use crate::arithmetic::exact::is_nan;
use crate::arithmetic::float::{F32, F64};
use crate::isa::{Carry, CarryKind, TestKind};
use crate::registers::{Bank, Reg, Regs, lanes};

/// `d = a + b`, `a - b` or a half of `a * b`, plus `c`, with the carry that came in; sets the one that goes out.
pub(crate) fn exec(op: &Carry, regs: &mut Regs, [d, a, b, c]: [Reg; 4], mask: u32) {
    let bank = if op.wide { Bank::B64 } else { Bank::B32 };
    let width = 8 * bank.bytes() as u32;
    let came = if op.reads { regs.pred[op.carry as usize] } else { 0 };
    let mut went = 0;
    for lane in lanes(mask) {
        let carry = u128::from(came >> lane & 1);
        let read = |r: Reg| u128::from(regs.read(bank, r, lane));
        let product = |shift: u32| {
            let signed = |r: Reg| {
                let bits = regs.read(bank, r, lane);
                if op.wide { i128::from(bits as i64) } else { i128::from(bits as i32) }
            };
            // The low half is the same for both kinds of factors.
            let full = if op.signed { (signed(a) * signed(b)) as u128 } else { read(a) * read(b) };
            full >> shift & u128::from(u64::MAX >> (64 - width))
        };
        let (sum, out) = match op.kind {
            CarryKind::Add => overflowing(read(a), read(b), carry, width),
            CarryKind::MadLow => overflowing(product(0), read(c), carry, width),
            CarryKind::MadHigh => overflowing(product(width), read(c), carry, width),
            CarryKind::Sub => {
                let taken = read(b) + carry;
                (read(a).wrapping_sub(taken) as u64, read(a) < taken)
            }
        };
        regs.write(bank, d, lane, sum);
        went |= u32::from(out) << lane;
    }
    if op.writes {
        regs.put_pred(op.carry, mask, went);
    }
}

fn overflowing(a: u128, b: u128, carry: u128, width: u32) -> (u64, bool) {
    let sum = a + b + carry;
    (sum as u64, sum >> width != 0)
}

pub(crate) fn test(kind: TestKind, wide: bool, regs: &mut Regs, [d, a]: [Reg; 2], mask: u32) {
    let (bank, f) = if wide { (Bank::B64, F64) } else { (Bank::B32, F32) };
    let holds = lanes(mask)
        .filter(|&lane| {
            let bits = regs.read(bank, a, lane);
            let magnitude = bits & !f.sign_bit();
            match kind {
                TestKind::Finite => magnitude <= f.finite,
                TestKind::Infinite => magnitude == f.infinity(),
                TestKind::Number => !is_nan(bits, f),
                TestKind::NotANumber => is_nan(bits, f),
                TestKind::Normal => magnitude <= f.finite && !f.is_subnormal(bits),
                TestKind::Subnormal => f.is_subnormal(bits),
            }
        })
        .fold(0, |m, lane| m | 1 << lane);
    regs.put_pred(d, mask, holds);
}
