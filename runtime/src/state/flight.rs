//! Calls under way: started when their ranks have queued them, waited for, and told of when they fail.

use super::call::{Queued, View};
use super::explain::{GroupCalls, explain};
use super::group::Group;
use super::{Shared, State};
use crate::error::{CallProblem, Cause, Error, Failure};
use crate::gpus::{CallProgress, Gpus, Loaded, On, Start, Statistics, Trouble, multicast_label};
use quadrille_compiler::kernel::abi::{FifoLayout, StatusRecord};
use quadrille_compiler::program::ids::{Buffer, Rank};
use quadrille_vgpu::Fault;
use std::collections::VecDeque;
use std::sync::{MutexGuard, Weak};
use std::thread;
use std::time::{Duration, Instant};

/// Between two looks at calls that run.
const PAUSE: Duration = Duration::from_micros(20);

/// The fault that ended calls; none if their status records tell the cause.
type Fate = Option<Fault>;

impl Shared {
    /// Starts every call that all ranks have queued, group by group and in order, and waits until those that have started
    /// have ended; then says which others are missing.
    pub(crate) fn synchronize(&self) -> Result<Statistics, Error> {
        let mut state = self.lock();
        if state.capturing {
            return Err(Error::Capturing { doing: "wait for calls" });
        }
        if state.gpus.start() == Start::WhenSynchronized {
            state.reserve(&self.fifo_layout())?;
            if let Err(trouble) = state.launch_ready(false) {
                return Err(self.ended(&mut state, trouble));
            }
        } else if !state.has_reports()
            && let Some(missing) = state.groups.values().find_map(Group::missing)
        {
            // What some ranks have not started may keep the others' kernels waiting. Where one has given up already, who is
            // missing can come no more.
            return Err(missing);
        }
        self.wait(state)
    }

    /// Runs every call of every rank, also where others have queued none: as on GPUs that start calls at once.
    pub(crate) fn synchronize_alone(&self) -> Result<Statistics, Error> {
        let mut state = self.lock();
        state.reserve(&self.fifo_layout())?;
        match state.launch_ready(true) {
            Ok(()) => self.wait(state),
            Err(trouble) => Err(self.ended(&mut state, trouble)),
        }
    }

    fn wait<'s>(&'s self, mut state: MutexGuard<'s, State>) -> Result<Statistics, Error> {
        let mut told: Option<Instant> = None;
        loop {
            match state.gpus.progress() {
                Ok(CallProgress::Running) => {
                    if state.has_reports() {
                        state.gpus.abort();
                        if told.get_or_insert_with(Instant::now).elapsed() > self.leaving() {
                            return Err(self.failed(&mut state, None));
                        }
                    }
                    drop(state);
                    thread::sleep(PAUSE);
                    state = self.lock();
                }
                Ok(CallProgress::Done(statistics)) if !state.has_reports() => {
                    for group in state.groups.values_mut() {
                        group.flying.iter_mut().for_each(VecDeque::clear);
                    }
                    return state.groups.values().find_map(Group::missing).map_or(Ok(*statistics), Err);
                }
                Ok(CallProgress::Done(_) | CallProgress::Stopped) => {
                    return Err(self.failed(&mut state, None));
                }
                Err(trouble) => return Err(self.ended(&mut state, trouble)),
            }
        }
    }

    /// Ends every group, as the driver or a kernel has failed.
    pub(crate) fn ended(&self, state: &mut State, trouble: Trouble) -> Error {
        match trouble {
            Trouble::Fault(fault) => self.failed(state, Some(fault)),
            // A context in which a kernel has failed does nothing any more.
            Trouble::Error(Error::Cuda(error)) => {
                let failure = Failure { cause: Cause::Driver { error }, calls: Vec::new() };
                Error::Failed(state.fail(failure))
            }
            Trouble::Error(error) => error,
        }
    }

    /// Ends every group, as calls have failed.
    pub(crate) fn failed(&self, state: &mut State, fate: Fate) -> Error {
        let batches = state.batches();
        let layouts = (self.counter_layout(), self.fifo_layout());
        let records = state.records(&batches);
        let failure = explain(layouts, self.patience(), &batches, &records, fate);
        Error::Failed(state.fail(failure))
    }

    /// An error where a kernel has given up: all have left then, or are past hope, and their memory stays.
    pub(crate) fn reported(&self, state: &mut State) -> Result<(), Error> {
        if !state.has_reports() {
            return Ok(());
        }
        state.gpus.abort();
        let told = Instant::now();
        while let Ok(CallProgress::Running) = state.gpus.progress()
            && told.elapsed() < self.leaving()
        {
            thread::sleep(PAUSE);
        }
        Err(self.failed(state, None))
    }

    /// Starts what can start now that `rank` has queued a call, and takes that call back where it cannot be started.
    pub(crate) fn advance(&self, state: &mut State, id: u64, rank: Rank) -> Result<(), Error> {
        let start = state.gpus.start();
        if start != Start::WhenSynchronized {
            self.reported(state)?;
        }
        let started = match start {
            Start::WhenSynchronized if state.gpus.together() => state.alike(id, rank),
            Start::WhenSynchronized => return Ok(()),
            Start::Together => state.start_together(id, &self.fifo_layout()),
            _ => state.start(id, rank, &[rank], &self.fifo_layout()),
        };
        started.inspect_err(|_| {
            if let Some(group) = state.groups.get_mut(&id) {
                group.queue[rank.0 as usize].pop_back();
            }
        })
    }
}

