//! A warp: activations with registers, and the paths that its lanes have diverged into.
//!
//! A *split* is a set of lanes at one place. A branch on which lanes disagree makes two splits and a *join*, where
//! they meet again (the branch's immediate post-dominator). Splits take turns, so that a lane that others wait for
//! goes on; a join is a convenience, not a barrier: lanes that wait there too long, or while nothing else can run, go
//! on alone.

use std::sync::Arc;

use crate::execute::block::{ResidentBlock, Wake};
use crate::execute::progress::{Activation, Join, Split, SplitState, WarpProgress};
use crate::execute::repetition::RepetitionWatcher;
use crate::fault::SourceLine;
use crate::front::module::PtxModule;
use crate::isa::{NEVER, Preset, PtxFunction, RegisterLayout};
use crate::memory::MemoryBytes;
use crate::registers::{ALL, LANES, Lanes, Regs, lanes};

/// Backward branches after which lanes that wait at a join go on alone.
const PATIENCE: u32 = 512;
/// The join of lanes that have nowhere to meet.
const ROOT: usize = 0;

#[derive(Clone, Debug)]
pub(crate) struct Warp {
    pub(crate) progress: WarpProgress,
    /// Number of the warp's block in the machine, and of the warp in its block.
    pub(crate) block: usize,
    pub(crate) index: u32,
    /// Lanes with a thread.
    pub(crate) lanes: u32,
    /// Lanes that have not exited.
    pub(crate) live: u32,
    /// Local memory of each lane.
    pub(crate) local: Vec<MemoryBytes>,
    /// For the detection of hangs.
    pub(crate) watcher: RepetitionWatcher,
}

/// Calls may nest this deep.
pub(crate) const MAX_DEPTH: usize = 64;

/// The value of a preset in each lane of a warp, in an activation whose local memory begins at `local_base`.
pub(crate) fn preset_lanes(preset: Preset, block: &ResidentBlock, warp: u32, local_base: u64) -> Lanes<u64> {
    use crate::isa::LaneMask;
    let shape = &block.info.shape;
    let [x, y, _] = shape.threads;
    std::array::from_fn(|lane| {
        let thread = warp * LANES as u32 + lane as u32;
        let bit = 1u32 << lane;
        match preset {
            Preset::Const(bits) => bits,
            Preset::Tid(0) => (thread % x).into(),
            Preset::Tid(1) => (thread / x % y).into(),
            Preset::Tid(_) => (thread / x / y).into(),
            Preset::Ntid(axis) => shape.threads[axis as usize].into(),
            Preset::Ctaid(axis) => shape.block[axis as usize].into(),
            Preset::Nctaid(axis) => shape.grid[axis as usize].into(),
            Preset::LaneId => lane as u64,
            Preset::WarpId => warp.into(),
            Preset::NWarps => shape.warps().into(),
            Preset::GridId => block.info.launch as u64,
            Preset::SmId => shape.linear(),
            Preset::LaneMask(mask) => u64::from(match mask {
                LaneMask::Eq => bit,
                LaneMask::Lt => bit - 1,
                LaneMask::Le => bit | (bit - 1),
                LaneMask::Gt => !(bit | (bit - 1)),
                LaneMask::Ge => !(bit - 1),
            }),
            Preset::Var(number, offset) => block.variables[number as usize].wrapping_add(offset as u64),
            Preset::Local(offset) => local_base.wrapping_add(offset),
            Preset::DynamicBegin => PtxModule::dynamic_begin(block.static_shared),
            Preset::DynamicBytes => block.shared.len() as u64 - PtxModule::dynamic_begin(block.static_shared),
            Preset::SharedBytes => block.shared.len() as u64,
        }
    })
}

fn new_regs(function: &PtxFunction, block: &ResidentBlock, warp: u32, local_base: u64) -> Regs {
    let RegisterLayout { b16, b32, b64, pred, ref presets, .. } = function.layout;
    let mut regs = Regs {
        r16: vec![[0; LANES]; b16],
        r32: vec![[0; LANES]; b32],
        r64: vec![[0; LANES]; b64],
        pred: vec![0; pred],
    };
    for &(bank, reg, preset) in presets {
        regs.put_bits(bank, reg, ALL, &preset_lanes(preset, block, warp, local_base));
    }
    regs
}

/// Room for the parameters of an activation and of its calls, a run of whole words for each lane.
fn lane_params(function: &PtxFunction) -> MemoryBytes {
    MemoryBytes::zeroed((function.frame_param_bytes as usize).next_multiple_of(8) * LANES)
}

