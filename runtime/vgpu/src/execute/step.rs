//! Execution of a warp: a slice of instructions, decoded once for all lanes.

use crate::arithmetic::lanes::{bfi, lop3};
use crate::error::{Fault, Place};
use crate::execute::access::lanes;
use crate::execute::block::Block;
use crate::execute::load_store::{MemoryOp, Own, What};
use crate::execute::observe::{Event, Observer, Site};
use crate::execute::warp::{Split, State, Warp, preset_lanes};
use crate::front::ast::Ty;
use crate::front::isa::{Clock, Cmp, Function, Op, PredOperand};
use crate::front::module::Module;
use crate::machine::counts::Tally;
use crate::machine::exchange::Board;
use crate::memory::Memory;
use crate::registers::{ALL, Bank, LANES, Lane, Lanes, NO_REG, Reg, Regs};

/// What a slice of a warp may touch besides the warp.
pub(crate) struct Context<'m> {
    pub(crate) module: &'m Module,
    pub(crate) memory: &'m Memory,
    pub(crate) tally: &'m mut Tally,
    pub(crate) board: &'m Board,
    /// Number of the worker.
    pub(crate) worker: usize,
    pub(crate) observer: Option<&'m mut dyn Observer>,
    pub(crate) block: &'m mut Block,
    /// Whether the hang detection looks at backward branches.
    pub(crate) suspect: bool,
    /// Whether the observer has a clock, which is asked before every instruction.
    pub(crate) timed: bool,
    /// Of the activation that runs (see [`Site::chain`]).
    pub(crate) chain: u32,
}

impl Context<'_> {
    pub(crate) fn site<'e>(&'e self, function: &'e Function, pc: u32, warp: u32) -> Site<'e> {
        Site { memory: self.memory, block: self.block, warp, function, pc, chain: self.chain }
    }

    /// Tells the observer, if there is one, what lanes of a warp do.
    #[inline(always)]
    pub(crate) fn event(
        &mut self,
        function: &Function,
        pc: u32,
        warp: u32,
        event: Event,
    ) -> Result<(), Fault> {
        let site = Site { memory: self.memory, block: self.block, warp, function, pc, chain: self.chain };
        match &mut self.observer {
            Some(observer) => observer.event(site, event),
            None => Ok(()),
        }
    }

    pub(crate) fn place(&self, function: &Function, pc: u32, warp: u32, lane: usize) -> Place {
        self.site(function, pc, warp).place(lane)
    }

    /// Changes of memory by all workers.
    pub(crate) fn epoch(&self) -> u64 {
        self.board.epoch(self.worker, self.tally)
    }
}

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

#[inline(always)]
fn guard(regs: &Regs, p: PredOperand, mask: u32) -> u32 {
    if p.reg == NO_REG {
        return mask;
    }
    pred(regs, p) & mask
}

#[inline(always)]
pub(crate) fn pred(regs: &Regs, p: PredOperand) -> u32 {
    let bits = regs.pred[p.reg as usize];
    if p.negated { !bits } else { bits }
}

