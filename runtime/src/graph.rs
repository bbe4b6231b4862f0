//! Calls that are captured once and launched again and again, without the host's work for each.

use crate::communicator::Group;
use crate::error::Error;
use crate::launch::Queued;
use crate::world::{Shared, Start, State, World};
use std::fmt;
use std::sync::Arc;

/// Captured calls of all ranks of a world: on real GPUs a CUDA graph a rank. Launching it is a call of each rank, in the
/// order of capture; the windows that the calls use stay as long as their communicator.
pub struct Graph {
    shared: Arc<Shared>,
    /// What the GPUs know it by.
    number: u64,
    /// By group: each rank's calls.
    calls: Vec<(u64, Vec<Vec<Queued>>)>,
}

impl World {
    /// Captures what `calls` enqueues, on every rank the same, without running it. Streams of the caller's are not
    /// captured by this: begin a capture on them, and [`crate::Kernel::enqueue_on`] goes into it.
    ///
    /// # Errors
    /// What `calls` gives; [`Error::InFlight`] where calls run or are queued; [`Error::NotEnqueued`] where `calls` leaves
    /// ranks out; nothing is captured then.
    pub fn capture(&self, calls: impl FnOnce() -> Result<(), Error>) -> Result<Graph, Error> {
        let mut state = self.shared.lock();
        state.quiet(CAPTURE)?;
        if state.groups.values().any(|group| group.queue.iter().any(|queue| !queue.is_empty())) {
            return Err(Error::InFlight { doing: CAPTURE });
        }
        let before: Vec<(u64, Vec<usize>)> = state
            .groups
            .iter()
            .map(|(&id, group)| (id, group.captured.iter().map(Vec::len).collect()))
            .collect();
        state.gpus.begin_capture()?;
        drop(state);
        let enqueued = calls();
        let mut state = self.shared.lock();
        let number = state.gpus.end_capture();
        let mut captured = Vec::new();
        let State { gpus, groups, .. } = &mut *state;
        let missing = groups.values().find_map(Group::missing);
        for (id, lengths) in before {
            let Some(group) = groups.get_mut(&id) else { continue };
            // Where calls start when all ranks have queued them, or later, they are in the queue.
            let queued = group.queue.iter_mut().map(|queue| queue.drain(..).collect::<Vec<_>>());
            let queued: Vec<_> = queued.collect();
            let starts = gpus.start() != Start::WhenSynchronized;
            if !starts {
                group.captured.iter_mut().zip(queued).for_each(|(to, calls)| to.extend(calls));
            }
            let of = |(list, from): (&Vec<Queued>, usize)| list[from..].to_vec();
            let calls: Vec<Vec<Queued>> = group.captured.iter().zip(lengths).map(of).collect();
            if starts {
                // They have not started after all.
                group.started.iter_mut().zip(&calls).for_each(|(n, calls)| *n -= calls.len() as u64);
            }
            if calls.iter().any(|calls| !calls.is_empty()) {
                captured.push((id, calls));
            }
        }
        let error = enqueued.err().or(missing);
        match (number, error) {
            (Ok(number), None) => Ok(Graph { shared: self.shared.clone(), number, calls: captured }),
            (number, error) => {
                if let Ok(number) = &number {
                    state.gpus.forget(*number);
                }
                state.uncapture(&captured);
                Err(error.or(number.err()).unwrap_or(Error::NoGroup))
            }
        }
    }
}

const CAPTURE: &str = "capture calls";

impl Graph {
    /// Launches the calls; [`World::synchronize`] waits for them, as for any.
    ///
    /// # Errors
    /// [`Error::Poisoned`] where a failure has ended a communicator, [`Error::NoGroup`] where one is there no more,
    /// [`Error::Cuda`].
    pub fn launch(&self) -> Result<(), Error> {
        let mut state = self.shared.lock();
        for (id, _) in &self.calls {
            if let Some(failure) = &state.groups.get(id).ok_or(Error::NoGroup)?.failed {
                return Err(Error::Poisoned(failure.clone()));
            }
        }
        self.shared.reported(&mut state)?;
        let State { gpus, groups, .. } = &mut *state;
        let ids: Vec<u64> = self.calls.iter().map(|(id, _)| *id).collect();
        gpus.replay(self.number, &ids)?;
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

impl State {
    /// Forgets captured calls: the last ones of their groups.
    fn uncapture(&mut self, calls: &[(u64, Vec<Vec<Queued>>)]) {
        for (id, calls) in calls {
            let Some(group) = self.groups.get_mut(id) else { continue };
            for (list, calls) in group.captured.iter_mut().zip(calls) {
                list.truncate(list.len().saturating_sub(calls.len()));
            }
        }
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.gpus.forget(self.number);
    }
}

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Graph").field("calls", &self.calls()).finish_non_exhaustive()
    }
}
