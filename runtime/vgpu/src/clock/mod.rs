//! The virtual clock: when each instruction would execute on real GPUs. Its results are predictions.
//!
//! A run with a clock is an event simulation. Every warp has a time; the one with the smallest time runs next, and an
//! instruction reads and writes memory when its time has come. So a kernel sees what it would see on GPUs that are as
//! fast as the [`Topology`] says: a poll goes round until the flag is there, `%globaltimer`, `clock64` and `nanosleep`
//! follow the clock.
//!
//! The model:
//! - *Issue.* An SM issues [`GpuSpec::issue`] instructions of warps a cycle; classes of instructions with fewer units take
//!   several of these slots. A warp issues in order, an instruction once its registers have their values: arithmetic
//!   gives its result some cycles later, a load when the value has come. So the loads of a warp are in flight together
//!   until the first instruction that needs one of them.
//! - *Memory.* What goes to global memory passes the SM's port to the rest of the GPU, and then the memory with its
//!   bandwidth. Loads of data take the latency of memory, strong ones (flags) that of the L2 cache, which costs no
//!   bandwidth of memory. Bytes are counted in sectors of 32, packets in lines of 128.
//! - *Links.* A store to a peer passes the sender's port, the link and the receiver's port; each serves one transfer at
//!   a time and is busy until its last one has passed. It arrives alpha later. A load sends a packet without payload
//!   the one way and brings the data the other way. With queues empty, m bytes take alpha + m/beta.
//! - *Order.* A release, or a fence of at least GPU scope, waits until all earlier stores of its block have been
//!   acknowledged, alpha after they arrived. An acquire holds its warp until the value has come.
//! - *Flags.* A strong store is seen by loads after its arrival. A load that finds it on its way waits for it: that is
//!   the poll which would have found it, and those before it are not counted.
//! - *Multicast.* A `multimem` store or reduction passes the sender's port once and the ports and memories of all
//!   members; a load-reduction asks all of them, each reads its part, and one combined reply passes the asker's port.
//!   Combining in the switch takes no time of its own.
//! - *Copies.* An asynchronous copy takes ports, links and memories as loads and stores do, beside its warp, which goes
//!   on. A wait for a group, or for a phase of an mbarrier, ends when all bytes and arrivals have come.
//! - *Barriers* complete some cycles after the last arrival. *Atomics* on one address come one after another.
//!
//! Limits. PTX stands for machine code, so integer work is only about right. There are no caches but that flags lie in
//! L2; no limit on loads and stores in flight but the registers; no skew between the launches of ranks, and no cost of
//! a launch; links lose no packets and turn without delay. Lanes that have diverged share their warp's time. Warps may
//! run ahead of each other by [`VirtualClock::lookahead`], which is less than any message takes.

mod access;
mod copies;
mod fabric;
mod multicast;
mod observer;
mod ready;
mod sm;
mod timeline;
pub(crate) mod topology;
mod watch;

use fabric::Fabric;
use ready::RegisterTimes;
use rustc_hash::FxHashMap;
use sm::Sm;
use std::sync::Arc;
pub use timeline::{BlockTimes, ClockTimeline, FlagMessage, LinkUse, Span, Timing};
pub use topology::{GpuSpec, Picoseconds, Topology, Wires};

use crate::front::module::PtxModule;
use crate::isa::{InstructionClass, PtxFunction, PtxOp, Scope};
use crate::registers::Regs;
use watch::LabelVisits;

/// The settings of the virtual clock.
#[derive(Clone, Debug, PartialEq)]
pub struct ClockOptions {
    /// The GPUs and links that are charged for.
    pub topology: Topology,
    /// Keep a [`ClockTimeline`] of every run.
    pub timeline: bool,
}

/// Labels of the lines of each function of a module, by the number of the function's first instruction.
pub(crate) type Labels = FxHashMap<u32, Vec<Option<u32>>>;