impl Warp {
    pub(crate) fn new(
        module: &Arc<PtxModule>,
        entry: u32,
        block: &ResidentBlock,
        number: usize,
        index: u32,
    ) -> Warp {
        let function = &module.functions[entry as usize];
        let threads = block.info.shape.thread_count() - index * LANES as u32;
        let lanes = if threads >= 32 { u32::MAX } else { (1 << threads) - 1 };
        let frame = Activation {
            function: entry,
            regs: new_regs(function, block, index, 0),
            params: lane_params(function),
            param_bytes: function.frame_param_bytes as usize,
            local_base: 0,
            live: lanes,
            call: None,
            depth: 0,
            chain: 0,
        };
        let root = Join { frame: 0, pc: NEVER, mask: lanes, arrived: 0, parent: ROOT, by_return: true };
        let split = Split { frame: 0, pc: 0, mask: lanes, join: ROOT, state: SplitState::Ready };
        Warp {
            progress: WarpProgress {
                frames: vec![frame],
                splits: vec![split],
                joins: vec![root],
                current: 0,
                impatience: 0,
            },
            block: number,
            index,
            lanes,
            live: lanes,
            local: vec![MemoryBytes::zeroed(function.local_bytes as usize); LANES],
            watcher: RepetitionWatcher::default(),
        }
    }

    /// Lanes that wait at joins.
    fn waiting_at_joins(&self) -> bool {
        self.progress.joins.iter().any(|j| j.arrived != 0)
    }

    /// Returns true if some lanes do not wait for others.
    pub(crate) fn can_run(&self) -> bool {
        self.progress.splits.iter().any(|s| s.state == SplitState::Ready)
    }

    /// Returns true if all lanes wait together at a barrier of the block.
    pub(crate) fn sleeps(&self) -> bool {
        matches!(self.progress.splits[..], [Split { state: SplitState::Barrier(_), .. }])
            && !self.waiting_at_joins()
    }

    /// Returns true if a backward branch may be taken without a look at other splits.
    pub(crate) fn alone(&self) -> bool {
        self.progress.splits.len() == 1 && !self.waiting_at_joins()
    }

    /// The next split to run; splits take turns at `rotate`.
    pub(crate) fn pick(&mut self) -> Option<usize> {
        let splits = &self.progress.splits;
        let current = self.progress.current;
        let found = (0..splits.len())
            .map(|i| (current + i) % splits.len())
            .find(|&i| splits[i].state == SplitState::Ready)?;
        self.progress.current = found;
        Some(found)
    }

    /// After a backward branch: another split's turn, and an end to long waits at joins.
    pub(crate) fn rotate(&mut self) {
        let progress = &mut self.progress;
        progress.current = (progress.current + 1) % progress.splits.len().max(1);
        if self.waiting_at_joins() {
            self.progress.impatience += 1;
            if self.progress.impatience >= PATIENCE {
                self.break_joins();
            }
        } else {
            self.progress.impatience = 0;
        }
    }

    /// Lets lanes that wait at joins go on alone; returns true if there were any.
    pub(crate) fn break_joins(&mut self) -> bool {
        self.progress.impatience = 0;
        let mut any = false;
        for j in 0..self.progress.joins.len() {
            let join = &mut self.progress.joins[j];
            if join.arrived != 0 {
                let lanes = std::mem::take(&mut join.arrived);
                join.mask &= !lanes;
                let Join { frame, pc, parent, .. } = *join;
                self.go_on(frame, pc, lanes, parent);
                any = true;
            }
        }
        any
    }

    fn go_on(&mut self, frame: usize, pc: u32, mask: u32, join: usize) {
        let state = SplitState::Ready;
        // Lanes that are at the same place with the same way ahead run together.
        let same = |s: &&mut Split| s.frame == frame && s.pc == pc && s.join == join && s.state == state;
        match self.progress.splits.iter_mut().find(same) {
            Some(split) => split.mask |= mask,
            None => self.progress.splits.push(Split { frame, pc, mask, join, state }),
        }
    }

    fn remove_split(&mut self, s: usize) -> Split {
        let progress = &mut self.progress;
        let split = progress.splits.remove(s);
        if progress.current > s {
            progress.current -= 1;
        }
        split
    }

    /// The program counter at which the lanes of a split meet others, if their own leads there.
    pub(crate) fn join_pc(&self, split: &Split) -> u32 {
        let join = &self.progress.joins[split.join];
        if join.by_return || join.frame != split.frame { NEVER } else { join.pc }
    }

    /// The split has come to its join.
    pub(crate) fn arrive(&mut self, s: usize) {
        let split = self.remove_split(s);
        self.progress.impatience = 0;
        self.progress.joins[split.join].arrived |= split.mask;
        self.complete(split.join);
    }

