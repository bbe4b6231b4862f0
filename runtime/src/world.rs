//! Worlds: the GPUs, real or virtual, that ranks run on, and the state that their communicators share.

mod cuda;
mod gpus;
mod virtual_gpus;

pub use cuda::{Measured, gpus, lowered};
pub(crate) use cuda::{measure, multicast};
pub(crate) use gpus::{CallProgress, Gpus, On, Place, Start, Trouble};
pub use virtual_gpus::{Link, Statistics};

use virtual_gpus::VirtualGpus;
pub(crate) use virtual_gpus::owner;

use crate::communicator::{Communicator, Group, GroupHandle};
use crate::error::Error;
use crate::failure::Failure;
use crate::kernel::LoadCache;
use crate::nvrtc::{Arch, Features};
use quadrille_compiler::kernel::abi::{CounterLayout, FifoLayout};
use quadrille_compiler::kernel::widths::Widths;
use quadrille_compiler::program::ids::Rank;
use quadrille_compiler::schedule::domain::{DEFAULT_BLOCK_CAP, Domain, LARGEST_BLOCK_CAP};
use quadrille_vgpu::{ClockOptions, ModelCheck, Policy};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Ranks whose addresses fit the 4096 bytes that a kernel's parameters may have everywhere: 72 bytes, and five tables of 8
/// bytes a rank ([`quadrille_compiler::kernel::abi::Params`]).
pub const MOST_RANKS: u32 = (4096 - 72) / 40;

/// The longest time that a wait may take on real GPUs unless options say otherwise.
pub const PATIENCE: Duration = Duration::from_secs(600);

/// The longest time that kernels of real GPUs may take to leave once they are told to, unless options say otherwise.
pub const LEAVING: Duration = Duration::from_secs(10);

/// The largest block cap.
pub const MOST_BLOCKS: u32 = LARGEST_BLOCK_CAP;

/// The GPUs that ranks run on. A handle: clones are the same world.
#[derive(Clone)]
pub struct World {
    pub(crate) shared: Arc<Shared>,
}

/// Options of a world.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WorldOptions {
    /// Decides the order in which warps run; each seed is one deterministic order, on one core. Without one, ranks run
    /// on all cores at the same time.
    pub seed: Option<u64>,
    /// The way in which that order is drawn.
    pub policy: Policy,
    /// Runs under the PTX memory model: what a load may give, and which accesses race. One core, seed 0 unless given.
    pub check: Option<ModelCheck>,
    /// Most thread blocks of a rank, 1 to [`MOST_BLOCKS`].
    pub block_cap: u32,
    /// Widths of what is loaded. Tests shrink them.
    pub widths: Widths,
    /// Signals that every counter has seen when communicators are made, modulo its width. Tests begin near the wrap.
    pub counted: u64,
    /// Instructions of warps after which a run is stopped; `None` for no bound. What only waits is found without.
    pub instruction_limit: Option<u64>,
    /// The longest time of one wait of a kernel until it gives up. `None`: on real GPUs [`PATIENCE`]; on virtual ones without
    /// bound, as those tell what waits for ever by its never changing ([`crate::Cause::Hang`]). Time on virtual GPUs is that of
    /// their clock, else 2 ns for each instruction of a warp, one after the other.
    pub patience: Option<Duration>,
    /// The longest time that kernels of real GPUs may take to leave once one has given up and all are told to. Those still there
    /// are given up: the call fails, and whatever they may touch is never freed.
    pub leaving: Duration,
    /// The architecture that kernels are compiled for; virtual GPUs execute the PTX of any.
    pub arch: Arch,
}

impl Default for WorldOptions {
    fn default() -> WorldOptions {
        WorldOptions {
            seed: None,
            policy: Policy::default(),
            check: None,
            block_cap: DEFAULT_BLOCK_CAP,
            widths: Widths::default(),
            counted: 0,
            instruction_limit: None,
            patience: None,
            leaving: LEAVING,
            arch: Arch { number: 90, features: Features::Common },
        }
    }
}

/// A world and what belongs to it. Handles hold this; it holds no handle.
pub(crate) struct Shared {
    ranks: u32,
    options: WorldOptions,
    kind: WorldKind,
    domain: Domain,
    state: Mutex<State>,
    /// Memory and groups that handles gave up, freed when the state is locked next: a handle can be dropped while it is locked.
    freed: Mutex<Vec<Freed>>,
    /// Shared by worlds that differ in behaviour alone.
    cache: Arc<Mutex<LoadCache>>,
}