/// A warp as the clock sees it.
#[derive(Debug, Default)]
struct WarpTimes {
    /// When it can issue its next instruction, but for its registers.
    next: Picoseconds,
    /// When the registers of each activation have their values, and whose function's they are.
    frames: Vec<(u32, RegisterTimes)>,
    /// When the last load in flight has come.
    loads: Picoseconds,
    /// The barrier that it waits at.
    waits: Option<u32>,
    watch: LabelVisits,
}

#[derive(Debug)]
struct BlockState {
    rank: usize,
    /// Index of its SM.
    sm: usize,
    warps: Vec<WarpTimes>,
    /// By barrier: the latest arrival since it was complete. Warps run ahead of each other, so that is not the last one told.
    arrivals: FxHashMap<u32, Picoseconds>,
    /// When all its stores so far have been acknowledged.
    acknowledged: Picoseconds,
    /// When they have all arrived.
    arrived: Picoseconds,
    /// When its latest instruction was issued.
    last: Picoseconds,
    /// Index in the timeline.
    number: usize,
    /// Labels of the lines of each function of its module.
    labels: Option<Arc<Labels>>,
}

/// The instruction that is being executed.
#[derive(Clone, Copy, Debug, Default)]
struct Current {
    block: u32,
    warp: usize,
    frame: usize,
    at: Picoseconds,
}

/// A strong store on its way, or arrived.
#[derive(Debug)]
struct Flag {
    sent: Picoseconds,
    arrives: Picoseconds,
    /// The block that stored, by its number in the timeline, and those that have seen it.
    from: usize,
    seen: Vec<usize>,
}

/// The state of the clock.
#[derive(Debug)]
pub(crate) struct VirtualClock {
    options: ClockOptions,
    ranks: usize,
    fabric: Fabric,
    sms: FxHashMap<usize, Sm>,
    blocks: FxHashMap<u32, BlockState>,
    /// Strong stores by address, in words of 8 bytes.
    flags: FxHashMap<u64, Flag>,
    /// Asynchronous copies, and the mbarriers that are told of them.
    flying: copies::CopiesUnderWay,
    /// When the last atomic on a word was done.
    atomics: FxHashMap<u64, Picoseconds>,
    /// When each rank last ended a block.
    idle: Vec<Picoseconds>,
    current: Current,
    /// The running warp may issue up to here.
    until: Picoseconds,
    timing: Timing,
    labels: Vec<(Arc<PtxModule>, Arc<Labels>)>,
}

impl VirtualClock {
    pub(crate) fn new(options: ClockOptions, ranks: usize) -> VirtualClock {
        let mut clock = VirtualClock {
            fabric: Fabric::new(&options.topology, ranks, options.timeline),
            options,
            ranks,
            sms: FxHashMap::default(),
            blocks: FxHashMap::default(),
            flags: FxHashMap::default(),
            flying: copies::CopiesUnderWay::default(),
            atomics: FxHashMap::default(),
            idle: Vec::new(),
            current: Current::default(),
            until: 0,
            timing: Timing::default(),
            labels: Vec::new(),
        };
        clock.restart();
        clock
    }

    /// A run begins at time 0, on GPUs that do nothing yet.
    pub(crate) fn restart(&mut self) {
        self.fabric = Fabric::new(&self.options.topology, self.ranks, self.options.timeline);
        self.sms.clear();
        self.blocks.clear();
        self.flags.clear();
        self.flying = copies::CopiesUnderWay::default();
        self.atomics.clear();
        self.idle = vec![0; self.ranks];
        self.timing = Timing {
            ranks: vec![0; self.ranks],
            timeline: self.options.timeline.then(ClockTimeline::default),
            ..Timing::default()
        };
    }

    pub(crate) fn label(&mut self, module: &Arc<PtxModule>, labels: Labels) {
        self.labels.retain(|(known, _)| !Arc::ptr_eq(known, module));
        self.labels.push((module.clone(), Arc::new(labels)));
    }

