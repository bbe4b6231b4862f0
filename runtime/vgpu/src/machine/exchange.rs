//! The exchange between the workers of a machine, each of which has a thread of its own.
//!
//! A worker publishes its counts after every round. The *epoch* of the machine is the sum of the changes that all
//! workers have published, one's own up to date.
//!
//! Hangs. A worker whose warps all repeat or wait (see `hang`) votes for the epoch in which they do. When every worker
//! that still runs has voted for one epoch, and the published changes sum up to just that epoch, then nobody has
//! changed anything since the earliest of the observations behind these votes: a change is published before its
//! worker's next vote. One doubt is left: a store counts as a change if it differs from what was there when it was
//! executed, so a store that raced with a counted one may have gone uncounted. Therefore all forget what they have
//! observed and vote once more; stores of before that time are over then.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::execute::counts::{PublishedCounts, Tally};
use crate::fault::Fault;

/// The reason why workers stopped before all work was done.
#[derive(Debug)]
pub(crate) enum StopReason {
    /// Address of the store.
    Watched(u64),
    Fault(Fault),
    Hang,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Vote {
    None,
    Repeats(u64),
    Done,
}

#[derive(Debug)]
struct Votes {
    votes: Vec<Vote>,
    /// The epoch that all have voted for once.
    once: Option<u64>,
    stop: Option<StopReason>,
}

#[derive(Debug)]
pub(crate) struct WorkerExchange {
    pub(crate) counts: PublishedCounts,
    stopped: AtomicBool,
    /// Counts the times that all were asked to vote anew.
    ballot: AtomicU64,
    votes: Mutex<Votes>,
}

impl WorkerExchange {
    pub(crate) fn new<'t>(tallies: impl Iterator<Item = &'t Tally>) -> WorkerExchange {
        let counts = PublishedCounts::new(tallies);
        let votes = Votes { votes: vec![Vote::None; counts.workers()], once: None, stop: None };
        WorkerExchange { counts, stopped: false.into(), ballot: 0.into(), votes: votes.into() }
    }

    fn votes(&self) -> MutexGuard<'_, Votes> {
        self.votes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if some worker has stopped all.
    #[inline]
    pub(crate) fn stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Stops all workers; the first reason counts.
    pub(crate) fn stop(&self, why: StopReason) {
        self.votes().stop.get_or_insert(why);
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Takes note that a worker, whose counts are published, has nothing left to do.
    pub(crate) fn done(&self, worker: usize) {
        self.votes().votes[worker] = Vote::Done;
    }

    pub(crate) fn ballot(&self) -> u64 {
        self.ballot.load(Ordering::Acquire)
    }

    /// Votes in a ballot for a worker, whose counts are published, that all its warps wait or repeat in this epoch. Returns
    /// true if the whole machine hangs.
    pub(crate) fn vote(&self, worker: usize, ballot: u64, epoch: u64) -> bool {
        if self.counts.alone() {
            return true;
        }
        let mut votes = self.votes();
        if self.ballot() != ballot {
            return false;
        }
        votes.votes[worker] = Vote::Repeats(epoch);
        let agree = votes.votes.iter().all(|&vote| vote == Vote::Done || vote == Vote::Repeats(epoch));
        if !agree || self.counts.published_epoch() != epoch {
            return false;
        }
        if votes.once == Some(epoch) {
            return true;
        }
        votes.once = Some(epoch);
        votes.votes.iter_mut().filter(|vote| **vote != Vote::Done).for_each(|vote| *vote = Vote::None);
        self.ballot.store(ballot + 1, Ordering::Release);
        false
    }

    /// The reason why the run was stopped, if it was.
    pub(crate) fn into_stop(self) -> Option<StopReason> {
        self.votes.into_inner().unwrap_or_else(PoisonError::into_inner).stop
    }
}

/// Stops all workers if the one that holds this panics: nobody waits for it.
pub(crate) struct StopOnPanic<'b>(pub(crate) &'b WorkerExchange);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stopped.store(true, Ordering::Relaxed);
        }
    }
}
