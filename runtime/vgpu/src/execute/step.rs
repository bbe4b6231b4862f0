//! Execution of a warp: a slice of instructions, decoded once for all lanes.

use crate::execute::compute::compute;
use crate::execute::context::{StepContext, WarpPosition, guard};
use crate::execute::load_store::{WarpMemory, WarpStep};
use crate::execute::progress::{Split, SplitState};
use crate::execute::warp::{MAX_DEPTH, Warp, preset_lanes};
use crate::execute::{copies, mbarrier};
use crate::fault::Fault;
use crate::isa::{ClockUnit, PtxFunction, PtxOp};
use crate::observe::WarpEvent;
use crate::registers::{Bank, LANES, Reg, Regs, lanes};

/// Why a split stopped running on.
pub(crate) enum Flow {
    /// The slice is used up.
    Pause,
    Arrive,
    Backward,
    /// A sync instruction, with the lanes whose guard holds.
    Sync(u32),
    Branch {
        target: u32,
        taken: u32,
    },
    Indexed {
        index: Reg,
        table: u32,
        active: u32,
    },
    Call {
        number: u32,
        active: u32,
    },
    Ret(u32),
    Exit(u32),
    Trap(u32),
}

impl Warp {
    /// Runs up to `quantum` instructions; returns how many, 0 if no lane can run.
    pub(crate) fn run(&mut self, cx: &mut StepContext<'_>, quantum: u32) -> Result<u32, Fault> {
        if !cx.block.wakes.is_empty() {
            let mut wakes = std::mem::take(&mut cx.block.wakes);
            self.wake(&mut wakes);
            cx.block.wakes = wakes;
        }
        let module = cx.module;
        let mut left = quantum;
        while left > 0 && self.live != 0 {
            let Some(s) = self.pick() else {
                if self.retry_sync(cx)? || self.break_joins() {
                    continue;
                }
                break;
            };
            let split = self.progress.splits[s];
            let function = &module.functions[self.progress.frames[split.frame].function as usize];
            let mut pc = split.pc;
            let at = WarpPosition { function, pc, warp: self.index };
            if cx.timed && pc != self.join_pc(&split) && !self.issue(cx, at, &split) {
                return Ok((quantum - left).max(1));
            }
            let mut slice = if cx.timed { 1 } else { left };
            let before = slice;
            let flow = self.run_split(cx, function, &mut pc, s, &mut slice)?;
            left -= before - slice;
            self.progress.splits[s].pc = pc;
            let (inst, at) = (&function.code[pc as usize], WarpPosition { pc, ..at });
            match flow {
                Flow::Pause if cx.timed && left > 0 => {}
                Flow::Pause => break,
                Flow::Arrive => self.arrive(s),
                Flow::Backward => {
                    self.rotate();
                    if cx.suspect {
                        self.watcher.observe(&self.progress, cx.epoch());
                    }
                }
                Flow::Branch { target, taken } => {
                    self.diverge(s, &[(pc + 1, split.mask & !taken), (target, taken)], inst.meet);
                }
                Flow::Indexed { index, table, active } => {
                    let targets = &function.tables[table as usize];
                    let mut sides: Vec<(u32, u32)> = Vec::new();
                    if active != split.mask {
                        sides.push((pc + 1, split.mask & !active));
                    }
                    for lane in lanes(active) {
                        let value = self.progress.frames[split.frame].regs.r32[index as usize][lane];
                        let Some(&target) = targets.get(value as usize) else {
                            let place = Box::new(cx.place(at, lane));
                            let what = "the index of a `brx.idx`, which must be below the number of targets,";
                            return Err(Fault::Value { place, what, value: value.into() });
                        };
                        match sides.iter_mut().find(|(pc, _)| *pc == target) {
                            Some((_, mask)) => *mask |= 1 << lane,
                            None => sides.push((target, 1 << lane)),
                        }
                    }
                    self.diverge(s, &sides, inst.meet);
                }
                Flow::Sync(active) if active != split.mask => self.part(s, pc, active),
                Flow::Sync(_) => self.sync(cx, function, s)?,
                Flow::Call { active, .. } if active != split.mask => self.part(s, pc, active),
                Flow::Call { number, .. } => {
                    let chain = cx.observed(at).map_or(0, |(observer, site)| observer.call(&site));
                    if !self.call(s, number, chain, module, cx.block) {
                        let lane = split.mask.trailing_zeros() as usize;
                        let place = Box::new(cx.place(at, lane));
                        return Err(Fault::CallDepth { place, limit: MAX_DEPTH });
                    }
                }
                Flow::Ret(active) => {
                    self.progress.splits[s].pc = pc + u32::from(active != split.mask);
                    self.ret(s, active, module);
                }
                Flow::Exit(active) => {
                    self.progress.splits[s].pc = pc + u32::from(active != split.mask);
                    self.exit(s, active);
                }
                Flow::Trap(active) => {
                    let lane = active.trailing_zeros() as usize;
                    return Err(Fault::Trap(Box::new(cx.place(at, lane))));
                }
            }
            if cx.tally.watch_hit.is_some() {
                break;
            }
        }
        Ok(quantum - left)
    }