impl State {
    /// Makes what queued calls need: FIFOs, scratch, multicast ranges of the windows that go through the switch. Nothing is
    /// running that uses them.
    fn reserve(&mut self, fifos: &FifoLayout) -> Result<(), Error> {
        let State { gpus, groups, .. } = self;
        for group in groups.values_mut() {
            let calls: Vec<Queued> = group.queue.iter().flatten().cloned().collect();
            for call in calls {
                group.provide(&mut **gpus, &call, fifos)?;
            }
        }
        Ok(())
    }

    /// Launches what every rank of a group has queued, or all that any has.
    fn launch_ready(&mut self, all: bool) -> Result<(), Trouble> {
        let State { gpus, groups, .. } = self;
        for (&id, group) in groups.iter_mut() {
            let ready = group.queue.iter().map(VecDeque::len).min().unwrap_or(0);
            for rank in 0..group.queue.len() {
                let ready = if all { group.queue[rank].len() } else { ready };
                let calls: Vec<Queued> = group.queue[rank].drain(..ready).collect();
                group.started[rank] += ready as u64;
                group.flying[rank].extend(calls);
            }
            let launching = if gpus.together() { 1 } else { group.queue.len() };
            for rank in 0..launching {
                for call in &group.flying[rank] {
                    let params = group.params(call, rank).encode();
                    let on = On { group: id, stream: None };
                    gpus.launch(Rank(rank as u32), &call.program, params, on)?;
                }
            }
        }
        Ok(())
    }

    /// Fails if the call that `rank` has queued last cannot go into one launch with what others have queued.
    fn alike(&self, id: u64, rank: Rank) -> Result<(), Error> {
        let Some(group) = self.groups.get(&id) else { return Err(Error::NoGroup) };
        let Some((number, own)) = group.queue[rank.0 as usize].iter().enumerate().next_back() else {
            return Ok(());
        };
        let of_peer =
            |(peer, queue): (Rank, &VecDeque<Queued>)| unlike((rank, own), (peer, queue.get(number)?));
        (0..).map(Rank).zip(&group.queue).find_map(of_peer).map_or(Ok(()), Err)
    }