/// The GPUs that a world is made of.
#[derive(Clone)]
enum WorldKind {
    /// Virtual GPUs, one a rank or one for all.
    Virtual {
        clock: Option<ClockOptions>,
        shared: bool,
    },
    Cuda(cuda::Devices),
}

pub(crate) struct State {
    pub(crate) gpus: Box<dyn Gpus>,
    pub(crate) groups: BTreeMap<u64, Group>,
    next: u64,
    /// The GPUs were stopped in the middle of calls and must be replaced.
    broken: bool,
    /// Calls go into a graph.
    pub(crate) capturing: bool,
}

/// Memory, a group or a graph that a handle gave up.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Freed {
    /// One rank's memory of a window.
    Window { group: u64, rank: Rank, window: usize },
    /// A group: no handle of it is left.
    Group { group: u64 },
    /// A graph with calls of a group.
    Graph { group: u64 },
}

impl World {
    /// `ranks` virtual GPUs, each linked to each, with default [`WorldOptions`].
    ///
    /// # Errors
    /// [`Error::NoRanks`], [`Error::TooManyRanks`].
    pub fn virtual_gpus(ranks: u32) -> Result<World, Error> {
        World::virtual_gpus_with(ranks, WorldOptions::default())
    }

    /// As [`World::virtual_gpus`], with options.
    ///
    /// # Errors
    /// Those of [`World::virtual_gpus`], and [`Error::BlockCap`].
    pub fn virtual_gpus_with(ranks: u32, options: WorldOptions) -> Result<World, Error> {
        World::of_virtual_gpus(ranks, options, false)
    }

    /// `ranks` ranks that share one virtual GPU, with default [`WorldOptions`]: as [`World::cuda_shared`], each call is one launch
    /// of all ranks' blocks.
    ///
    /// # Errors
    /// Those of [`World::virtual_gpus`].
    pub fn virtual_shared(ranks: u32) -> Result<World, Error> {
        World::virtual_shared_with(ranks, WorldOptions::default())
    }

    /// As [`World::virtual_shared`], with options.
    ///
    /// # Errors
    /// Those of [`World::virtual_gpus_with`].
    pub fn virtual_shared_with(ranks: u32, options: WorldOptions) -> Result<World, Error> {
        World::of_virtual_gpus(ranks, options, true)
    }

    fn of_virtual_gpus(ranks: u32, options: WorldOptions, shared: bool) -> Result<World, Error> {
        let cap = options.block_cap;
        match ranks {
            0 => return Err(Error::NoRanks),
            _ if ranks > MOST_RANKS => return Err(Error::TooManyRanks { ranks, most: MOST_RANKS }),
            _ if !(1..=MOST_BLOCKS).contains(&cap) => return Err(Error::BlockCap { cap, most: MOST_BLOCKS }),
            _ => {}
        }
        World::new(ranks, options, WorldKind::Virtual { clock: None, shared }, Arc::default())
    }

    fn new(
        ranks: u32,
        options: WorldOptions,
        kind: WorldKind,
        cache: Arc<Mutex<LoadCache>>,
    ) -> Result<World, Error> {
        let gpus = kind.gpus(ranks, &options)?;
        let domain = kind.domain(ranks, &options);
        let state = State { gpus, groups: BTreeMap::new(), next: 0, broken: false, capturing: false };
        let state = Mutex::new(state);
        let shared = Shared { ranks, options, kind, domain, state, freed: Mutex::default(), cache };
        Ok(World { shared: Arc::new(shared) })
    }

    /// Other virtual GPUs that behave as this world's but for the seed. They share what has been loaded.
    ///
    /// # Errors
    /// [`Error::Machine`] where there is no memory for them, [`Error::NotVirtual`] for a world of real GPUs.
    pub fn reseeded(&self, seed: u64) -> Result<World, Error> {
        let WorldKind::Virtual { .. } = self.shared.kind else {
            return Err(Error::NotVirtual { what: "a seed" });
        };
        let options = WorldOptions { seed: Some(seed), ..self.shared.options };
        World::new(self.ranks(), options, self.shared.kind.clone(), Arc::clone(&self.shared.cache))
    }

