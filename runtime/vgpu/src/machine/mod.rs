//! The machine: ranks, their memory, and the runs of what is launched on them.

pub(crate) mod exchange;
pub(crate) mod hang;
pub(crate) mod launch;
pub(crate) mod observers;
pub(crate) mod worker;

use std::num::NonZeroUsize;
use std::sync::Arc;

use crate::clock::{ClockOptions, Timing, VirtualClock};
use crate::execute::counts::{ClassCount, LinkCounts, LinkStatistics, Waits};
use crate::fault::{AccessKind, Fault, RequestError, SourceLine};
use crate::front::module::PtxModule;
use crate::isa::{InstructionClass, PtxFunction};
use crate::machine::exchange::{StopReason, WorkerExchange};
use crate::machine::launch::{Launch, PreparedLaunch};
use crate::machine::observers::Observers;
use crate::machine::worker::{RunShared, Worker};
use crate::memory::{MAX_RANKS, MachineMemory};
use crate::model::{MemoryId, Model, ModelCheck, PacketLayout};

/// Order in which the warps of a round run. Every live warp runs once a round, for a random number of instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Policy {
    /// In the order in which they were started.
    RoundRobin,
    /// In a new random order each round.
    #[default]
    Random,
    /// In a random order, but a rank, a block or a warp, another one from time to time, is held up while others have
    /// something to do.
    Adversarial,
}

/// The threads of the host that ranks run on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Execution {
    /// On the thread that calls [`Machine::run`]: the same seed gives the same run.
    #[default]
    Deterministic,
    /// Ranks are dealt to threads, which run at the same time: fast, and no two runs are the same.
    Parallel {
        /// The most threads; `None` for as many as the host has processors.
        threads: Option<NonZeroUsize>,
    },
}

/// The settings of a machine.
#[derive(Clone, Debug)]
pub struct Config {
    /// Virtual GPUs.
    pub ranks: usize,
    /// The threads that ranks run on.
    pub execution: Execution,
    /// Checks the PTX memory model; needs [`Execution::Deterministic`].
    pub check: Option<ModelCheck>,
    /// Predicts times ([`Outcome::timing`]); needs [`Execution::Deterministic`], and decides the order of warps instead
    /// of the policy.
    pub clock: Option<ClockOptions>,
    /// Decides every choice of the scheduler: on one thread, the same seed gives the same run.
    pub seed: u64,
    /// Order of warps.
    pub policy: Policy,
    /// The most instructions that a warp executes in one turn; small values interleave finely, large ones run faster.
    pub quantum: u32,
    /// Instructions of warps after which a run is stopped.
    pub instruction_limit: Option<u64>,
    /// Blocks that a rank can hold at once, at least 1; `None` for all of a launch.
    pub resident_blocks: Option<usize>,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            ranks: 1,
            execution: Execution::default(),
            check: None,
            clock: None,
            seed: 0,
            policy: Policy::default(),
            quantum: 64,
            instruction_limit: None,
            resident_blocks: None,
        }
    }
}

/// The end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// All launches have ended.
    Completed,
    /// A kernel has stored into a watched range; `run` goes on from here, `abandon` ends it.
    Watched {
        /// First address of the store.
        address: u64,
    },
}

/// Counts of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunStatistics {
    /// PTX instructions, counted once for each warp that executes them.
    pub instructions: u64,
    /// PTX instructions, counted once for each lane.
    pub lane_instructions: u64,
    /// Turns that every live warp had, on the thread with the most of them.
    pub rounds: u64,
    /// Ranks of the machine.
    pub ranks: usize,
    /// The ways in which threads waited for each other.
    pub waits: Waits,
    classes: [ClassCount; InstructionClass::COUNT],
    links: Vec<LinkStatistics>,
}

impl RunStatistics {
    /// Instructions of a class.
    pub fn class(&self, class: InstructionClass) -> ClassCount {
        self.classes[class as usize]
    }

    /// Accesses by kernels of rank `from` to memory of rank `to`; zeros where there is no such rank.
    pub fn link(&self, from: usize, to: usize) -> LinkStatistics {
        if from >= self.ranks || to >= self.ranks {
            return LinkStatistics::default();
        }
        self.links.get(from * self.ranks + to).copied().unwrap_or_default()
    }
}

/// The end of a run without fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The end that it has come to.
    pub status: Status,
    /// Counts since the last call of `run`.
    pub statistics: RunStatistics,
    /// When, if the machine has a clock; goes on from an earlier call of `run` that was stopped by a watched store.
    pub timing: Option<Timing>,
}