    /// Starts calls that each rank has queued, in one launch each.
    fn start_together(&mut self, id: u64, fifos: &FifoLayout) -> Result<(), Error> {
        while let Some(group) = self.groups.get(&id)
            && let Some(calls) = group.queue.iter().map(VecDeque::front).collect::<Option<Vec<_>>>()
            && let Some((first, others)) = calls.split_first()
        {
            if let Some(error) = others
                .iter()
                .zip((1..).map(Rank))
                .find_map(|(call, peer)| unlike((Rank(0), first), (peer, call)))
            {
                return Err(error);
            }
            let all: Vec<Rank> = (0..calls.len() as u32).map(Rank).collect();
            self.start(id, Rank(0), &all, fifos)?;
        }
        Ok(())
    }

    /// Starts the next call of `ranks` by one launch, of `rank`.
    fn start(&mut self, id: u64, rank: Rank, ranks: &[Rank], fifos: &FifoLayout) -> Result<(), Error> {
        let Some(call) = self.groups.get(&id).and_then(|g| g.queue[rank.0 as usize].front()).cloned() else {
            return Ok(());
        };
        let problems = self.groups.get(&id).map_or(Vec::new(), |group| group.incomplete(&call));
        if !problems.is_empty() {
            return Err(Error::Call { program: call.program.name.clone(), rank, problems });
        }
        if self.groups.get(&id).is_some_and(|group| group.lacks(&call, fifos)) {
            self.quiet("make the scratch, FIFOs or multicast addresses that this call needs")?;
        }
        let State { gpus, groups, .. } = self;
        let Some(group) = groups.get_mut(&id) else { return Err(Error::NoGroup) };
        group.forget_old(id, &**gpus);
        group.provide(&mut **gpus, &call, fifos)?;
        let params = group.params(&call, rank.0 as usize).encode();
        let captured = gpus.launch(rank, &call.program, params, On { group: id, stream: call.stream })?;
        for rank in ranks.iter().map(|rank| rank.0 as usize) {
            let Some(call) = group.queue[rank].pop_front() else { continue };
            group.started[rank] += 1;
            group.latest = Some(call.clone());
            match (captured, call.stream) {
                (false, _) => group.flying[rank].push_back(call),
                (true, None) => group.recorded[rank].push(call),
                (true, Some(_)) if group.captured[rank].iter().any(|known| known.equals(&call)) => {}
                (true, Some(_)) => group.captured[rank].push(call),
            }
        }
        Ok(())
    }

    /// The calls under way, and those that graphs may have launched.
    fn batches(&self) -> Vec<GroupCalls> {
        let batch = |(&group, state): (&u64, &Group)| {
            let mut captured = state.captured.clone();
            for calls in state.graphs.iter().filter_map(Weak::upgrade) {
                captured
                    .iter_mut()
                    .zip(calls.iter())
                    .for_each(|(all, calls)| all.extend(calls.iter().cloned()));
            }
            let flying: Vec<Vec<Queued>> =
                state.flying.iter().map(|calls| calls.iter().cloned().collect()).collect();
            let first = state.started.iter().zip(&flying);
            let first = first.map(|(started, calls)| started.saturating_sub(calls.len() as u64)).collect();
            GroupCalls { group, captured, flying, first }
        };
        self.groups.iter().filter(|(_, group)| group.failed.is_none()).map(batch).collect()
    }

    /// Returns true if a kernel has given up.
    fn has_reports(&self) -> bool {
        let mut live = self.groups.values().filter(|group| group.failed.is_none());
        live.any(|group| group.has_report(&*self.gpus))
    }

    /// The status records that are not empty, each with the index of its batch.
    fn records(&self, batches: &[GroupCalls]) -> Vec<(usize, StatusRecord)> {
        let mut records = Vec::new();
        for (index, batch) in batches.iter().enumerate() {
            let status = self.groups.get(&batch.group).into_iter().flat_map(|group| &group.status);
            records.extend(status.filter_map(|&address| Some((index, self.gpus.status(address)?))));
        }
        records
    }
}