    /// Other virtual GPUs that behave as this world's, on one core (seed 0 unless given), and tell by a virtual clock how
    /// long calls would take on real ones ([`Statistics::timeline`]). Their loads give the newest value, whatever this
    /// world checks. They share what has been loaded.
    ///
    /// # Errors
    /// [`Error::Machine`] where the topology makes no sense, or there is no memory for them, [`Error::NotVirtual`] for a
    /// world of real GPUs.
    pub fn with_clock(&self, clock: ClockOptions) -> Result<World, Error> {
        let WorldKind::Virtual { shared, .. } = self.shared.kind else {
            return Err(Error::NotVirtual { what: "a virtual clock" });
        };
        let options = WorldOptions { check: None, ..self.shared.options };
        let kind = WorldKind::Virtual { clock: Some(clock), shared };
        World::new(self.ranks(), options, kind, Arc::clone(&self.shared.cache))
    }

    /// World size.
    pub fn ranks(&self) -> u32 {
        self.shared.ranks
    }

    /// Returns the domain that programs are proved for before they run here.
    pub fn domain(&self) -> Domain {
        self.shared.domain()
    }

    /// Returns its options. Those that only virtual GPUs have are not read for real ones.
    pub fn options(&self) -> &WorldOptions {
        &self.shared.options
    }

    /// One line that names the world: `8 virtual GPUs on this machine's CPU`, and the seed if it has one, or the GPUs.
    pub fn describe(&self) -> String {
        let Shared { ranks, options, kind, .. } = &*self.shared;
        let s = if *ranks == 1 { "" } else { "s" };
        match kind {
            WorldKind::Virtual { shared, .. } => {
                let seed = options.seed.map_or(String::new(), |seed| format!(" (seed {seed})"));
                match shared {
                    true => format!("{ranks} rank{s} on one virtual GPU on this machine's CPU{seed}"),
                    false => format!("{ranks} virtual GPU{s} on this machine's CPU{seed}"),
                }
            }
            WorldKind::Cuda(devices) => devices.describe(),
        }
    }

    /// Returns true if its GPUs are virtual ones, whose times say nothing of real ones.
    pub fn is_virtual(&self) -> bool {
        matches!(self.shared.kind, WorldKind::Virtual { .. })
    }

    /// A new group of communicators, one a rank, with counters of their own. After a failure this also replaces the
    /// GPUs.
    ///
    /// # Errors
    /// [`Error::Machine`] or [`Error::Cuda`] where there is no memory for the counters, [`Error::InFlight`] where calls
    /// run.
    pub fn communicators(&self) -> Result<Vec<Communicator>, Error> {
        let mut state = self.shared.lock();
        if state.broken {
            state.gpus = self.shared.kind.gpus(self.ranks(), &self.shared.options)?;
            state.broken = false;
        }
        state.quiet("make communicators")?;
        let group = Group::new(&mut *state.gpus, &self.shared)?;
        let id = state.next;
        state.next += 1;
        state.groups.insert(id, group);
        let group = Arc::new(GroupHandle { shared: self.shared.clone(), id });
        let ranks = (0..self.ranks()).map(Rank);
        Ok(ranks.map(|rank| Communicator { group: group.clone(), rank }).collect())
    }

    /// Runs every call that all ranks have queued, and returns when they have ended.
    ///
    /// # Errors
    /// [`Error::NotEnqueued`] where some ranks have queued calls that others have not: those wait, the others have
    /// run. [`Error::Failed`] where a kernel failed, hangs, or met a peer with another call: then every communicator
    /// of this world has ended.
    pub fn synchronize(&self) -> Result<(), Error> {
        self.synchronize_measured().map(drop)
    }

    /// As [`World::synchronize`], and says what the calls did.
    ///
    /// # Errors
    /// Those of [`World::synchronize`].
    pub fn synchronize_measured(&self) -> Result<Statistics, Error> {
        self.shared.synchronize()
    }
}

impl Shared {
    pub(crate) fn ranks(&self) -> u32 {
        self.ranks
    }

    pub(crate) fn domain(&self) -> Domain {
        self.domain.clone()
    }

    pub(crate) fn options(&self) -> &WorldOptions {
        &self.options
    }

    /// Returns the longest time that a wait of a kernel may take.
    pub(crate) fn patience(&self) -> Option<Duration> {
        match self.kind {
            WorldKind::Virtual { .. } => self.options.patience,
            WorldKind::Cuda(_) => Some(self.options.patience.unwrap_or(PATIENCE)),
        }
    }

    /// Returns the longest time that kernels may take to leave.
    pub(crate) fn leaving(&self) -> Duration {
        self.options.leaving
    }