/// N virtual GPUs with one address space.
#[derive(Debug)]
pub struct Machine {
    config: Config,
    pub(crate) memory: MachineMemory,
    /// Rank r belongs to worker r modulo their number.
    pub(crate) workers: Vec<Worker>,
    launches: usize,
    loaded: Vec<(usize, Arc<PtxModule>, Arc<[u64]>)>,
    pub(crate) observers: Observers,
}

impl Machine {
    /// A machine without memory in use.
    ///
    /// # Errors
    /// No rank, or more than the address space holds; a race check where it cannot be had.
    pub fn new(config: Config) -> Result<Machine, RequestError> {
        if config.ranks == 0 || config.ranks > MAX_RANKS {
            return Err(RequestError::Rank { rank: config.ranks, ranks: MAX_RANKS });
        }
        let threads = match config.execution {
            Execution::Deterministic => 1,
            Execution::Parallel { threads } => threads
                .or_else(|| std::thread::available_parallelism().ok())
                .map_or(1, NonZeroUsize::get)
                .min(config.ranks),
        };
        if config.check.is_some() && config.execution != Execution::Deterministic {
            return Err(RequestError::Check { reason: "the memory model is checked on one thread only" });
        }
        if let Some(clock) = &config.clock {
            let reason = match clock.topology.problem() {
                None if config.execution == Execution::Deterministic => None,
                None => Some("virtual time is told on one thread only"),
                problem => problem,
            };
            if let Some(reason) = reason {
                return Err(RequestError::Clock { reason });
            }
        }
        let clock = config.clock.clone().map(|clock| Box::new(VirtualClock::new(clock, config.ranks)));
        Ok(Machine {
            memory: MachineMemory::new(config.ranks, threads > 1),
            workers: (0..threads).map(|number| Worker::new(number, threads, &config)).collect(),
            launches: 0,
            loaded: Vec::new(),
            observers: Observers {
                model: config.check.map(|check| Box::new(Model::new(check, config.ranks, config.seed))),
                clock,
                others: Vec::new(),
            },
            config,
        })
    }

    /// Allocates `bytes` bytes of a rank's memory, which every rank can access. The address is an odd multiple of
    /// `align`, so never more aligned than asked for. Reading a byte before it is written is a fault.
    ///
    /// # Errors
    /// No such rank, an alignment that is no power of two, or no room.
    pub fn alloc(&mut self, rank: usize, bytes: u64, align: u64, label: &str) -> Result<u64, RequestError> {
        self.memory.allocate(rank, label, bytes, align, false, false)
    }

    /// Like [`Machine::alloc`], with all bytes 0 and readable.
    ///
    /// # Errors
    /// As of [`Machine::alloc`].
    pub fn alloc_zeroed(
        &mut self,
        rank: usize,
        bytes: u64,
        align: u64,
        label: &str,
    ) -> Result<u64, RequestError> {
        self.memory.allocate(rank, label, bytes, align, true, false)
    }

    /// Allocates at an address of the caller's choice, as drivers with virtual memory management do: rank r has the
    /// addresses from `(r + 1) << 40`, of which the machine takes only those of the upper half itself from then on. Other than
    /// those of [`Machine::alloc`], such addresses may be used again once freed.
    ///
    /// # Errors
    /// No such address, something lives there, or no room.
    pub fn alloc_at(&mut self, address: u64, bytes: u64, label: &str) -> Result<(), RequestError> {
        self.memory.place(address, label, bytes)
    }

    /// Makes a multicast range: one address that stands for the same `bytes` bytes from each of the addresses on, which
    /// lie in allocations of different ranks and are multiples of 16. Only `multimem` instructions may access it; they
    /// combine values in the order of the ranks. In the memory model, an order between them and accesses by the members'
    /// own addresses takes a `fence.proxy.alias` besides. An allocation has a part in 63 ranges at most.
    ///
    /// # Errors
    /// [`RequestError::Multicast`].
    pub fn multicast(&mut self, members: &[u64], bytes: u64, label: &str) -> Result<u64, RequestError> {
        self.memory.multicast(members, bytes, label, None)
    }

    /// As [`Machine::multicast`], at an address of the caller's choice, which is none of a rank's memory.
    ///
    /// # Errors
    /// Those of [`Machine::multicast`], and where something is at the address.
    pub fn multicast_at(
        &mut self,
        address: u64,
        members: &[u64],
        bytes: u64,
        label: &str,
    ) -> Result<(), RequestError> {
        self.memory.multicast(members, bytes, label, Some(address)).map(drop)
    }

    /// Ends the multicast range that begins at an address. What it stood for stays.
    pub fn end_multicast(&mut self, address: u64) {
        self.memory.end_multicast(address);
    }