    fn complete(&mut self, j: usize) {
        let join = self.progress.joins[j];
        if join.mask != 0 && join.arrived == join.mask && j != ROOT {
            self.progress.joins[j].mask = 0;
            self.progress.joins[j].arrived = 0;
            self.go_on(join.frame, join.pc, join.mask, join.parent);
        }
    }

    fn new_join(&mut self, join: Join) -> usize {
        let joins = &mut self.progress.joins;
        match joins.iter().skip(1).position(|j| j.mask == 0) {
            Some(free) => {
                joins[free + 1] = join;
                free + 1
            }
            None => {
                joins.push(join);
                joins.len() - 1
            }
        }
    }

    /// Lanes `taken` of the split go to `target`, the others to the next instruction; they meet at `meet`.
    pub(crate) fn diverge(&mut self, s: usize, targets: &[(u32, u32)], meet: u32) {
        let split = self.progress.splits[s];
        let join = if meet == NEVER || meet == self.join_pc(&split) {
            split.join
        } else {
            self.new_join(Join {
                frame: split.frame,
                pc: meet,
                mask: split.mask,
                arrived: 0,
                parent: split.join,
                by_return: false,
            })
        };
        self.remove_split(s);
        let join_pc = self.join_pc(&Split { join, ..split });
        for &(pc, mask) in targets {
            if pc == join_pc {
                self.progress.joins[join].arrived |= mask;
            } else {
                self.go_on(split.frame, pc, mask, join);
            }
        }
        self.complete(join);
    }

    /// Takes lanes out of the joins from `join` up to, and not including, `end`.
    fn leave(&mut self, mut join: usize, end: usize, lanes: u32) {
        while join != end {
            let parent = self.progress.joins[join].parent;
            self.progress.joins[join].mask &= !lanes;
            self.complete(join);
            if join == parent {
                break;
            }
            join = parent;
        }
    }

    /// Lanes of a split exit; the rest of it stays.
    pub(crate) fn exit(&mut self, s: usize, lanes: u32) {
        let split = &mut self.progress.splits[s];
        split.mask &= !lanes;
        let (join, rest) = (split.join, split.mask);
        self.live &= !lanes;
        if rest == 0 {
            self.remove_split(s);
        }
        self.leave(join, ROOT, lanes);
        for frame in &mut self.progress.frames {
            frame.live &= !lanes;
        }
    }

    /// Enters a function with all lanes of the split; `false` if calls nest too deep or take too
    /// much memory.
    pub(crate) fn call(
        &mut self,
        s: usize,
        number: u32,
        chain: u32,
        module: &PtxModule,
        block: &ResidentBlock,
    ) -> bool {
        let split = self.progress.splits[s];
        let caller = &self.progress.frames[split.frame];
        let depth = caller.depth + 1;
        if depth > MAX_DEPTH {
            return false;
        }
        let from = &module.functions[caller.function as usize];
        let site = &from.calls[number as usize];
        let function = &module.functions[site.function as usize];
        let live = self.progress.frames.iter().filter(|f| f.live != 0);
        let taken: u64 = live.map(|f| module.functions[f.function as usize].activation_bytes()).sum();
        if taken + function.activation_bytes() > block.warp_bytes {
            return false;
        }
        let local_base = (caller.local_base + from.local_bytes).next_multiple_of(16);
        // The registers of an activation that is over serve the next one: only constants have values from the start,
        // and nothing writes those.
        let frames = &self.progress.frames;
        let over = |f: &Activation| f.live == 0 && f.function == site.function && f.local_base == local_base;
        let free = frames.iter().skip(1).position(|f| f.live == 0).map_or(frames.len(), |f| f + 1);
        let f = match frames.iter().skip(1).position(over) {
            Some(again) => again + 1,
            None => {
                let frame = Activation {
                    function: site.function,
                    regs: new_regs(function, block, self.index, local_base),
                    params: lane_params(function),
                    param_bytes: function.frame_param_bytes as usize,
                    local_base,
                    live: 0,
                    call: None,
                    depth,
                    chain,
                };
                match self.progress.frames.get_mut(free) {
                    Some(place) => *place = frame,
                    None => self.progress.frames.push(frame),
                }
                free
            }
        };
        let (caller, callee) = (&self.progress.frames[split.frame], &self.progress.frames[f]);
        let stride = |params: &MemoryBytes| params.len() / LANES;
        for lane in lanes(split.mask) {
            for &(here, there, bytes) in &site.arguments {
                let (here, there, bytes) = (here as usize, there as usize, bytes as usize);
                let source = lane * stride(&caller.params) + here;
                callee.params.copy(lane * stride(&callee.params) + there, &caller.params, source, bytes);
            }
        }
        for lane in lanes(split.mask) {
            let needed = (local_base + function.local_bytes) as usize;
            if self.local[lane].len() < needed {
                self.local[lane].grow(needed);
            }
        }
        let join = self.new_join(Join {
            frame: split.frame,
            pc: split.pc + 1,
            mask: split.mask,
            arrived: 0,
            parent: split.join,
            by_return: true,
        });
        let frame = &mut self.progress.frames[f];
        (frame.live, frame.call, frame.depth) = (split.mask, Some((join, split.frame, number)), depth);
        frame.chain = chain;
        self.progress.splits[s] = Split { frame: f, pc: 0, mask: split.mask, join, state: SplitState::Ready };
        true
    }