    pub(crate) fn widths(&self) -> Widths {
        self.options.widths
    }

    pub(crate) fn counter_layout(&self) -> CounterLayout {
        CounterLayout { ranks: self.ranks, block_cap: self.options.block_cap }
    }

    pub(crate) fn fifo_layout(&self) -> FifoLayout {
        let Widths { slot_bytes, line_bytes, .. } = self.options.widths;
        FifoLayout { ranks: self.ranks, slot_bytes, line_bytes }
    }

    pub(crate) fn cache(&self) -> MutexGuard<'_, LoadCache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state, after freeing what handles gave up.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let freed = mem::take(&mut *self.freed.lock().unwrap_or_else(PoisonError::into_inner));
        let kept: Vec<_> = freed.into_iter().filter(|&freed| !state.collect(freed)).collect();
        self.freed.lock().unwrap_or_else(PoisonError::into_inner).extend(kept);
        state
    }

    pub(crate) fn free(&self, freed: Freed) {
        self.freed.lock().unwrap_or_else(PoisonError::into_inner).push(freed);
    }
}

impl WorldKind {
    fn gpus(&self, ranks: u32, options: &WorldOptions) -> Result<Box<dyn Gpus>, Error> {
        Ok(match self {
            WorldKind::Virtual { clock, shared } => {
                Box::new(VirtualGpus::new((ranks, *shared), options, clock.as_ref())?)
            }
            WorldKind::Cuda(devices) => Box::new(devices.gpus(options.leaving)?),
        })
    }

    fn domain(&self, ranks: u32, options: &WorldOptions) -> Domain {
        let full = Domain { block_cap: options.block_cap, ..Domain::full_mesh(ranks) };
        match self {
            // `multimem` is of sm_90 (PTX ISA).
            WorldKind::Virtual { shared: true, .. } => {
                Domain { block_cap: options.block_cap, ..Domain::one_device(ranks) }
            }
            WorldKind::Virtual { .. } => Domain { multicast: options.arch.number >= 90, ..full },
            WorldKind::Cuda(devices) => devices.domain(full),
        }
    }
}

impl State {
    /// Frees, unless a call that has not ended needs it. Memory of failed groups went with their GPUs.
    fn collect(&mut self, freed: Freed) -> bool {
        let id = match freed {
            Freed::Window { group, .. } | Freed::Group { group } | Freed::Graph { group } => group,
        };
        // A mapping may not change while a kernel runs, of whatever group: the driver may wait for it, and it for a rank
        // whose call has not been made.
        let live = self.groups.get(&id).is_some_and(|group| group.failed.is_none());
        if live && self.is_flying() {
            return false;
        }
        let State { gpus, groups, .. } = self;
        match freed {
            Freed::Window { rank, window, .. } => {
                let Some(group) = groups.get_mut(&id).filter(|group| group.failed.is_none()) else {
                    return true;
                };
                if group.uses(rank, window) || group.keeps(rank, window) {
                    return false;
                }
                group.free_window(&mut **gpus, rank, window);
            }
            Freed::Group { .. } => {
                if let Some(group) = groups.remove(&id).filter(|group| group.failed.is_none()) {
                    group.free(&mut **gpus);
                    gpus.disband(id);
                }
            }
            Freed::Graph { .. } => {
                if let Some(group) = groups.get_mut(&id).filter(|group| group.failed.is_none()) {
                    group.tidy(&mut **gpus);
                }
            }
        }
        true
    }

    /// Nothing runs, so that memory may be made and code be loaded.
    pub(crate) fn quiet(&mut self, doing: &'static str) -> Result<(), Error> {
        if self.is_flying() { Err(Error::InFlight { doing }) } else { Ok(()) }
    }

    /// Returns true if a call of any group may still run.
    fn is_flying(&mut self) -> bool {
        let State { gpus, groups, .. } = self;
        groups.iter_mut().any(|(&id, group)| {
            group.settle(id, &**gpus);
            group.is_flying()
        })
    }

    /// Ends every group.
    pub(crate) fn fail(&mut self, failure: Failure) -> Arc<Failure> {
        let failure = Arc::new(failure);
        self.broken = true;
        for group in self.groups.values_mut().filter(|group| group.failed.is_none()) {
            group.failed = Some(failure.clone());
            group.queue.iter_mut().chain(&mut group.flying).for_each(VecDeque::clear);
        }
        failure
    }
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World").field("ranks", &self.ranks()).field("options", &self.shared.options).finish()
    }
}