    /// Frees an allocation; its addresses are never used again.
    ///
    /// # Errors
    /// The address does not begin a live allocation.
    pub fn free(&mut self, address: u64) -> Result<(), RequestError> {
        let id = self.memory.locate(address);
        self.memory.free(address)?;
        // What is known of the bytes stays as long as there is another way to them.
        if let (Some(model), Some(id)) = (&mut self.observers.model, id)
            && self.memory.own(id).0 == id
        {
            model.forget(MemoryId::Global(id));
        }
        Ok(())
    }

    /// Declares bytes of an allocation to hold packets: a packet that is written again before its reader has read it
    /// is a fault, if the machine checks the memory model.
    ///
    /// # Errors
    /// [`Fault::OutOfBounds`], [`Fault::UseAfterFree`].
    pub fn packets(&mut self, address: u64, bytes: u64, layout: PacketLayout) -> Result<(), Fault> {
        let bad = |reason| self.memory.bad_access(AccessKind::Store, address, bytes, reason);
        let id = self.memory.resolve(address, bytes).map_err(bad)?;
        let found = self.memory.get(id);
        let from = address - found.bytes.origin(found.base);
        if let Some(model) = &mut self.observers.model {
            model.declare_packets(MemoryId::Global(self.memory.own(id).0), from, bytes, layout);
        }
        Ok(())
    }

    /// Maps an allocation at a second address of its rank, and returns that. Kernels reach the same bytes by both; in
    /// the memory model, an order between accesses by different ones takes a `fence.proxy.alias` besides. Ends with the
    /// allocation, or when it is freed itself.
    ///
    /// # Errors
    /// No live allocation at the address, more than 63 aliases, or no room.
    pub fn alias(&mut self, address: u64) -> Result<u64, RequestError> {
        self.memory.alias(address)
    }

