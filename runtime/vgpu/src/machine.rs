//! The machine: ranks, their queues of launches, resident blocks, and the order in which warps run.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::block::{BARRIERS, BarrierState, Block, Shape};
use crate::decode::MAX_SHARED_BYTES;
use crate::error::{Fault, RequestError};
use crate::exec::Context;
use crate::memory::{Bytes, LinkStatistics, MAX_RANKS, Memory};
use crate::module::Module;
use crate::random::Random;
use crate::warp::Warp;

/// Order in which the warps of a round run. Every live warp runs once a round, for a random number of instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Policy {
    /// In the order in which they were started.
    RoundRobin,
    /// In a new random order each round.
    #[default]
    Random,
}

/// What a machine is made from.
#[derive(Clone, Debug)]
pub struct Config {
    /// Virtual GPUs.
    pub ranks: usize,
    /// Decides every choice of the scheduler: the same seed gives the same run.
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
            seed: 0,
            policy: Policy::default(),
            quantum: 64,
            instruction_limit: None,
            resident_blocks: None,
        }
    }
}

/// A kernel launch.
#[derive(Clone, Debug)]
pub struct Launch {
    /// Rank that runs the kernel.
    pub rank: usize,
    /// Module of the kernel.
    pub module: Arc<Module>,
    /// Name of the kernel.
    pub kernel: String,
    /// Blocks in x, y, z.
    pub grid: [u32; 3],
    /// Threads a block in x, y, z; at most 1024 in all.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub shared_bytes: u32,
    /// The bytes of each parameter.
    pub params: Vec<Vec<u8>>,
}

/// How a run ended.
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
pub struct Statistics {
    /// PTX instructions, counted once for each warp that executes them.
    pub instructions: u64,
    /// PTX instructions, counted once for each lane.
    pub lane_instructions: u64,
    /// Turns that every live warp had.
    pub rounds: u64,
    /// Ranks of the machine.
    pub ranks: usize,
    links: Vec<LinkStatistics>,
}

impl Statistics {
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
    /// Why it ended.
    pub status: Status,
    /// What was executed since the last call of `run`.
    pub statistics: Statistics,
}

/// A launch that has been checked and given its parameters.
#[derive(Debug)]
struct Prepared {
    number: usize,
    module: Arc<Module>,
    entry: u32,
    kernel: Arc<str>,
    grid: [u32; 3],
    threads: [u32; 3],
    shared_bytes: u32,
    static_shared: u32,
    params: Bytes,
    variables: Arc<[u64]>,
    started: u64,
    ended: u64,
}

impl Prepared {
    fn blocks(&self) -> u64 {
        self.grid.iter().map(|&n| u64::from(n)).product()
    }
}

/// N virtual GPUs with one address space.
#[derive(Debug)]
pub struct Machine {
    pub(crate) config: Config,
    pub(crate) memory: Memory,
    random: Random,
    /// Launches of each rank; the first is running.
    queues: Vec<VecDeque<Prepared>>,
    launches: usize,
    loaded: Vec<(usize, Arc<Module>, Arc<[u64]>)>,
    pub(crate) blocks: Vec<Option<Block>>,
    pub(crate) warps: Vec<Warp>,
}

/// Warps that a launch may hold at once: each has its registers in memory.
const MAX_RESIDENT_WARPS: u64 = 1 << 16;

/// Rounds without any change of memory after which the hang detection begins to look.
const QUIET_ROUNDS: u32 = 4;

impl Machine {
    /// A machine without memory in use.
    ///
    /// # Errors
    /// No rank, or more than the address space holds.
    pub fn new(config: Config) -> Result<Machine, RequestError> {
        if config.ranks == 0 || config.ranks > MAX_RANKS {
            return Err(RequestError::Rank { rank: config.ranks, ranks: MAX_RANKS });
        }
        Ok(Machine {
            memory: Memory::new(config.ranks),
            random: Random::new(config.seed),
            queues: (0..config.ranks).map(|_| VecDeque::new()).collect(),
            launches: 0,
            loaded: Vec::new(),
            blocks: Vec::new(),
            warps: Vec::new(),
            config,
        })
    }

