//! A worker: the ranks that run on one thread of the host, and the order in which their warps run.

pub(crate) mod adversary;
pub(crate) mod time_order;

use std::collections::VecDeque;
use std::sync::Arc;

use crate::execute::block::{BARRIERS, BarrierState, ResidentBlock};
use crate::execute::context::StepContext;
use crate::execute::copies;
use crate::execute::copy_queue::BlockCopies;
use crate::execute::counts::Tally;
use crate::execute::mbarrier_state::Mbarriers;
use crate::execute::warp::Warp;
use crate::fault::Fault;
use crate::front::module::PtxModule;
use crate::machine::exchange::{StopOnPanic, StopReason, WorkerExchange};
use crate::machine::launch::PreparedLaunch;
use crate::machine::worker::adversary::Adversary;
use crate::machine::worker::time_order::DueWarps;
use crate::machine::{Config, Policy};
use crate::memory::{MachineMemory, MemoryBytes};
use crate::observe::{BlockInfo, BlockShape, Observer};
use crate::random::Random;

/// Rounds without any change of memory after which the hang detection begins to look. A snapshot of a warp costs as
/// much as many rounds of it, and warps that only compute for a while are no hang.
const QUIET_ROUNDS: u32 = 64;

/// The data that all workers share during a run.
#[derive(Clone, Copy)]
pub(crate) struct RunShared<'r> {
    pub(crate) config: &'r Config,
    pub(crate) memory: &'r MachineMemory,
    pub(crate) exchange: &'r WorkerExchange,
}

#[derive(Debug)]
pub(crate) struct Worker {
    number: usize,
    pub(crate) random: Random,
    /// The worker's ranks, ascending, and the launches of each; the first is running.
    pub(crate) queues: Vec<(usize, VecDeque<PreparedLaunch>)>,
    pub(crate) blocks: Vec<Option<ResidentBlock>>,
    pub(crate) warps: Vec<Warp>,
    /// Blocks started.
    started: u32,
    pub(crate) tally: Tally,
    /// Modules of the blocks.
    modules: Vec<Arc<PtxModule>>,
    /// For runs with a clock.
    pub(crate) agenda: DueWarps,
    timed: bool,
}

impl Worker {
    /// Worker `number` of `workers`, to which ranks are dealt in turn.
    pub(crate) fn new(number: usize, workers: usize, config: &Config) -> Worker {
        let ranks = (number..config.ranks).step_by(workers);
        Worker {
            number,
            random: Random::new(config.seed.wrapping_add(number as u64)),
            queues: ranks.map(|rank| (rank, VecDeque::new())).collect(),
            blocks: Vec::new(),
            warps: Vec::new(),
            started: 0,
            tally: Tally::new(config.ranks),
            modules: Vec::new(),
            agenda: DueWarps::default(),
            timed: config.clock.is_some(),
        }
    }

    pub(crate) fn idle(&self) -> bool {
        self.warps.is_empty() && self.queues.iter().all(|(_, queue)| queue.is_empty())
    }

    /// Drops all launches, running or queued.
    pub(crate) fn abandon(&mut self) {
        self.queues.iter_mut().for_each(|(_, queue)| queue.clear());
        self.blocks.clear();
        self.warps.clear();
        self.modules.clear();
    }

