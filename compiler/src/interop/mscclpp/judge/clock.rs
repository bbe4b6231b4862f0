//! Knowledge of accesses that are over: vector clocks by thread block, and single tasks beyond.

use crate::diagnostic::Loc;
use crate::interop::mscclpp::lane::Lane;
use rustc_hash::FxHashMap;

/// The accesses that are over.
#[derive(Clone, Debug)]
pub(super) struct Known {
    /// Phases, by clock.
    pub(super) phases: Vec<u32>,
    /// Tasks beyond, with their clock and phase; ascending.
    tasks: Vec<Stamp>,
}

/// The time of an access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Stamp {
    /// The block that makes it.
    pub(super) block: usize,
    /// The clock that ends it: of its block, or none's, where it goes on beside the block.
    pub(super) clock: usize,
    pub(super) phase: u32,
    pub(super) task: u32,
    /// The call among those that are judged.
    pub(super) call: u32,
    pub(super) loc: Loc,
    /// The threads that make it.
    pub(super) lane: Lane,
}

impl Known {
    pub(super) fn new(clocks: usize) -> Known {
        Known { phases: vec![0; clocks], tasks: Vec::new() }
    }

    pub(super) fn covers(&self, stamp: &Stamp) -> bool {
        self.phases[stamp.clock] > stamp.phase || self.place(stamp.task).is_ok()
    }

    /// The place of a task, or that where it is due.
    fn place(&self, task: u32) -> Result<usize, usize> {
        self.tasks.binary_search_by_key(&task, |known| known.task)
    }

    pub(super) fn add(&mut self, stamp: Stamp) {
        if self.phases[stamp.clock] > stamp.phase {
            return;
        }
        if let Err(place) = self.place(stamp.task) {
            self.tasks.insert(place, stamp);
        }
    }

    pub(super) fn join(&mut self, other: &Known) {
        for (known, more) in self.phases.iter_mut().zip(&other.phases) {
            *known = (*known).max(*more);
        }
        let phases = &self.phases;
        let beyond = |stamp: &Stamp| phases[stamp.clock] <= stamp.phase;
        if other.tasks.iter().all(|stamp| !beyond(stamp) || self.place(stamp.task).is_ok()) {
            self.tasks.retain(beyond);
            return;
        }
        let mut tasks = Vec::with_capacity(self.tasks.len() + other.tasks.len());
        let (mut own, mut others) = (self.tasks.iter().peekable(), other.tasks.iter().peekable());
        loop {
            let next = match (own.peek(), others.peek()) {
                (Some(one), Some(two)) if one.task == two.task => others.next().and_then(|_| own.next()),
                (Some(one), Some(two)) if one.task < two.task => own.next(),
                (Some(_), None) => own.next(),
                (_, Some(_)) => others.next(),
                (None, None) => break,
            };
            tasks.extend(next.filter(|stamp| beyond(stamp)));
        }
        self.tasks = tasks;
    }
}

/// The knowledge of a block or thread: the accesses of every sort that are over, and the reads.
#[derive(Clone, Debug)]
pub(super) struct Clock {
    pub(super) done: Known,
    pub(super) read: Known,
}

impl Clock {
    pub(super) fn new(clocks: usize) -> Clock {
        Clock { done: Known::new(clocks), read: Known::new(clocks) }
    }

    pub(super) fn join(&mut self, other: &Clock) {
        self.done.join(&other.done);
        self.read.join(&other.read);
    }

    pub(super) fn add(&mut self, stamp: Stamp) {
        self.done.add(stamp);
        self.read.add(stamp);
    }

    /// Both know of a phase.
    pub(super) fn reach(&mut self, clock: usize, phase: u32) {
        self.done.phases[clock] = phase;
        self.read.phases[clock] = phase;
    }
}

/// The knowledge of a block and of its threads.
#[derive(Clone, Debug)]
pub(super) struct BlockClock {
    pub(super) clock: Clock,
    /// The knowledge that single threads have gained in this phase; `None` for all of them.
    pub(super) threads: FxHashMap<Option<u32>, Clock>,
    /// The knowledge that packets have brought in this phase, word by word.
    pub(super) heard: Option<Known>,
    /// The puts of the block by port that go on, with their channels.
    pub(super) ported: Vec<(Vec<u32>, Stamp)>,
}

impl BlockClock {
    pub(super) fn new(clocks: usize) -> BlockClock {
        BlockClock {
            clock: Clock::new(clocks),
            threads: FxHashMap::default(),
            heard: None,
            ported: Vec::new(),
        }
    }

    /// The threads wait for each other.
    pub(super) fn sync(&mut self, own: usize) {
        for (_, clock) in self.threads.drain() {
            self.clock.join(&clock);
        }
        if let Some(heard) = self.heard.take() {
            self.clock.read.join(&heard);
        }
        let next = self.clock.done.phases[own] + 1;
        self.clock.reach(own, next);
    }
}