impl Warp {
    /// Runs up to `quantum` instructions; returns how many, 0 if no lane can run.
    pub(crate) fn run(&mut self, cx: &mut Context<'_>, quantum: u32) -> Result<u32, Fault> {
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
            if cx.timed && pc != self.join_pc(&split) && !self.issue(cx, function, &split) {
                return Ok((quantum - left).max(1));
            }
            let mut slice = if cx.timed { 1 } else { left };
            let before = slice;
            let flow = self.run_split(cx, function, &mut pc, s, &mut slice)?;
            left -= before - slice;
            self.progress.splits[s].pc = pc;
            let inst = &function.code[pc as usize];
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
                            let place = Box::new(cx.place(function, pc, self.index, lane));
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
                    let chain = self.chain(cx, function, &self.progress.splits[s]);
                    if !self.call(s, number, chain, module, cx.block) {
                        let lane = split.mask.trailing_zeros() as usize;
                        let place = Box::new(cx.place(function, pc, self.index, lane));
                        return Err(Fault::CallDepth { place, limit: crate::execute::warp::MAX_DEPTH });
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
                    return Err(Fault::Trap(Box::new(cx.place(function, pc, self.index, lane))));
                }
            }
            if cx.tally.watch_hit.is_some() {
                break;
            }
        }
        Ok(quantum - left)
    }

    /// The number of the chain of calls that a call of a split's lanes begins.
    fn chain(&self, cx: &mut Context<'_>, function: &Function, split: &Split) -> u32 {
        let Context { memory, block, observer, chain, .. } = cx;
        let site = Site { memory, block, warp: self.index, function, pc: split.pc, chain: *chain };
        observer.as_deref_mut().map_or(0, |observer| observer.call(&site))
    }

    /// Asks the clock whether the time of a split's next instruction has come.
    fn issue(&self, cx: &mut Context<'_>, function: &Function, split: &Split) -> bool {
        let Context { memory, block, observer, chain, .. } = cx;
        let Some(clock) = observer.as_deref_mut().and_then(|observer| observer.clock()) else { return true };
        let regs = &self.progress.frames[split.frame].regs;
        let active = guard(regs, function.code[split.pc as usize].guard, split.mask);
        let site = Site { memory, block, warp: self.index, function, pc: split.pc, chain: *chain };
        clock.issue(&site, split.frame, regs, active)
    }

    /// Lanes whose guard does not hold pass over the instruction and wait behind it.
    fn part(&mut self, s: usize, pc: u32, active: u32) {
        let mask = self.progress.splits[s].mask;
        self.diverge(s, &[(pc, active), (pc + 1, mask & !active)], pc + 1);
    }

    fn run_split(
        &mut self,
        cx: &mut Context<'_>,
        function: &Function,
        pc: &mut u32,
        s: usize,
        left: &mut u32,
    ) -> Result<Flow, Fault> {
        let split = self.progress.splits[s];
        let mask = split.mask;
        let count = mask.count_ones();
        let join_pc = self.join_pc(&split);
        let straight = self.alone() && !cx.suspect;
        let index = self.index;
        let Warp { progress, local, watcher, .. } = self;
        let frame = &mut progress.frames[split.frame];
        let number = frame.function;
        cx.chain = frame.chain;
        let (regs, local_base) = (&mut frame.regs, frame.local_base);
        let own = Own { local: &local[..], params: &frame.params, param_bytes: frame.param_bytes };
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
            if active == 0 {
                *pc += 1;
                continue;
            }
            macro_rules! memory_op {
                () => {
                    MemoryOp { cx, own, watcher, function, number, pc: *pc, index }
                };
            }
            match inst.op {
                Op::Unary(kind, ops) => kind.exec(regs, ops, active),
                Op::Binary(kind, ops) => kind.exec(regs, ops, active),
                Op::Ternary(kind, ops) => kind.exec(regs, ops, active),
                Op::Lop3(ops, table) => regs.map3(ops, active, |a, b, c| lop3(a, b, c, table)),
                Op::Bfi { wide: false, ops: [d, a, b, p, l] } => {
                    bit_field::<u32>(regs, [d, a, b, p, l], active, 32)
                }
                Op::Bfi { wide: true, ops: [d, a, b, p, l] } => {
                    bit_field::<u64>(regs, [d, a, b, p, l], active, 64)
                }
                Op::Setp { cmp, ty, d, q, a, b, logic } => {
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
                Op::Selp { bank, d, a, b, p } => {
                    let p = pred(regs, p);
                    match bank {
                        Bank::B16 => regs.select::<u16>([d, a, b], p, active),
                        Bank::B32 => regs.select::<u32>([d, a, b], p, active),
                        Bank::B64 => regs.select::<u64>([d, a, b], p, active),
                    }
                }
                Op::PredLogic(logic, d, a, b) => {
                    let value = logic.apply(pred(regs, a), pred(regs, b));
                    regs.put_pred(d, active, value);
                }
                Op::PredMov(d, a) => {
                    let value = pred(regs, a);
                    regs.put_pred(d, active, value);
                }
                Op::PredConst(d, value) => regs.put_pred(d, active, if value { ALL } else { 0 }),
                Op::Convert(ref c, d, a) => {
                    for lane in lanes(active) {
                        let value = crate::execute::convert::convert(c, regs.read(c.from_bank, a, lane));
                        regs.write(c.to_bank, d, lane, value);
                    }
                }
                Op::ConvertPair(ref c, d, high, low) => {
                    lanes(active)
                        .for_each(|l| crate::execute::convert::convert_pair(c, regs, [d, high, low], l));
                }
                Op::ConvertEach(ref c, d, a) => {
                    lanes(active).for_each(|l| crate::execute::convert::convert_each(c, regs, [d, a], l));
                }
                Op::Float(ref op, ops) => op.exec(regs, ops, active),
                Op::Carry(ref c, ops) => crate::execute::carry::exec(c, regs, ops, active),
                Op::Test { kind, wide, d, a } => {
                    crate::execute::carry::test(kind, wide, regs, [d, a], active)
                }
                Op::Load(ref access, address, ref dst) => {
                    memory_op!().execute(access, address, active, regs, What::Load(dst))?;
                }
                Op::Store(ref access, address, ref src) => {
                    memory_op!().execute(access, address, active, regs, What::Store(src))?;
                    if cx.tally.watch_hit.is_some() {
                        *pc += 1;
                        return Ok(Flow::Pause);
                    }
                }
                Op::Atom(op, ref access, address, d, bc) => {
                    memory_op!().execute(access, address, active, regs, What::Atomic(op, d, bc))?;
                    if cx.tally.watch_hit.is_some() {
                        *pc += 1;
                        return Ok(Flow::Pause);
                    }
                }
                Op::AtomVector(n) => {
                    let atom = &function.atoms[n as usize];
                    let what = What::AtomicVector(atom);
                    memory_op!().execute(&atom.access, atom.address, active, regs, what)?;
                    if cx.tally.watch_hit.is_some() {
                        *pc += 1;
                        return Ok(Flow::Pause);
                    }
                }
                Op::Multimem(n) => {
                    let site = (function, *pc, index);
                    let m = &function.multimems[n as usize];
                    if cx.suspect && m.kind == crate::front::isa::MultimemKind::LoadReduce {
                        memory_op!().note_multimem(m, active, regs);
                    }
                    crate::execute::multimem::execute(cx, site, m, active, regs)?;
                    if cx.tally.watch_hit.is_some() {
                        *pc += 1;
                        return Ok(Flow::Pause);
                    }
                }
                Op::Mbarrier(n) => {
                    let (site, m) = ((function, *pc, index), &function.mbarriers[n as usize]);
                    crate::execute::mbarrier::execute(cx, site, number, m, active, regs, watcher)?;
                }
                Op::Async(n) => {
                    let site = (function, *pc, index);
                    crate::execute::copies::execute(cx, site, &function.asyncs[n as usize], active, regs)?;
                }
                Op::ClusterRank(rank) => {
                    let values = regs.get::<u32>(rank);
                    if let Some(lane) = lanes(active).find(|&lane| values[lane] != 0) {
                        let place = Box::new(cx.place(function, *pc, index, lane));
                        let what = "the rank of a block in its cluster, which has one block,";
                        return Err(Fault::Value { place, what, value: values[lane].into() });
                    }
                }
                Op::Branch(target) => {
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
                Op::BranchIndexed(index, table) => return Ok(Flow::Indexed { index, table, active }),
                Op::Call(number) => return Ok(Flow::Call { number, active }),
                Op::Ret => return Ok(Flow::Ret(active)),
                Op::Exit => return Ok(Flow::Exit(active)),
                Op::Trap => return Ok(Flow::Trap(active)),
                Op::Collective(..) | Op::Barrier(_) => return Ok(Flow::Sync(active)),
                Op::ActiveMask(d) => regs.put(d, active, &[active; LANES]),
                Op::Clock { what, wide, d } => {
                    // Where there is no clock, it is the instructions of the whole machine.
                    let clock = cx.observer.as_deref_mut().and_then(|observer| observer.clock());
                    let now = match clock {
                        Some(clock) => clock.read(what),
                        None => {
                            let per = if what == Clock::Cycles { 1 } else { 2 };
                            cx.board.instructions(cx.worker, cx.tally) * per
                        }
                    };
                    cx.tally.epoch += 1;
                    if wide {
                        regs.put(d, active, &[now; LANES]);
                    } else {
                        regs.put(d, active, &[now as u32; LANES]);
                    }
                }
                Op::Fence { order, scope } => {
                    if !cx.board.alone() {
                        std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
                    }
                    cx.event(function, *pc, index, Event::Fence { order, scope, mask: active })?;
                }
                Op::ProxyFence(kind) => {
                    cx.event(function, *pc, index, Event::ProxyFence { kind, mask: active })?;
                }
                Op::Preset(bank, d, n) => {
                    let preset = function.layout.late[n as usize];
                    let values = preset_lanes(preset, cx.block, index, local_base);
                    regs.put_bits(bank, d, active, &values);
                }
                Op::MbarrierInitFence | Op::Nop => {}
                Op::Nanosleep(_) => {
                    // Others run meanwhile.
                    *pc += 1;
                    *left = 0;
                    continue;
                }
            }
            *pc += 1;
        }
    }

    /// Nothing is ready: do the lanes that wait for each other suffice, now that others may have exited?
    fn retry_sync(&mut self, cx: &mut Context<'_>) -> Result<bool, Fault> {
        let waits = |s: &&crate::execute::warp::Split| matches!(s.state, State::Members(_) | State::Aligned);
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

fn bit_field<T: Lane>(regs: &mut Regs, [d, a, b, p, l]: [Reg; 5], mask: u32, width: u32) {
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
fn compare_as<T: Lane, V: PartialOrd + Copy>(
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
fn holds<T: Lane>(x: &Lanes<T>, y: &Lanes<T>, f: impl Fn(T, T) -> bool) -> u32 {
    let mut bits = 0;
    for i in 0..LANES {
        bits |= u32::from(f(x[i], y[i])) << i;
    }
    bits
}