    /// The source lines of the calls that the running split is in, innermost first.
    pub(crate) fn callers(&self, module: &PtxModule) -> Vec<SourceLine> {
        let WarpProgress { frames, splits, joins, current, .. } = &self.progress;
        let mut lines = Vec::new();
        let mut call = splits.get(*current).and_then(|split| frames[split.frame].call);
        while let Some((join, caller, _)) = call {
            // The call stands before the place that its lanes return to.
            let function = &module.functions[frames[caller].function as usize];
            let inst = joins[join].pc.checked_sub(1).and_then(|pc| function.code.get(pc as usize));
            lines.extend(inst.and_then(|inst| function.lines.get(inst.loc as usize)).cloned());
            call = frames[caller].call;
        }
        lines
    }

    /// Lanes of a split return from its activation (from the entry: exit); the rest of it stays.
    pub(crate) fn ret(&mut self, s: usize, mask: u32, module: &PtxModule) {
        let split = self.progress.splits[s];
        let Some((join, caller, number)) = self.progress.frames[split.frame].call else {
            return self.exit(s, mask);
        };
        let function = self.progress.frames[caller].function as usize;
        let site = &module.functions[function].calls[number as usize];
        let callee = std::mem::take(&mut self.progress.frames[split.frame]);
        let target = &self.progress.frames[caller];
        let stride = |params: &MemoryBytes| params.len() / LANES;
        for lane in lanes(mask) {
            for &(there, here, bytes) in &site.results {
                let (here, there, bytes) = (here as usize, there as usize, bytes as usize);
                let (from, to) =
                    (lane * stride(&callee.params) + there, lane * stride(&target.params) + here);
                target.params.copy(to, &callee.params, from, bytes);
            }
        }
        self.progress.frames[split.frame] = callee;
        self.progress.frames[split.frame].live &= !mask;
        self.progress.splits[s].mask &= !mask;
        if self.progress.splits[s].mask == 0 {
            self.remove_split(s);
        }
        self.leave(split.join, join, mask);
        self.progress.joins[join].arrived |= mask;
        self.complete(join);
    }

    /// Lanes that wait like `split` at its place.
    pub(crate) fn gathered(&self, split: &Split) -> u32 {
        let same = |s: &&Split| s.frame == split.frame && s.pc == split.pc && s.state == split.state;
        self.progress.splits.iter().filter(same).fold(0, |mask, s| mask | s.mask)
    }

    /// Sends all splits that wait at the place to the next instruction, those with one way ahead as one.
    pub(crate) fn advance(&mut self, frame: usize, pc: u32) {
        let here = |s: &Split| s.frame == frame && s.pc == pc && s.state != SplitState::Ready;
        let moved: Vec<Split> = self.progress.splits.iter().filter(|s| here(s)).copied().collect();
        self.progress.splits.retain(|s| !here(s));
        self.progress.current = 0;
        for split in moved {
            self.go_on(frame, pc + 1, split.mask, split.join);
        }
    }

    /// Takes note of barriers that have been completed.
    pub(crate) fn wake(&mut self, wakes: &mut Vec<Wake>) {
        let index = self.index;
        let mut mine = Vec::new();
        wakes.retain(|wake| {
            if wake.warp == index {
                mine.push(*wake);
            }
            wake.warp != index
        });
        for wake in mine {
            let at = |s: &Split| s.state == SplitState::Barrier(wake.barrier) && s.mask & !wake.lanes == 0;
            while let Some(s) = self.progress.splits.iter().position(at) {
                let split = self.remove_split(s);
                wake.deliver(&mut self.progress.frames[split.frame].regs, split.mask);
                self.go_on(split.frame, split.pc + 1, split.mask, split.join);
            }
        }
    }
}
