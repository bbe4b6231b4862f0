//! Counts of a run: instructions, accesses over links, waits.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::fault::AccessKind;
use crate::isa::{InstructionClass, MemoryAccess, MemoryOrder};

/// Widths of accesses: 1, 2, 4, 8, 16 and 32 bytes.
pub(crate) const WIDTHS: usize = 6;

/// The accesses of one rank to the memory of another (or its own).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkStatistics {
    /// Scalar or vector loads, one for each lane.
    pub loads: u64,
    /// Stores, one for each lane.
    pub stores: u64,
    /// Atomics, one for each lane.
    pub atomics: u64,
    /// Bytes loaded; atomics count here and in `bytes_stored`.
    pub bytes_loaded: u64,
    /// Bytes stored.
    pub bytes_stored: u64,
    counts: LinkCounts,
}

/// Accesses of lanes by kind, by whether they are strong, and by the binary logarithm of their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LinkCounts([[[u64; WIDTHS]; 2]; 3]);

impl LinkCounts {
    #[inline(always)]
    pub(crate) fn add(&mut self, kind: AccessKind, access: &MemoryAccess, lanes: u64) {
        let width = access.bytes().trailing_zeros() as usize % 8;
        let strong = usize::from(access.order != MemoryOrder::Weak || kind == AccessKind::Atomic);
        if let Some(count) = self.0[kind as usize][strong].get_mut(width) {
            *count += lanes;
        }
    }
}

impl LinkCounts {
    /// Counts what an asynchronous copy reads or writes, in the widest parts.
    pub(crate) fn copied(&mut self, kind: AccessKind, bytes: u64) {
        let mut rest = bytes;
        for log in (0..=4).rev() {
            self.0[kind as usize][0][log] += rest >> log;
            rest &= (1 << log) - 1;
        }
    }
}

impl std::ops::AddAssign<&LinkCounts> for LinkCounts {
    fn add_assign(&mut self, other: &LinkCounts) {
        let others = other.0.iter().flatten().flatten();
        self.0.iter_mut().flatten().flatten().zip(others).for_each(|(sum, more)| *sum += more);
    }
}

impl From<LinkCounts> for LinkStatistics {
    fn from(counts: LinkCounts) -> LinkStatistics {
        let mut link = LinkStatistics { counts, ..LinkStatistics::default() };
        let sum = |kind: AccessKind, of: &dyn Fn(u64, u64) -> u64| {
            link.accesses().filter(|accesses| accesses.kind == kind).map(|a| of(a.count, a.bytes)).sum()
        };
        let count = |kind| -> u64 { sum(kind, &|count, _| count) };
        let bytes = |kind| -> u64 { sum(kind, &|count, bytes| count * bytes) };
        let [load, store, atomic] = [AccessKind::Load, AccessKind::Store, AccessKind::Atomic];
        let (loads, stores, atomics) = (count(load), count(store), count(atomic));
        let (bytes_loaded, bytes_stored) = (bytes(load) + bytes(atomic), bytes(store) + bytes(atomic));
        (link.loads, link.stores, link.atomics) = (loads, stores, atomics);
        (link.bytes_loaded, link.bytes_stored) = (bytes_loaded, bytes_stored);
        link
    }
}

/// Accesses of one kind and width over a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accesses {
    /// Load, store or atomic.
    pub kind: AccessKind,
    /// Flags and packets rather than data: accesses that take part in synchronization (`.relaxed`, `.acquire`,
    /// `.release`, `.volatile`), and every atomic.
    pub strong: bool,
    /// Bytes that a lane accesses at once.
    pub bytes: u64,
    /// How many, one for each lane.
    pub count: u64,
}

impl LinkStatistics {
    /// The accesses by kind, strength and width, without those that did not happen.
    pub fn accesses(&self) -> impl Iterator<Item = Accesses> {
        let counts = &self.counts.0;
        let kinds = [AccessKind::Load, AccessKind::Store, AccessKind::Atomic];
        kinds.into_iter().flat_map(move |kind| {
            [false, true].into_iter().flat_map(move |strong| {
                let widths = counts[kind as usize][usize::from(strong)].iter().enumerate();
                widths.filter(|(_, count)| **count > 0).map(move |(log, &count)| Accesses {
                    kind,
                    strong,
                    bytes: 1 << log,
                    count,
                })
            })
        })
    }
}

