//! Calls that are captured once and launched again and again, without the host's work for each.

use crate::error::Error;
use crate::gpus::Start;
use crate::state::{Freed, Group, Queued, Shared, State};
use crate::world::World;
use std::fmt;
use std::mem;
use std::sync::Arc;

/// Captured calls of all ranks of a world: on real GPUs a CUDA graph a rank. Launching it is a call of each rank, in the
/// order of capture; the windows that the calls use stay as long as it does.
pub struct Graph {
    shared: Arc<Shared>,
    /// The number that the GPUs know it by.
    number: u64,
    calls: Captured,
}

/// By group: each rank's calls.
type Captured = Vec<(u64, Arc<Vec<Vec<Queued>>>)>;

impl World {
    /// Captures what `calls` enqueues, on every rank the same, without running it. Streams of the caller's are not
    /// captured by this: begin a capture on them, and [`crate::LoadedKernel::enqueue_on`] goes into it; it says what is left to the
    /// caller then.
    ///
    /// # Errors
    /// What `calls` gives; [`Error::InFlight`] where calls run or are queued; [`Error::NotEnqueued`] where `calls` leaves
    /// ranks out; nothing is captured then. [`Error::Capturing`] within another capture.
    pub fn capture(&self, calls: impl FnOnce() -> Result<(), Error>) -> Result<Graph, Error> {
        let mut state = self.shared.lock();
        if state.capturing {
            return Err(Error::Capturing { doing: CAPTURE });
        }
        state.quiet(CAPTURE)?;
        if state.groups.values().any(|group| group.queue.iter().any(|queue| !queue.is_empty())) {
            return Err(Error::InFlight { doing: CAPTURE });
        }
        state.gpus.begin_capture()?;
        state.capturing = true;
        drop(state);
        let mut capture = Capture { shared: &self.shared, ended: false };
        let enqueued = calls();
        // A graph that is not given back is forgotten.
        match capture.end() {
            (Ok(graph), missing) => enqueued.err().or(missing).map_or(Ok(graph), Err),
            (Err(error), missing) => Err(enqueued.err().or(missing).unwrap_or(error)),
        }
    }
}

const CAPTURE: &str = "capture calls";

/// A capture under way. It ends also where what makes the calls panics.
struct Capture<'a> {
    shared: &'a Arc<Shared>,
    ended: bool,
}

impl Capture<'_> {
    /// Returns the captured calls, and an error that names ranks that were left out.
    fn end(&mut self) -> (Result<Graph, Error>, Option<Error>) {
        self.ended = true;
        let mut state = self.shared.lock();
        state.capturing = false;
        let number = state.gpus.end_capture();
        let State { gpus, groups, .. } = &mut *state;
        let missing = groups.values().find_map(Group::missing);
        let mut captured = Captured::new();
        for (&id, group) in groups.iter_mut() {
            // Where calls start when all ranks have queued them, or later, they are in the queue.
            let queued = group.queue.iter_mut().map(|queue| queue.drain(..).collect());
            let queued: Vec<Vec<Queued>> = queued.collect();
            let mut calls: Vec<Vec<Queued>> = group.recorded.iter_mut().map(mem::take).collect();
            if gpus.start() == Start::WhenSynchronized {
                calls = queued;
            } else {
                // They have not started after all.
                group.started.iter_mut().zip(&calls).for_each(|(n, calls)| *n -= calls.len() as u64);
            }
            if calls.iter().any(|calls| !calls.is_empty()) {
                let calls = Arc::new(calls);
                group.graphs.push(Arc::downgrade(&calls));
                captured.push((id, calls));
            }
        }
        drop(state);
        match number {
            Ok(number) => (Ok(Graph { shared: self.shared.clone(), number, calls: captured }), missing),
            Err(error) => {
                self.shared.release(captured);
                (Err(error), missing)
            }
        }
    }
}

impl Drop for Capture<'_> {
    fn drop(&mut self) {
        if !self.ended {
            drop(self.end());
        }
    }
}

impl Graph {
    /// Launches the calls; [`World::synchronize`] waits for them, as for any.
    ///
    /// # Errors
    /// [`Error::Poisoned`] where a failure has ended a communicator, [`Error::NoGroup`] where one is there no more,
    /// [`Error::Capturing`] in a capture, [`Error::Failed`] where it fails: then every communicator of the world has ended.
    pub fn launch(&self) -> Result<(), Error> {
        let mut state = self.shared.lock();
        if state.capturing {
            return Err(Error::Capturing { doing: "launch a graph" });
        }
        for (id, _) in &self.calls {
            if let Some(failure) = &state.groups.get(id).ok_or(Error::NoGroup)?.failed {
                return Err(Error::Poisoned(failure.clone()));
            }
        }
        self.shared.reported(&mut state)?;
        let State { gpus, groups, .. } = &mut *state;
        let ids: Vec<u64> = self.calls.iter().map(|(id, _)| *id).collect();
        for (&id, group) in groups.iter_mut().filter(|(id, _)| ids.contains(id)) {
            group.forget_old(id, &**gpus);
        }
        if let Err(trouble) = gpus.replay(self.number, &ids) {
            return Err(self.shared.ended(&mut state, trouble));
        }
        let queues = gpus.start() == Start::WhenSynchronized;
        for (id, calls) in &self.calls {
            let Some(group) = groups.get_mut(id) else { continue };
            for (rank, calls) in calls.iter().enumerate() {
                if queues {
                    group.queue[rank].extend(calls.iter().cloned());
                } else {
                    group.flying[rank].extend(calls.iter().cloned());
                    group.started[rank] += calls.len() as u64;
                }
            }
        }
        Ok(())
    }

    /// Calls of each rank.
    pub fn calls(&self) -> usize {
        self.calls.iter().map(|(_, calls)| calls.first().map_or(0, Vec::len)).sum()
    }
}

impl Shared {
    /// Gives up captured calls, and what only they needed.
    fn release(&self, calls: Captured) {
        for (group, calls) in calls {
            drop(calls);
            self.free(Freed::Graph { group });
        }
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        self.shared.lock().gpus.forget(self.number);
        self.shared.release(mem::take(&mut self.calls));
    }
}

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Graph").field("calls", &self.calls()).finish_non_exhaustive()
    }
}