    /// Runs until all launches have ended or a worker stops all.
    pub(crate) fn run(&mut self, shared: RunShared<'_>, observer: Option<&mut (dyn Observer + 'static)>) {
        let _guard = StopOnPanic(shared.exchange);
        if let Err(stop) = self.rounds(shared, observer) {
            shared.exchange.stop(stop);
        }
        shared.exchange.counts.publish(self.number, &self.tally);
        if self.idle() {
            shared.exchange.done(self.number);
        }
    }

    fn rounds(
        &mut self,
        shared: RunShared<'_>,
        mut observer: Option<&mut (dyn Observer + 'static)>,
    ) -> Result<(), StopReason> {
        let RunShared { config, exchange, .. } = shared;
        let mut order = Vec::new();
        let (mut quiet, mut epoch) = (0u32, exchange.counts.epoch(self.number, &self.tally));
        let mut ballot = exchange.ballot();
        let mut adversary = Adversary::default();
        let mut listed = false;
        loop {
            let started = self.start_blocks(config, &mut observer);
            if self.timed && (started || !listed) {
                self.list_warps(config.policy, &mut observer);
                listed = true;
            }
            if self.warps.is_empty() {
                return Ok(());
            }
            let suspect = quiet >= QUIET_ROUNDS;
            order.clear();
            order.extend(0..self.warps.len());
            if config.policy == Policy::Adversarial {
                adversary.round(&mut self.random, &self.warps, &self.blocks, suspect);
                order.retain(|&w| !adversary.delays(&self.warps[w], &self.blocks));
            }
            if config.policy != Policy::RoundRobin {
                self.random.shuffle(&mut order);
            }
            self.tally.rounds += 1;
            let mut ran = 0;
            for &in_turn in &order {
                let w = match self.timed {
                    true => match self.next_due(&mut observer) {
                        Some(due) => due,
                        None => break,
                    },
                    false => in_turn,
                };
                let quantum = self.random.below(u64::from(config.quantum.max(1))) as u32 + 1;
                let done =
                    self.turn(w, quantum, suspect, shared, &mut observer).map_err(StopReason::Fault)?;
                ran += done;
                if self.timed {
                    self.had_turn(w, done, config.policy, &mut observer);
                }
                if let Some(address) = self.tally.watch_hit {
                    self.retire(shared.memory, &mut observer).map_err(StopReason::Fault)?;
                    return Err(StopReason::Watched(address));
                }
                if let Some(limit) = config.instruction_limit
                    && exchange.counts.instructions(self.number, &self.tally) > limit
                {
                    return Err(StopReason::Fault(Fault::InstructionLimit { limit }));
                }
                if exchange.stopped() {
                    self.retire(shared.memory, &mut observer).map_err(StopReason::Fault)?;
                    return Ok(());
                }
            }
            let ended = self.retire(shared.memory, &mut observer).map_err(StopReason::Fault)?;
            listed &= !ended;
            self.tally.epoch += u64::from(ended);
            exchange.counts.publish(self.number, &self.tally);
            let now = exchange.counts.epoch(self.number, &self.tally);
            if now != epoch || exchange.ballot() != ballot {
                (quiet, epoch) = (if now == epoch { quiet } else { 0 }, now);
                ballot = exchange.ballot();
                if suspect {
                    self.warps.iter_mut().for_each(|w| w.watcher.reset());
                }
                continue;
            }
            if self.blocks.iter().flatten().any(|block| !block.copies.is_empty()) {
                // What is on its way changes memory sooner or later.
                quiet = 0;
                continue;
            }
            quiet = quiet.saturating_add(1);
            if ran == 0 && adversary.relent() {
                continue;
            }
            let repeats = |w: &Warp| !w.can_run() || w.watcher.repeats(epoch);
            if (ran == 0 || suspect && self.warps.iter().all(repeats))
                && exchange.vote(self.number, ballot, epoch)
            {
                return Err(StopReason::Hang);
            }
            if !exchange.counts.alone() && quiet > 1 {
                // All warps wait for others, which may need the processor.
                std::thread::yield_now();
            }
        }
    }

    fn turn(
        &mut self,
        w: usize,
        quantum: u32,
        suspect: bool,
        shared: RunShared<'_>,
        observer: &mut Option<&mut (dyn Observer + 'static)>,
    ) -> Result<u32, Fault> {
        let warp = &mut self.warps[w];
        let Some(Some(block)) = self.blocks.get_mut(warp.block) else { return Ok(0) };
        if block.wakes.is_empty() && warp.sleeps() {
            return Ok(0);
        }
        let live = warp.live;
        if !block.copies.is_empty() {
            copies::progress(block, shared.memory, &mut self.tally, &mut self.random)?;
        }
        let mut cx = StepContext {
            module: &self.modules[block.module_number],
            memory: shared.memory,
            tally: &mut self.tally,
            counts: &shared.exchange.counts,
            worker: self.number,
            observer: observer.as_mut().map(|o| &mut **o as _),
            block,
            suspect,
            timed: self.timed,
            chain: 0,
        };
        let ran = match warp.run(&mut cx, quantum) {
            Ok(ran) => ran,
            Err(mut fault) => {
                if let Some(source) = fault.place_mut().and_then(|place| place.source.as_mut()) {
                    source.called_from(warp.callers(&block.info.module));
                }
                return Err(fault);
            }
        };
        if ran == 0
            && let Some(fault) = warp.stuck(&cx)
        {
            return Err(fault);
        }
        block.exited += (live & !warp.live).count_ones();
        Ok(ran)
    }

    /// Removes warps, blocks and launches that have ended; returns true if there were any.
    fn retire(
        &mut self,
        memory: &MachineMemory,
        observer: &mut Option<&mut (dyn Observer + 'static)>,
    ) -> Result<bool, Fault> {
        let before = self.warps.len();
        for warp in self.warps.iter().filter(|w| w.live == 0) {
            let Some(Some(block)) = self.blocks.get_mut(warp.block) else { continue };
            block.live_warps -= 1;
            if block.live_warps > 0 {
                continue;
            }
            copies::finish(block, memory, &mut self.tally)?;
            if let Some(observer) = observer {
                observer.block_ends(&block.info);
            }
            let launch = self.queues.iter_mut().find(|(rank, _)| *rank == block.info.rank);
            if let Some((_, queue)) = launch
                && let Some(launch) = queue.front_mut()
            {
                launch.ended += 1;
                if launch.ended == launch.blocks() {
                    if let Some(observer) = observer {
                        observer.launch_ends(&block.info);
                    }
                    queue.pop_front();
                }
            }
            self.blocks[warp.block] = None;
        }
        self.warps.retain(|w| w.live != 0);
        Ok(self.warps.len() != before)
    }

    /// Starts blocks where there is room for them; returns true if there were any.
    fn start_blocks(
        &mut self,
        config: &Config,
        observer: &mut Option<&mut (dyn Observer + 'static)>,
    ) -> bool {
        let before = self.warps.len();
        for (rank, queue) in &mut self.queues {
            let Some(launch) = queue.front_mut() else { continue };
            let room = config.resident_blocks.map_or(u64::MAX, |n| n.max(1) as u64);
            while launch.started < launch.blocks() && launch.started - launch.ended < room {
                let n = launch.started;
                launch.started += 1;
                let [nx, ny, _] = launch.grid.map(u64::from);
                let coordinates = [n % nx, n / nx % ny, n / nx / ny].map(|c| c as u32);
                let shape = BlockShape { grid: launch.grid, block: coordinates, threads: launch.threads };
                let loaded = self.modules.iter().position(|m| Arc::ptr_eq(m, &launch.module));
                let module_number = loaded.unwrap_or(self.modules.len());
                if loaded.is_none() {
                    self.modules.push(launch.module.clone());
                }
                let block = ResidentBlock {
                    info: BlockInfo {
                        rank: *rank,
                        number: self.started,
                        launch: launch.number,
                        module: launch.module.clone(),
                        kernel: launch.kernel.clone(),
                        shape,
                    },
                    module_number,
                    shared: MemoryBytes::uninitialized(launch.shared_bytes as usize),
                    static_shared: launch.static_shared,
                    warp_bytes: launch.warp_bytes,
                    params: launch.params.clone(),
                    variables: launch.variables.clone(),
                    barriers: vec![BarrierState::default(); BARRIERS],
                    wakes: Vec::new(),
                    mbarriers: Mbarriers::default(),
                    copies: BlockCopies::default(),
                    live_warps: shape.warps(),
                    exited: 0,
                };
                self.started = self.started.wrapping_add(1);
                let slot = match self.blocks.iter().position(Option::is_none) {
                    Some(free) => free,
                    None => {
                        self.blocks.push(None);
                        self.blocks.len() - 1
                    }
                };
                if let Some(observer) = observer {
                    observer.block_starts(&block.info);
                }
                for index in 0..shape.warps() {
                    self.warps.push(Warp::new(&launch.module, launch.entry, &block, slot, index));
                }
                self.blocks[slot] = Some(block);
            }
        }
        self.warps.len() != before
    }
}