    /// Allocates `bytes` bytes of a rank's memory, which every rank can access. The address is an odd multiple of
    /// `align`, so never more aligned than asked for. Reading a byte before it is written is a fault.
    ///
    /// # Errors
    /// No such rank, an alignment that is no power of two, or no room.
    pub fn alloc(&mut self, rank: usize, bytes: u64, align: u64, label: &str) -> Result<u64, RequestError> {
        let len = Memory::check_size(label, bytes, align)?;
        self.memory.allocate(rank, Bytes::uninitialized(len), align, label, false)
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
        let len = Memory::check_size(label, bytes, align)?;
        self.memory.allocate(rank, Bytes::zeroed(len), align, label, false)
    }

    /// Frees an allocation; its addresses are never used again.
    ///
    /// # Errors
    /// The address does not begin a live allocation.
    pub fn free(&mut self, address: u64) -> Result<(), RequestError> {
        self.memory.free(address)
    }

    /// Writes bytes into one allocation.
    ///
    /// # Errors
    /// [`Fault::OutOfBounds`], [`Fault::UseAfterFree`].
    pub fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), Fault> {
        self.memory.write(address, bytes)
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

    /// Watches nothing any more.
    pub fn unwatch(&mut self) {
        self.memory.watched.clear();
    }

    /// The address of a global or constant variable of a module on a rank, loading the module if it is not yet.
    ///
    /// # Errors
    /// No such rank or variable.
    pub fn variable(&mut self, rank: usize, module: &Arc<Module>, name: &str) -> Result<u64, RequestError> {
        let addresses = self.load(rank, module)?;
        match module.variables.iter().position(|v| *v.name == *name) {
            Some(number) => Ok(addresses[number]),
            None => Err(RequestError::Variable { rank, name: name.into() }),
        }
    }

    /// Places a module's variables in a rank's memory, once.
    fn load(&mut self, rank: usize, module: &Arc<Module>) -> Result<Arc<[u64]>, RequestError> {
        let same = |(r, m, _): &&(usize, Arc<Module>, Arc<[u64]>)| *r == rank && Arc::ptr_eq(m, module);
        if let Some((.., addresses)) = self.loaded.iter().find(same) {
            return Ok(addresses.clone());
        }
        let mut addresses = Vec::new();
        for variable in &module.variables {
            let mut bytes = Bytes::zeroed(variable.image.len());
            bytes.data.copy_from_slice(&variable.image);
            let align = variable.align.into();
            addresses.push(self.memory.allocate(rank, bytes, align, &variable.name, variable.constant)?);
        }
        for (variable, &address) in module.variables.iter().zip(&addresses) {
            for &(offset, target, addend) in &variable.relocations {
                let value = addresses[target].wrapping_add(addend as u64).to_le_bytes();
                if let Some(id) = self.memory.locate(address) {
                    self.memory.get_mut(id).bytes.data[offset..offset + 8].copy_from_slice(&value);
                }
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
        let Launch { rank, module, kernel, grid, block, shared_bytes, params } = launch;
        if rank >= self.config.ranks {
            return Err(RequestError::Rank { rank, ranks: self.config.ranks });
        }
        let Some(entry) = module.functions.iter().position(|f| f.entry && *f.name == *kernel) else {
            let known = module.kernels().map(String::from).collect();
            return Err(RequestError::Kernel { kernel, known });
        };
        let function = &module.functions[entry];
        let limits = [
            ("the grid's x extent", u64::from(grid[0]), (1 << 31) - 1),
            ("the grid's y extent", grid[1].into(), 65535),
            ("the grid's z extent", grid[2].into(), 65535),
            ("the block's x extent", block[0].into(), 1024),
            ("the block's y extent", block[1].into(), 1024),
            ("the block's z extent", block[2].into(), 64),
            (
                "the number of threads a block",
                block.iter().map(|&n| u64::from(n)).product(),
                function.max_threads.unwrap_or(1024).min(1024).into(),
            ),
        ];
        for (what, value, limit) in limits {
            if value == 0 || value > limit {
                return Err(RequestError::Shape { kernel, what, value, limit });
            }
        }
        let blocks = grid.iter().fold(1u64, |n, &extent| n.saturating_mul(extent.into()));
        let resident = self.config.resident_blocks.map_or(blocks, |n| blocks.min(n as u64));
        let warps = block.iter().product::<u32>().div_ceil(32);
        let value = resident.saturating_mul(warps.into());
        if value > MAX_RESIDENT_WARPS {
            let what = "the number of warps resident at once (`resident_blocks` bounds it)";
            return Err(RequestError::Shape { kernel, what, value, limit: MAX_RESIDENT_WARPS });
        }
        let static_shared = function.shared_bytes;
        let total = match shared_bytes {
            0 => static_shared.into(),
            bytes => Module::dynamic_begin(static_shared) + u64::from(bytes),
        };
        if total > MAX_SHARED_BYTES {
            let what = "shared memory in bytes";
            return Err(RequestError::Shape { kernel, what, value: total, limit: MAX_SHARED_BYTES });
        }
        if params.len() != function.params.len() {
            let (given, declared) = (params.len(), function.params.len());
            return Err(RequestError::Params { kernel, what: "the number of parameters", given, declared });
        }
        let mut bytes = Bytes::zeroed(function.param_bytes as usize);
        for (given, declared) in params.iter().zip(&function.params) {
            let len = declared.bytes as usize;
            if given.len() != len {
                let what = "the size of a parameter in bytes";
                return Err(RequestError::Params { kernel, what, given: given.len(), declared: len });
            }
            bytes.data[declared.offset as usize..][..len].copy_from_slice(given);
        }
        let kernel = function.name.clone();
        let variables = self.load(rank, &module)?;
        self.launches += 1;
        self.queues[rank].push_back(Prepared {
            number: self.launches - 1,
            module,
            entry: entry as u32,
            kernel,
            grid,
            threads: block,
            shared_bytes: total as u32,
            static_shared,
            params: bytes,
            variables,
            started: 0,
            ended: 0,
        });
        Ok(())
    }

    /// Drops all launches, running or queued.
    pub fn abandon(&mut self) {
        self.queues.iter_mut().for_each(VecDeque::clear);
        self.blocks.clear();
        self.warps.clear();
    }

    /// Executes everything that has been launched.
    ///
    /// # Errors
    /// The first [`Fault`]; all launches are dropped then, and memory is as the kernels left it.
    pub fn run(&mut self) -> Result<Outcome, Fault> {
        self.memory.clear_links();
        self.memory.watch_hit = None;
        let mut statistics = Statistics { ranks: self.config.ranks, ..Statistics::default() };
        let result = self.rounds(&mut statistics);
        statistics.links = self.memory.links().to_vec();
        match result {
            Ok(status) => Ok(Outcome { status, statistics }),
            Err(fault) => {
                self.abandon();
                Err(fault)
            }
        }
    }

    fn rounds(&mut self, statistics: &mut Statistics) -> Result<Status, Fault> {
        let mut order = Vec::new();
        let (mut quiet, mut epoch) = (0, self.memory.epoch);
        loop {
            self.start_blocks();
            if self.warps.is_empty() {
                return Ok(Status::Completed);
            }
            let suspect = quiet >= QUIET_ROUNDS;
            order.clear();
            order.extend(0..self.warps.len());
            if self.config.policy == Policy::Random {
                self.random.shuffle(&mut order);
            }
            statistics.rounds += 1;
            let mut ran = 0;
            for &w in &order {
                let quantum = self.random.below(u64::from(self.config.quantum.max(1))) as u32 + 1;
                ran += self.turn(w, quantum, suspect, statistics)?;
                if let Some(address) = self.memory.watch_hit {
                    self.retire();
                    return Ok(Status::Watched { address });
                }
                if let Some(limit) = self.config.instruction_limit
                    && statistics.instructions > limit
                {
                    return Err(Fault::InstructionLimit { limit });
                }
            }
            let ended = self.retire();
            self.memory.epoch += u64::from(ended);
            if self.memory.epoch != epoch {
                (quiet, epoch) = (0, self.memory.epoch);
                if suspect {
                    self.warps.iter_mut().for_each(|w| w.watcher.reset());
                }
                continue;
            }
            quiet += 1;
            if ran == 0 || suspect && self.warps.iter().all(|w| !w.can_run() || w.watcher.repeats(epoch)) {
                return Err(self.hang());
            }
        }
    }

    fn turn(
        &mut self,
        w: usize,
        quantum: u32,
        suspect: bool,
        statistics: &mut Statistics,
    ) -> Result<u32, Fault> {
        let warp = &mut self.warps[w];
        let Some(Some(block)) = self.blocks.get_mut(warp.block) else { return Ok(0) };
        let live = warp.live;
        let mut cx = Context {
            memory: &mut self.memory,
            block,
            instructions: statistics.instructions,
            lane_instructions: statistics.lane_instructions,
            suspect,
        };
        let ran = match warp.run(&mut cx, quantum) {
            Ok(ran) => ran,
            Err(mut fault) => {
                if let Some(source) = fault.place_mut().and_then(|place| place.source.as_mut()) {
                    source.called_from(warp.callers(&block.module));
                }
                return Err(fault);
            }
        };
        if ran == 0
            && let Some(fault) = warp.stuck(&cx)
        {
            return Err(fault);
        }
        statistics.instructions = cx.instructions;
        statistics.lane_instructions = cx.lane_instructions;
        block.exited += (live & !warp.live).count_ones();
        Ok(ran)
    }

    /// Removes warps, blocks and launches that have ended; says whether there were any.
    fn retire(&mut self) -> bool {
        let before = self.warps.len();
        for warp in self.warps.iter().filter(|w| w.live == 0) {
            let Some(Some(block)) = self.blocks.get_mut(warp.block) else { continue };
            block.live_warps -= 1;
            if block.live_warps > 0 {
                continue;
            }
            let queue = &mut self.queues[block.rank];
            self.blocks[warp.block] = None;
            if let Some(launch) = queue.front_mut() {
                launch.ended += 1;
                if launch.ended == launch.blocks() {
                    queue.pop_front();
                }
            }
        }
        self.warps.retain(|w| w.live != 0);
        self.warps.len() != before
    }

    /// Starts blocks where there is room for them.
    fn start_blocks(&mut self) {
        for rank in 0..self.config.ranks {
            let Some(launch) = self.queues[rank].front_mut() else { continue };
            let room = self.config.resident_blocks.map_or(u64::MAX, |n| n.max(1) as u64);
            while launch.started < launch.blocks() && launch.started - launch.ended < room {
                let n = launch.started;
                launch.started += 1;
                let [nx, ny, _] = launch.grid.map(u64::from);
                let coordinates = [n % nx, n / nx % ny, n / nx / ny].map(|c| c as u32);
                let shape = Shape { grid: launch.grid, block: coordinates, threads: launch.threads };
                let block = Block {
                    rank,
                    launch: launch.number,
                    module: launch.module.clone(),
                    kernel: launch.kernel.clone(),
                    shape,
                    shared: Bytes::uninitialized(launch.shared_bytes as usize),
                    static_shared: launch.static_shared,
                    params: launch.params.clone(),
                    variables: launch.variables.clone(),
                    barriers: vec![BarrierState::default(); BARRIERS],
                    wakes: Vec::new(),
                    live_warps: shape.warps(),
                    exited: 0,
                };
                let slot = match self.blocks.iter().position(Option::is_none) {
                    Some(free) => free,
                    None => {
                        self.blocks.push(None);
                        self.blocks.len() - 1
                    }
                };
                for index in 0..shape.warps() {
                    self.warps.push(Warp::new(&launch.module, launch.entry, &block, slot, index));
                }
                self.blocks[slot] = Some(block);
            }
        }
    }
}
