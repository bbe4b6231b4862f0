//! The state that all handles of a world share: its GPUs, and the memory and calls of each group of communicators.
//!
//! ```text
//! Queued --Shared::advance--> flying --Shared::synchronize--> ended, or GroupCalls --explain--> Failure
//! ```

mod call;

mod group;

mod load;

mod explain;

mod waits;

mod flight;

pub(crate) use call::{Queued, View};
pub use explain::LOCAL_COPY;
pub use group::REMEMBERED;
pub(crate) use group::{Group, GroupHandle, Slot};
pub(crate) use load::LoadCache;
pub use load::LoadTimes;

use crate::error::{Error, Failure};
use crate::gpus::{Gpus, PATIENCE, WorldKind, WorldOptions};
use quadrille_compiler::kernel::abi::{CounterLayout, FifoLayout};
use quadrille_compiler::kernel::widths::Widths;
use quadrille_compiler::program::ids::Rank;
use quadrille_compiler::schedule::domain::Domain;
use std::collections::{BTreeMap, VecDeque};
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A world and what belongs to it. Handles hold this; it holds no handle.
pub(crate) struct Shared {
    pub(crate) ranks: u32,
    pub(crate) options: WorldOptions,
    pub(crate) kind: WorldKind,
    pub(crate) domain: Domain,
    pub(crate) state: Mutex<State>,
    /// Memory and groups that handles gave up, freed when the state is locked next: a handle can be dropped while it is locked.
    pub(crate) freed: Mutex<Vec<Freed>>,
    /// Shared by worlds that differ in behaviour alone.
    pub(crate) cache: Arc<Mutex<LoadCache>>,
}

pub(crate) struct State {
    pub(crate) gpus: Box<dyn Gpus>,
    pub(crate) groups: BTreeMap<u64, Group>,
    pub(crate) next: u64,
    /// The GPUs were stopped in the middle of calls and must be replaced.
    pub(crate) broken: bool,
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
