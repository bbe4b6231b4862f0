//! Calls that are captured once and launched again and again, without the host's work for each.

use crate::communicator::Group;
use crate::error::Error;
use crate::launch::Queued;
use crate::world::{Shared, Start, State, World};
use std::collections::BTreeMap;
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
        let before: BTreeMap<u64, Vec<usize>> = state
            .groups
            .iter()
            .map(|(&id, group)| (id, group.captured.iter().map(Vec::len).collect()))
            .collect();
        state.gpus.begin_capture()?;
        state.capturing = true;
        drop(state);
        let mut capture = Capture { shared: &self.shared, before: Some(before) };
        let enqueued = calls();
        let Some(Captured { number, missing, calls }) = capture.end() else { return Err(Error::NoGroup) };
        match (number, enqueued.err().or(missing)) {
            (Ok(number), None) => Ok(Graph { shared: self.shared.clone(), number, calls }),
            (number, error) => {
                self.shared.lock().uncapture(number.as_ref().ok(), &calls);
                Err(error.or(number.err()).unwrap_or(Error::NoGroup))
            }
        }
    }
}

const CAPTURE: &str = "capture calls";

/// A capture under way. It ends also where what makes the calls panics.
struct Capture<'a> {
    shared: &'a Shared,
    /// By group, how many calls of each rank had been captured before; `None` once it has ended.
    before: Option<BTreeMap<u64, Vec<usize>>>,
}

/// What was captured.
struct Captured {
    number: Result<u64, Error>,
    /// Ranks that were left out.
    missing: Option<Error>,
    /// As in [`Graph`].
    calls: Vec<(u64, Vec<Vec<Queued>>)>,
}

impl Capture<'_> {
    fn end(&mut self) -> Option<Captured> {
        let before = self.before.take()?;
        let mut state = self.shared.lock();
        state.capturing = false;
        let number = state.gpus.end_capture();
        let mut captured = Vec::new();
        let State { gpus, groups, .. } = &mut *state;
        let missing = groups.values().find_map(Group::missing);
        for (&id, group) in groups.iter_mut() {
            // Where calls start when all ranks have queued them, or later, they are in the queue.
            let queued = group.queue.iter_mut().map(|queue| queue.drain(..).collect::<Vec<_>>());
            let queued: Vec<_> = queued.collect();
            let starts = gpus.start() != Start::WhenSynchronized;
            if !starts {
                group.captured.iter_mut().zip(queued).for_each(|(to, calls)| to.extend(calls));
            }
            // A group may have been made meanwhile.
            let begin = |rank: usize| before.get(&id).map_or(0, |lengths| lengths[rank]);
            let of = |(rank, list): (usize, &Vec<Queued>)| list[begin(rank)..].to_vec();
            let calls: Vec<Vec<Queued>> = group.captured.iter().enumerate().map(of).collect();
            if starts {
                // They have not started after all.
                group.started.iter_mut().zip(&calls).for_each(|(n, calls)| *n -= calls.len() as u64);
            }
            if calls.iter().any(|calls| !calls.is_empty()) {
                captured.push((id, calls));
            }
        }
        Some(Captured { number, missing, calls: captured })
    }
}

impl Drop for Capture<'_> {
    fn drop(&mut self) {
        if let Some(Captured { number, calls, .. }) = self.end() {
            self.shared.lock().uncapture(number.as_ref().ok(), &calls);
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

impl State {
    /// Forgets captured calls, the last ones of their groups, and the graph that they have gone into.
    fn uncapture(&mut self, number: Option<&u64>, calls: &[(u64, Vec<Vec<Queued>>)]) {
        if let Some(&number) = number {
            self.gpus.forget(number);
        }
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