    /// Writes bytes into one allocation.
    ///
    /// # Errors
    /// [`Fault::OutOfBounds`], [`Fault::UseAfterFree`].
    pub fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), Fault> {
        // It counts as a change by any of the workers.
        self.workers[0].tally.epoch += 1;
        self.memory.write(address, bytes)?;
        if let (Some(model), Some(id)) = (&mut self.observers.model, self.memory.locate(address)) {
            let found = self.memory.get(id);
            let from = address - found.bytes.origin(found.base);
            model.host_writes(MemoryId::Global(self.memory.own(id).0), from, bytes.len() as u64);
        }
        Ok(())
    }

    /// Reads bytes of one allocation.
    ///
    /// # Errors
    /// [`Fault::OutOfBounds`], [`Fault::UseAfterFree`], [`Fault::Uninitialized`].
    pub fn read(&self, address: u64, len: usize) -> Result<Vec<u8>, Fault> {
        self.memory.read(address, len)
    }

    /// Ends a run with [`Status::Watched`] when a kernel stores into these bytes.
    pub fn watch(&mut self, address: u64, bytes: u64) {
        self.memory.watched.push((address, address.saturating_add(bytes)));
    }

    /// Gives lines of a module's sources labels, for the timeline of a machine with a clock: blocks are at the label of
    /// the line at which their kernel last accessed memory of a rank, came to a barrier or called a function. Lines without one go with what came
    /// before them.
    pub fn label_lines(&mut self, module: &Arc<PtxModule>, label: impl Fn(&SourceLine) -> Option<u32>) {
        if let Some(clock) = &mut self.observers.clock {
            let labels = |f: &PtxFunction| (f.first, f.lines.iter().map(&label).collect());
            clock.label(module, module.functions.iter().map(labels).collect());
        }
    }

    /// Watches nothing any more.
    pub fn unwatch(&mut self) {
        self.memory.watched.clear();
    }

    /// The address of a global or constant variable of a module on a rank, loading the module if it is not yet.
    ///
    /// # Errors
    /// No such rank or variable.
    pub fn variable(
        &mut self,
        rank: usize,
        module: &Arc<PtxModule>,
        name: &str,
    ) -> Result<u64, RequestError> {
        let addresses = self.load(rank, module)?;
        match module.variables.iter().position(|v| *v.name == *name) {
            Some(number) => Ok(addresses[number]),
            None => Err(RequestError::Variable { rank, name: name.into() }),
        }
    }

    /// Places a module's variables in a rank's memory, once.
    fn load(&mut self, rank: usize, module: &Arc<PtxModule>) -> Result<Arc<[u64]>, RequestError> {
        let same = |(r, m, _): &&(usize, Arc<PtxModule>, Arc<[u64]>)| *r == rank && Arc::ptr_eq(m, module);
        if let Some((.., addresses)) = self.loaded.iter().find(same) {
            return Ok(addresses.clone());
        }
        let mut addresses = Vec::new();
        for variable in &module.variables {
            let (len, align) = (variable.bytes, variable.align.into());
            let (name, constant) = (&variable.name, variable.constant);
            addresses.push(self.memory.allocate(rank, name, len, align, true, constant)?);
        }
        for (variable, &address) in module.variables.iter().zip(&addresses) {
            let mut image = variable.image.clone();
            for &(offset, target, addend) in &variable.relocations {
                let value = addresses[target].wrapping_add(addend as u64);
                image[offset..offset + 8].copy_from_slice(&value.to_le_bytes());
            }
            if let Some(id) = self.memory.locate(address) {
                self.memory.get(id).put(&image);
            }
        }
        let addresses: Arc<[u64]> = addresses.into();
        self.loaded.push((rank, module.clone(), addresses.clone()));
        Ok(addresses)
    }

    /// Queues a kernel. Launches of one rank run one after another, ranks run together; nothing runs before
    /// [`Machine::run`].
    ///
    /// # Errors
    /// No such rank or kernel, an inadmissible shape, or parameters that do not fit.
    pub fn launch(&mut self, launch: Launch) -> Result<(), RequestError> {
        let (rank, ranks) = (launch.rank, self.config.ranks);
        if rank >= ranks {
            return Err(RequestError::Rank { rank, ranks });
        }
        let mut launch = PreparedLaunch::new(launch, self.config.resident_blocks)?;
        launch.variables = self.load(rank, &launch.module.clone())?;
        launch.number = self.launches;
        self.launches += 1;
        let workers = self.workers.len();
        self.workers[rank % workers].queues[rank / workers].1.push_back(launch);
        Ok(())
    }

    /// Drops all launches, running or queued.
    pub fn abandon(&mut self) {
        self.settle();
        self.workers.iter_mut().for_each(Worker::abandon);
    }

    /// Nothing runs, so what happened so far is known to all that follows.
    fn settle(&mut self) {
        if let Some(model) = &mut self.observers.model {
            model.settle();
        }
    }

    /// Executes everything that has been launched.
    ///
    /// # Errors
    /// The first [`Fault`]; all launches are dropped then, and memory is as the kernels left it.
    pub fn run(&mut self) -> Result<Outcome, Fault> {
        self.workers.iter_mut().for_each(|worker| worker.tally.restart());
        if let Some(clock) = &mut self.observers.clock
            && self.workers.iter().all(|worker| worker.warps.is_empty())
        {
            clock.restart();
        }
        let exchange = WorkerExchange::new(self.workers.iter().map(|worker| &worker.tally));
        let shared = RunShared { config: &self.config, memory: &self.memory, exchange: &exchange };
        let mut observer = self.observers.active();
        std::thread::scope(|scope| {
            // The last one that has something to do runs here.
            let mut here: Option<&mut Worker> = None;
            for worker in &mut self.workers {
                if worker.idle() {
                    worker.run(shared, None);
                } else if let Some(other) = here.replace(worker) {
                    scope.spawn(move || other.run(shared, None));
                }
            }
            if let Some(worker) = here {
                worker.run(shared, observer.take());
            }
        });
        let mut statistics = RunStatistics { ranks: self.config.ranks, ..RunStatistics::default() };
        let mut links = vec![LinkCounts::default(); self.config.ranks.pow(2)];
        for Worker { tally, .. } in &self.workers {
            for (sum, class) in statistics.classes.iter_mut().zip(&tally.classes) {
                sum.warps += class.warps;
                sum.lanes += class.lanes;
            }
            statistics.waits += tally.waits;
            statistics.rounds = statistics.rounds.max(tally.rounds);
            links.iter_mut().zip(&tally.links).for_each(|(sum, link)| *sum += link);
        }
        statistics.links = links.into_iter().map(LinkStatistics::from).collect();
        statistics.instructions = statistics.classes.iter().map(|class| class.warps).sum();
        statistics.lane_instructions = statistics.classes.iter().map(|class| class.lanes).sum();
        let timing = self.observers.clock.as_mut().map(|clock| clock.timing());
        let fault = match exchange.into_stop() {
            None => {
                self.settle();
                return Ok(Outcome { status: Status::Completed, statistics, timing });
            }
            Some(StopReason::Watched(address)) => {
                return Ok(Outcome { status: Status::Watched { address }, statistics, timing });
            }
            Some(StopReason::Fault(fault)) => fault,
            Some(StopReason::Hang) => self.hang(),
        };
        self.abandon();
        Err(fault)
    }
}