    /// Asks the clock whether the time of a split's next instruction has come.
    fn issue(&self, cx: &mut StepContext<'_>, at: WarpPosition<'_>, split: &Split) -> bool {
        let regs = &self.progress.frames[split.frame].regs;
        let active = guard(regs, at.function.code[at.pc as usize].guard, split.mask);
        cx.observed(at).is_none_or(|(observer, site)| observer.issue(&site, split.frame, regs, active))
    }

    /// Lanes whose guard does not hold pass over the instruction and wait behind it.
    fn part(&mut self, s: usize, pc: u32, active: u32) {
        let mask = self.progress.splits[s].mask;
        self.diverge(s, &[(pc, active), (pc + 1, mask & !active)], pc + 1);
    }

    /// Runs a split until its instructions are used up or something ends its run.
    fn run_split(
        &mut self,
        cx: &mut StepContext<'_>,
        function: &PtxFunction,
        pc: &mut u32,
        s: usize,
        left: &mut u32,
    ) -> Result<Flow, Fault> {
        let split = self.progress.splits[s];
        let mask = split.mask;
        let count = mask.count_ones();
        let join_pc = self.join_pc(&split);
        let straight = self.alone() && !cx.suspect;
        let warp = self.index;
        let Warp { progress, local, watcher, .. } = self;
        let frame = &mut progress.frames[split.frame];
        let number = frame.function;
        cx.chain = frame.chain;
        let (regs, local_base) = (&mut frame.regs, frame.local_base);
        let own = WarpMemory {
            local: &local[..],
            params: &frame.params,
            param_bytes: frame.param_bytes,
            local_base,
        };
        let code = &function.code[..];
        loop {
            if *pc == join_pc {
                return Ok(Flow::Arrive);
            }
            if *left == 0 {
                return Ok(Flow::Pause);
            }
            let inst = &code[*pc as usize];
            let active = guard(regs, inst.guard, mask);
            *left -= 1;
            let active_lanes = if active == mask { count } else { active.count_ones() };
            let class = &mut cx.tally.classes[inst.class as usize];
            class.warps += u64::from(inst.weight);
            class.lanes += u64::from(active_lanes * u32::from(inst.weight));
            if active == 0 || compute(&inst.op, regs, active) {
                *pc += 1;
                continue;
            }
            let at = WarpPosition { function, pc: *pc, warp };
            match inst.op {
                PtxOp::Branch(target) => {
                    if active != mask {
                        return Ok(Flow::Branch { target, taken: active });
                    }
                    let backward = target <= *pc;
                    *pc = target;
                    if backward && !straight {
                        return Ok(Flow::Backward);
                    }
                    continue;
                }
                PtxOp::BranchIndexed(index, table) => return Ok(Flow::Indexed { index, table, active }),
                PtxOp::Call(number) => return Ok(Flow::Call { number, active }),
                PtxOp::Ret => return Ok(Flow::Ret(active)),
                PtxOp::Exit => return Ok(Flow::Exit(active)),
                PtxOp::Trap => return Ok(Flow::Trap(active)),
                PtxOp::Collective(..) | PtxOp::Barrier(_) => return Ok(Flow::Sync(active)),
                // Others run meanwhile.
                PtxOp::Nanosleep(_) => *left = 0,
                PtxOp::Load(..)
                | PtxOp::Store(..)
                | PtxOp::Atom(..)
                | PtxOp::AtomVector(_)
                | PtxOp::Multimem(_) => {
                    WarpStep { cx, own, watcher, at, number }.access(&inst.op, active, regs)?;
                    if cx.tally.watch_hit.is_some() {
                        *pc += 1;
                        return Ok(Flow::Pause);
                    }
                }
                ref other => WarpStep { cx, own, watcher, at, number }.special(other, active, regs)?,
            }
            *pc += 1;
        }
    }

