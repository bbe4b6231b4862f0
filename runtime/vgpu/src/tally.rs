//! What one worker counts while its warps run.

/// What went over the link from one rank to the memory of another (or its own).
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
}

impl std::ops::AddAssign for LinkStatistics {
    fn add_assign(&mut self, other: LinkStatistics) {
        self.loads += other.loads;
        self.stores += other.stores;
        self.atomics += other.atomics;
        self.bytes_loaded += other.bytes_loaded;
        self.bytes_stored += other.bytes_stored;
    }
}

/// The counts of a worker, on cache lines of their own.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Tally {
    /// Counts every change of a value in memory, of any kind, and whatever else can end a wait.
    pub(crate) epoch: u64,
    /// First watched address that was written since the last look.
    pub(crate) watch_hit: Option<u64>,
    /// Instructions of warps and lanes, and turns that every live warp had.
    pub(crate) instructions: u64,
    pub(crate) lane_instructions: u64,
    pub(crate) rounds: u64,
    /// By accessing rank and accessed one.
    pub(crate) links: Vec<LinkStatistics>,
    ranks: usize,
}

impl Tally {
    pub(crate) fn new(ranks: usize) -> Tally {
        Tally {
            epoch: 0,
            watch_hit: None,
            instructions: 0,
            lane_instructions: 0,
            rounds: 0,
            links: vec![LinkStatistics::default(); ranks * ranks],
            ranks,
        }
    }

    /// Begins the counts of a run. Changes are counted through all runs, so that a warp that was stopped in a wait
    /// does not take what the host has written meanwhile for nothing.
    pub(crate) fn restart(&mut self) {
        (self.watch_hit, self.instructions, self.lane_instructions, self.rounds) = (None, 0, 0, 0);
        self.links.fill(LinkStatistics::default());
    }

    #[inline]
    pub(crate) fn link(&mut self, from: usize, to: usize) -> &mut LinkStatistics {
        &mut self.links[from * self.ranks + to]
    }
}
