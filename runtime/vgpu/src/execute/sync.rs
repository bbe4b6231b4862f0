//! Instructions at which lanes or warps wait for each other.

use crate::arithmetic::float_ops::reduce_f32;
use crate::execute::block::BARRIERS;
use crate::execute::context::{StepContext, WarpPosition, pred};
use crate::execute::progress::{Split, SplitState};
use crate::execute::warp::Warp;
use crate::fault::Fault;
use crate::isa::{Barrier, BarrierMode, PtxFunction, PtxOp, ReduxOp, ShflMode, VoteMode, WarpCollective};
use crate::observe::WarpEvent;
use crate::registers::{LANES, NO_REG, Reg, Regs, lanes};

impl Warp {
    /// Live lanes that a waiting split needs beside it.
    pub(crate) fn needed(&self, split: &Split) -> u32 {
        match split.state {
            SplitState::Members(members) => members & self.live,
            SplitState::Aligned => self.live,
            SplitState::Ready | SplitState::Barrier(_) => 0,
        }
    }

    /// Executes the sync instruction that all lanes of split `s` are at.
    pub(crate) fn sync(
        &mut self,
        cx: &mut StepContext<'_>,
        function: &PtxFunction,
        s: usize,
    ) -> Result<(), Fault> {
        let split = self.progress.splits[s];
        let inst = function.code[split.pc as usize];
        let at = WarpPosition { function, pc: split.pc, warp: self.index };
        let lane = split.mask.trailing_zeros() as usize;
        let place = |cx: &StepContext<'_>| Box::new(cx.place(at, lane));
        match inst.op {
            PtxOp::Collective(what, members) => {
                let values = self.progress.frames[split.frame].regs.get::<u32>(members);
                let mask = values[lane];
                let own = lanes(split.mask).all(|l| values[l] == mask && mask >> l & 1 != 0);
                if !own {
                    let what = "the member mask, which must be the same in all lanes and name them,";
                    return Err(Fault::Value { place: place(cx), what, value: mask.into() });
                }
                self.progress.splits[s].state = SplitState::Members(mask);
                let waiting = self.progress.splits[s];
                let here = self.gathered(&waiting);
                if here & self.needed(&waiting) == self.needed(&waiting) {
                    // Only this one orders memory; shuffles and votes do not (PTX ISA, `bar.warp.sync`).
                    if let WarpCollective::Sync = what {
                        let met = WarpEvent::WarpSync { mask: here, live: self.live };
                        cx.event(at, met)?;
                    }
                    collective(&mut self.progress.frames[split.frame].regs, what, here);
                    self.advance(split.frame, split.pc);
                }
            }
            PtxOp::Barrier(barrier) => {
                let mut here = split.mask;
                if barrier.aligned && here != self.live {
                    self.progress.splits[s].state = SplitState::Aligned;
                    let waiting = self.progress.splits[s];
                    here = self.gathered(&waiting);
                    if here != self.live {
                        return Ok(());
                    }
                }
                self.arrive_at_barrier(cx, at, &split, &barrier, here)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn arrive_at_barrier(
        &mut self,
        cx: &mut StepContext<'_>,
        at: WarpPosition<'_>,
        split: &Split,
        barrier: &Barrier,
        here: u32,
    ) -> Result<(), Fault> {
        let lane = here.trailing_zeros() as usize;
        let place = |cx: &StepContext<'_>| Box::new(cx.place(at, lane));
        let regs = &self.progress.frames[split.frame].regs;
        let uniform = |r: Reg| {
            let values = regs.get::<u32>(r);
            lanes(here).all(|l| values[l] == values[lane]).then_some(values[lane])
        };
        let id = match uniform(barrier.id) {
            Some(id) if (id as usize) < BARRIERS => id,
            _ => {
                let what = "the barrier, which must be below 16 and the same in all lanes,";
                return Err(Fault::Value {
                    place: place(cx),
                    what,
                    value: regs.r32[barrier.id as usize][lane].into(),
                });
            }
        };
        let expected = match barrier.count {
            NO_REG => cx.block.info.shape.warps() * LANES as u32,
            count => match uniform(count) {
                Some(count) if count != 0 && count % 32 == 0 => count,
                _ => {
                    let what = "the barrier's thread count, which must be a multiple of 32 and not 0,";
                    return Err(Fault::Value {
                        place: place(cx),
                        what,
                        value: regs.r32[count as usize][lane].into(),
                    });
                }
            },
        };
        // The missing threads of a block's last warp count as arrived with the others.
        let threads = if here == self.lanes { LANES as u32 } else { here.count_ones() };
        let votes = if barrier.a.reg == NO_REG { 0 } else { pred(regs, barrier.a) & here };
        let waits = barrier.mode != BarrierMode::Arrive;
        cx.event(at, WarpEvent::Arrive { barrier: id, mask: here, waits })?;
        let done = cx.block.arrive(id, expected, threads, barrier, (self.index, here, votes)).map_err(
            |refused| Fault::Barrier {
                place: place(cx),
                barrier: id,
                arrived: refused.arrived,
                expected: refused.expected,
                reason: refused.reason,
            },
        )?;
        for other in &mut self.progress.splits {
            if other.frame == split.frame && other.pc == split.pc && other.mask & !here == 0 {
                other.state = SplitState::Barrier(id);
            }
        }
        if barrier.mode == BarrierMode::Arrive {
            self.advance(split.frame, split.pc);
        }
        if done {
            cx.event(at, WarpEvent::Complete { barrier: id })?;
            cx.tally.epoch += 1;
            cx.tally.waits.barriers += 1;
            let mut wakes = std::mem::take(&mut cx.block.wakes);
            self.wake(&mut wakes);
            cx.block.wakes = wakes;
        }
        Ok(())
    }

    /// Returns a fault if lanes wait for lanes that wait elsewhere: nobody outside the warp can end that.
    pub(crate) fn stuck(&self, cx: &StepContext<'_>) -> Option<Fault> {
        let splits = &self.progress.splits;
        if self.live == 0
            || splits.iter().any(|s| matches!(s.state, SplitState::Ready | SplitState::Barrier(_)))
        {
            return None;
        }
        let split = splits.first()?;
        let function = &cx.module.functions[self.progress.frames[split.frame].function as usize];
        let inst = &function.code[split.pc as usize];
        let waiting = self.gathered(split);
        let at = WarpPosition { function, pc: split.pc, warp: self.index };
        let instruction = match inst.op {
            PtxOp::Collective(WarpCollective::Shfl { .. }, _) => "shfl.sync",
            PtxOp::Collective(WarpCollective::Vote { .. }, _) => "vote.sync",
            PtxOp::Collective(WarpCollective::Sync, _) => "bar.warp.sync",
            PtxOp::Collective(..) => "a warp-wide instruction",
            _ => "an aligned barrier",
        };
        Some(Fault::Divergent {
            place: Box::new(cx.place(at, waiting.trailing_zeros() as usize)),
            instruction,
            waiting,
            missing: self.needed(split) & !waiting,
            reason: "wait at another instruction",
        })
    }
}

/// Executes an instruction of the lanes of `mask` together.
fn collective(regs: &mut Regs, what: WarpCollective, mask: u32) {
    let members = || lanes(mask);
    match what {
        WarpCollective::Sync => {}
        WarpCollective::Shfl { mode, d, p, a, b, c } => {
            let (values, shifts, controls) = (*regs.get::<u32>(a), *regs.get::<u32>(b), *regs.get::<u32>(c));
            let mut out = [0; LANES];
            let mut valid = 0;
            for lane in members() {
                let (clamp, segment) = (controls[lane] & 31, controls[lane] >> 8 & 31);
                let (own, by) = (lane as u32, shifts[lane] & 31);
                let upper = own & segment | clamp & !segment;
                let lower = own & segment;
                let (from, inside) = match mode {
                    ShflMode::Up => (own.wrapping_sub(by), own as i32 - by as i32 >= upper as i32),
                    ShflMode::Down => (own + by, own + by <= upper),
                    ShflMode::Bfly => (own ^ by, own ^ by <= upper),
                    ShflMode::Idx => (lower | by & !segment, (lower | by & !segment) <= upper),
                };
                let from = if inside { from as usize & 31 } else { lane };
                out[lane] = values[from];
                valid |= u32::from(inside) << lane;
            }
            regs.put(d, mask, &out);
            if p != NO_REG {
                regs.put_pred(p, mask, valid);
            }
        }
        WarpCollective::Vote { mode, d, a } => {
            let votes = pred(regs, a) & mask;
            let result = match mode {
                VoteMode::Ballot => {
                    regs.put(d, mask, &[votes; LANES]);
                    return;
                }
                VoteMode::All => votes == mask,
                VoteMode::Any => votes != 0,
                VoteMode::Uni => votes == mask || votes == 0,
            };
            regs.put_pred(d, mask, if result { u32::MAX } else { 0 });
        }
        WarpCollective::Match { all, wide, d, p, a } => {
            let value = |lane: usize| {
                if wide { regs.r64[a as usize][lane] } else { regs.r32[a as usize][lane].into() }
            };
            let mut out = [0; LANES];
            for lane in members() {
                out[lane] = members().filter(|&other| value(other) == value(lane)).fold(0, |m, l| m | 1 << l);
            }
            if all {
                let same = members().all(|lane| out[lane] == mask);
                out = [if same { mask } else { 0 }; LANES];
                if p != NO_REG {
                    regs.put_pred(p, mask, if same { u32::MAX } else { 0 });
                }
            }
            regs.put(d, mask, &out);
        }
        WarpCollective::Redux { op, signed, d, a } => {
            let values = *regs.get::<u32>(a);
            let fold = |f: fn(u32, u32) -> u32| members().map(|l| values[l]).reduce(f).unwrap_or(0);
            let result = match (op, signed) {
                (ReduxOp::Add, _) => fold(u32::wrapping_add),
                (ReduxOp::And, _) => fold(|a, b| a & b),
                (ReduxOp::Or, _) => fold(|a, b| a | b),
                (ReduxOp::Xor, _) => fold(|a, b| a ^ b),
                (ReduxOp::Min, false) => fold(u32::min),
                (ReduxOp::Max, false) => fold(u32::max),
                (ReduxOp::Min, true) => fold(|a, b| (a as i32).min(b as i32) as u32),
                (ReduxOp::Max, true) => fold(|a, b| (a as i32).max(b as i32) as u32),
                (ReduxOp::FloatMin { abs, nan }, _) => {
                    reduce_f32(members().map(|l| values[l]), false, abs, nan)
                }
                (ReduxOp::FloatMax { abs, nan }, _) => {
                    reduce_f32(members().map(|l| values[l]), true, abs, nan)
                }
            };
            regs.put(d, mask, &[result; LANES]);
        }
        WarpCollective::Elect { d, p } => {
            let leader = mask.trailing_zeros();
            if d != NO_REG {
                regs.put(d, mask, &[leader; LANES]);
            }
            regs.put_pred(p, mask, 1 << leader);
        }
    }
}