/// Returns the difference that keeps two ranks' calls from one launch.
fn unlike((rank, own): (Rank, &Queued), (peer, call): (Rank, &Queued)) -> Option<Error> {
    let problem = if call.hash() != own.hash() {
        CallProblem::Differs { own: Box::new(own.signature()), peer, theirs: Box::new(call.signature()) }
    } else if call.stream != own.stream {
        CallProblem::OtherStream { peer }
    } else {
        return None;
    };
    Some(Error::Call { program: own.program.name.clone(), rank, problems: vec![problem] })
}

impl Group {
    /// Returns true if a call needs memory that is not there yet.
    fn lacks(&self, call: &Queued, fifos: &FifoLayout) -> bool {
        let cuda = &call.program.cuda;
        let no_fifos = cuda.staged && self.fifos.bytes < fifos.bytes();
        let no_switch = || {
            let mut windows = call.views().filter_map(View::window);
            windows.any(|window| self.windows[window].multicast.is_none())
        };
        no_fifos || call.scratch_bytes() > self.scratch.bytes || (cuda.multicast && no_switch())
    }

    /// Windows that a call reaches on peers and that are not there on all of them.
    fn incomplete(&self, call: &Queued) -> Vec<CallProblem> {
        let Loaded { shape, cuda, .. } = &*call.program;
        let of_window = |(buffer, view): (Buffer, View)| {
            let slot = view.window().and_then(|window| self.windows.get(window))?;
            let lacks = |rank: &Rank| {
                shape.units(buffer, *rank) != 0
                    && slot.bytes != 0
                    && slot.addresses[rank.0 as usize].is_none()
            };
            let missing: Vec<Rank> = (0..shape.ranks).map(Rank).filter(lacks).collect();
            (!missing.is_empty()).then_some(CallProblem::NotEverywhere { buffer, missing })
        };
        if cuda.reaches_peers { call.buffers().filter_map(of_window).collect() } else { Vec::new() }
    }

    /// Makes the memory that a call needs.
    fn provide(&mut self, gpus: &mut dyn Gpus, call: &Queued, fifos: &FifoLayout) -> Result<(), Error> {
        if call.program.cuda.staged {
            self.make_fifos(gpus, fifos)?;
        }
        self.make_scratch(gpus, call.scratch_bytes())?;
        if call.program.cuda.multicast {
            for index in call.views().filter_map(View::window) {
                let slot = &mut self.windows[index];
                if slot.registered.contains(&true) {
                    return Err(Error::NoMulticast { window: index });
                }
                // Where a rank has no memory of a window, no program reaches all ranks' through the switch.
                let members: Option<Vec<u64>> = slot.addresses.iter().copied().collect();
                if let (None, Some(members)) = (slot.multicast, members) {
                    slot.multicast = Some(gpus.multicast(&members, slot.bytes, &multicast_label(index))?);
                }
            }
        }
        Ok(())
    }

    /// The first call that some ranks have made and others have not.
    pub(crate) fn missing(&self) -> Option<Error> {
        if self.failed.is_some() {
            return None;
        }
        let made = |rank: usize| self.started[rank] + self.queue[rank].len() as u64;
        let all = 0..self.queue.len();
        let call = all.clone().map(made).min()? + 1;
        let (missing, enqueued): (Vec<_>, Vec<_>) = all.partition(|&rank| made(rank) < call);
        let &first = enqueued.first()?;
        // Where it has started, it waits for the others, or it has done its part.
        let started = call.checked_sub(self.started[first] + 1);
        let found = match started {
            Some(behind) => self.queue[first].get(behind as usize),
            None => {
                let behind = (self.started[first] - call) as usize;
                let flying = &self.flying[first];
                flying.len().checked_sub(behind + 1).and_then(|at| flying.get(at))
            }
        };
        let program = found.or(self.latest.as_ref())?.signature();
        let ranks = |list: Vec<usize>| list.into_iter().map(|rank| Rank(rank as u32)).collect();
        Some(Error::NotEnqueued {
            call,
            program: Box::new(program),
            missing: ranks(missing),
            enqueued: ranks(enqueued),
        })
    }
}