/// PTX instructions of one class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassCount {
    /// Counted once for each warp.
    pub warps: u64,
    /// Counted once for each lane.
    pub lanes: u64,
}

/// The ways in which threads waited for each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// Barriers of blocks that were completed.
    pub barriers: u64,
    /// Strong loads from memory of ranks, one for each lane.
    pub polls: u64,
    /// Polls that gave a lane the same value as its last one, at the same instruction and address.
    pub empty_polls: u64,
}

impl std::ops::AddAssign for Waits {
    fn add_assign(&mut self, other: Waits) {
        self.barriers += other.barriers;
        self.polls += other.polls;
        self.empty_polls += other.empty_polls;
    }
}

/// The counts of a worker, on cache lines of their own.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Tally {
    /// Changes of values in memory, and everything else that can end a wait.
    pub(crate) epoch: u64,
    /// First watched address that was written since the last look.
    pub(crate) watch_hit: Option<u64>,
    pub(crate) classes: [ClassCount; InstructionClass::COUNT],
    /// Rounds, in each of which every live warp has a turn.
    pub(crate) rounds: u64,
    pub(crate) waits: Waits,
    /// By accessing rank and accessed one.
    pub(crate) links: Vec<LinkCounts>,
    ranks: usize,
}

impl Tally {
    pub(crate) fn new(ranks: usize) -> Tally {
        Tally {
            epoch: 0,
            watch_hit: None,
            classes: Default::default(),
            rounds: 0,
            waits: Waits::default(),
            links: vec![LinkCounts::default(); ranks * ranks],
            ranks,
        }
    }

    /// Begins the counts of a run. Changes are counted through all runs, so that a warp that was stopped in a wait
    /// does not take what the host has written meanwhile for nothing.
    pub(crate) fn restart(&mut self) {
        (self.watch_hit, self.rounds) = (None, 0);
        (self.classes, self.waits) = Default::default();
        self.links.fill(LinkCounts::default());
    }

    /// Instructions of warps.
    pub(crate) fn instructions(&self) -> u64 {
        self.classes.iter().map(|class| class.warps).sum()
    }

    #[inline]
    pub(crate) fn link(&mut self, from: usize, to: usize) -> &mut LinkCounts {
        &mut self.links[from * self.ranks + to]
    }
}

/// Written by one worker, on a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct WorkerCounts {
    epoch: AtomicU64,
    instructions: AtomicU64,
}

/// The counts of all workers, as far as they have published them.
#[derive(Debug)]
pub(crate) struct PublishedCounts(Vec<WorkerCounts>);

impl PublishedCounts {
    pub(crate) fn new<'t>(tallies: impl Iterator<Item = &'t Tally>) -> PublishedCounts {
        let published = |t: &Tally| WorkerCounts { epoch: t.epoch.into(), ..WorkerCounts::default() };
        PublishedCounts(tallies.map(published).collect())
    }

    pub(crate) fn workers(&self) -> usize {
        self.0.len()
    }

    /// The sum of the changes that all workers have published.
    pub(crate) fn published_epoch(&self) -> u64 {
        self.0.iter().map(|published| published.epoch.load(Ordering::Acquire)).sum()
    }

    /// Returns true if there is only one worker.
    #[inline]
    pub(crate) fn alone(&self) -> bool {
        self.0.len() == 1
    }

    pub(crate) fn publish(&self, worker: usize, tally: &Tally) {
        let own = &self.0[worker];
        own.instructions.store(tally.instructions(), Ordering::Relaxed);
        own.epoch.store(tally.epoch, Ordering::Release);
    }

    /// The sum over all workers but one.
    fn others(&self, worker: usize, count: impl Fn(&WorkerCounts) -> u64) -> u64 {
        let (before, from) = self.0.split_at(worker);
        before.iter().chain(&from[1..]).map(count).sum()
    }

    /// The machine's epoch as a worker knows it.
    pub(crate) fn epoch(&self, worker: usize, tally: &Tally) -> u64 {
        tally.epoch + self.others(worker, |published| published.epoch.load(Ordering::Acquire))
    }

    /// Instructions of warps of all workers.
    pub(crate) fn instructions(&self, worker: usize, tally: &Tally) -> u64 {
        tally.instructions() + self.others(worker, |published| published.instructions.load(Ordering::Relaxed))
    }
}