    /// Returns the times since the run began.
    pub(crate) fn timing(&mut self) -> Timing {
        let mut timing = self.timing.clone();
        if let Some(timeline) = &mut timing.timeline {
            for (pair, usage) in self.fabric.usage.iter().enumerate().filter(|(_, u)| !u.bytes.is_empty()) {
                let (from, to) = (pair / self.ranks, pair % self.ranks);
                let (interval, bytes) = (usage.width, usage.bytes.clone());
                timeline.links.push(LinkUse { from, to, interval, bytes });
            }
        }
        timing
    }

    /// How far warps may run ahead of each other.
    pub(crate) fn lookahead(&self) -> Picoseconds {
        let cache = self.options.topology.cycles(self.options.topology.gpu.cache_cycles);
        (cache / 2).min(self.fabric.latency()) / 2
    }

    fn cycles(&self, cycles: u32) -> Picoseconds {
        self.options.topology.cycles(cycles)
    }

    /// Instructions that hold their warp.
    fn special(&mut self, function: &PtxFunction, pc: u32, regs: &Regs, active: u32) {
        let inst = &function.code[pc as usize];
        let Current { frame, at, .. } = self.current;
        let local = self.cycles(self.options.topology.gpu.shared_cycles);
        let Some(state) = self.blocks.get_mut(&self.current.block) else { return };
        let times = &mut state.warps[self.current.warp];
        let used = function.operands.of(pc);
        match inst.op {
            PtxOp::Nanosleep(r) => {
                let values = regs.get::<u32>(r);
                let longest = crate::registers::lanes(active).map(|lane| values[lane]).max().unwrap_or(0);
                times.next += u64::from(longest) * 1000;
            }
            PtxOp::Fence { scope, .. } if scope != Scope::Cta => {
                times.next = times.next.max(state.acknowledged).max(times.loads);
            }
            // Parameters and lanes' own memory; all else is charged when it takes place.
            PtxOp::Load(..) if inst.class != InstructionClass::Global => {
                let ready = &mut times.frames[frame].1;
                used.loads.iter().for_each(|&r| ready.set(r, at + local, times.next));
            }
            PtxOp::Mbarrier(_) => {
                let ready = &mut times.frames[frame].1;
                used.writes.iter().for_each(|&r| ready.set(r, at + local, times.next));
            }
            PtxOp::Call(_) => self.visit(function, pc),
            _ => {}
        }
    }

    /// Notes for the timeline that a warp does something at a line.
    fn visit(&mut self, function: &PtxFunction, pc: u32) {
        let Current { at, frame, .. } = self.current;
        if self.timing.timeline.is_none() || frame != 0 {
            return;
        }
        let Some(state) = self.blocks.get_mut(&self.current.block) else { return };
        let Some(labels) = &state.labels else { return };
        let loc = function.code[pc as usize].loc as usize;
        let label = labels.get(&function.first).and_then(|lines| lines.get(loc).copied().flatten());
        state.warps[self.current.warp].watch.visit(label, at);
    }
}

/// Slots of issue that an instruction takes, of the four a cycle that the fastest ones have: 128 results a cycle and SM
/// for 32-bit floating point, 64 for integers and conversions, 32 lanes for memory (CUDA C++ Programming Guide,
/// "Arithmetic Instructions", compute capabilities 8.0 and 9.0).
fn slots(class: InstructionClass) -> u32 {
    match class {
        InstructionClass::Integer | InstructionClass::Conversion => 2,
        InstructionClass::Global
        | InstructionClass::Shared
        | InstructionClass::Local
        | InstructionClass::Synchronization => 4,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_are_found_by_name_and_are_sound() {
        for name in Topology::PRESETS {
            let topology = Topology::preset(name).unwrap();
            assert_eq!((topology.name.as_str(), topology.problem()), (name, None));
        }
        assert!(Topology::preset("dgx-1000").is_none());
        let payload = Topology::dgx_h100().payload_gbps();
        assert!((payload - 370.0).abs() < 2.0, "{payload}");
    }
}