    /// Nothing is ready: do the lanes that wait for each other suffice, now that others may have exited?
    fn retry_sync(&mut self, cx: &mut StepContext<'_>) -> Result<bool, Fault> {
        let waits = |s: &&Split| matches!(s.state, SplitState::Members(_) | SplitState::Aligned);
        let waiting: Vec<_> = self.progress.splits.iter().filter(waits).copied().collect();
        for split in waiting {
            let needed = self.needed(&split);
            if self.gathered(&split) & needed == needed
                && let Some(s) = self.progress.splits.iter().position(|other| *other == split)
            {
                let function = &cx.module.functions[self.progress.frames[split.frame].function as usize];
                self.sync(cx, function, s)?;
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl WarpStep<'_, '_> {
    /// Executes an instruction that concerns neither registers alone nor the flow of control nor a value in memory.
    fn special(&mut self, op: &PtxOp, active: u32, regs: &mut Regs) -> Result<(), Fault> {
        let WarpStep { cx, own, watcher, at, number } = self;
        let (at, function) = (*at, at.function);
        match *op {
            PtxOp::Mbarrier(n) => {
                mbarrier::execute(cx, at, *number, &function.mbarriers[n as usize], active, regs, watcher)
            }
            PtxOp::Async(n) => copies::execute(cx, at, &function.asyncs[n as usize], active, regs),
            PtxOp::ClusterRank(rank) => {
                let values = regs.get::<u32>(rank);
                match lanes(active).find(|&lane| values[lane] != 0) {
                    Some(lane) => {
                        let place = Box::new(cx.place(at, lane));
                        let what = "the rank of a block in its cluster, which has one block,";
                        Err(Fault::Value { place, what, value: values[lane].into() })
                    }
                    None => Ok(()),
                }
            }
            PtxOp::Clock { what, wide, d } => {
                // Where there is no clock, it is the instructions of the whole machine.
                let time = cx.observer.as_deref_mut().and_then(|observer| observer.time(what));
                let now = time.unwrap_or_else(|| {
                    let per = if what == ClockUnit::Cycles { 1 } else { 2 };
                    cx.counts.instructions(cx.worker, cx.tally) * per
                });
                cx.tally.epoch += 1;
                regs.put_bits(if wide { Bank::B64 } else { Bank::B32 }, d, active, &[now; LANES]);
                Ok(())
            }
            PtxOp::Fence { order, scope } => {
                if !cx.counts.alone() {
                    std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
                }
                cx.event(at, WarpEvent::Fence { order, scope, mask: active })
            }
            PtxOp::ProxyFence(kind) => cx.event(at, WarpEvent::ProxyFence { kind, mask: active }),
            PtxOp::Preset(bank, d, n) => {
                let preset = function.layout.late[n as usize];
                let values = preset_lanes(preset, cx.block, at.warp, own.local_base);
                regs.put_bits(bank, d, active, &values);
                Ok(())
            }
            _ => Ok(()),
        }
    }
}
