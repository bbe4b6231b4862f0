//! The state that the communicators of a group share: memory at the same place on every rank, and the calls of each.

use super::call::{Queued, View};
use super::{Freed, Shared};
use crate::error::{Error, Failure};
use crate::gpus::{COUNTERS, Gpus, Place, SCRATCH, WorldOptions};
use quadrille_compiler::kernel::abi::{FifoLayout, Params, StatusRecord};
use quadrille_compiler::program::ids::{Buffer, Rank};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Weak};

/// The number of started calls of a rank from which on ended ones are looked for and forgotten.
pub const REMEMBERED: usize = 64;

/// A handle that keeps a group alive.
pub(crate) struct GroupHandle {
    pub(crate) shared: Arc<Shared>,
    pub(crate) id: u64,
}

/// A group's state, in [`State`].
#[derive(Debug)]
pub(crate) struct Group {
    /// The failure that ended it.
    pub(crate) failed: Option<Arc<Failure>>,
    /// Each rank's counter region.
    pub(crate) counters: Symmetric,
    /// Address of each rank's status record.
    pub(crate) status: Vec<u64>,
    /// Address of each rank's abort word; 0 where waits are not bounded.
    pub(crate) abort: Vec<u64>,
    /// Nanoseconds that a wait may take; 0 for no bound.
    pub(crate) patience: u64,
    /// Each rank's FIFO region; none until a program needs them.
    pub(crate) fifos: Symmetric,
    /// Memory that programs use while a call runs; what it holds does not outlive the call.
    pub(crate) scratch: Symmetric,
    /// Scratch that was too small, and that captured calls use.
    pub(crate) outgrown: Vec<Symmetric>,
    pub(crate) windows: Vec<Slot>,
    /// Allocations of each rank so far.
    pub(crate) allocated: Vec<usize>,
    /// Calls of each rank that have not started.
    pub(crate) queue: Vec<VecDeque<Queued>>,
    /// Calls of each rank that have started and may still run.
    pub(crate) flying: Vec<VecDeque<Queued>>,
    /// Calls of each rank that went into graphs of callers', which may be launched at any time. Equal ones once.
    pub(crate) captured: Vec<Vec<Queued>>,
    /// Calls of each rank that go into the graph whose capture is under way.
    pub(crate) recorded: Vec<Vec<Queued>>,
    /// Those of our graphs, as long as these are there.
    pub(crate) graphs: Vec<Weak<Vec<Vec<Queued>>>>,
    /// Calls that each rank has started.
    pub(crate) started: Vec<u64>,
    /// The last one of them.
    pub(crate) latest: Option<Queued>,
}

/// Memory of equal size at the same place on every rank.
#[derive(Debug)]
pub(crate) struct Symmetric {
    pub(crate) bytes: u64,
    place: Option<Place>,
    /// Of each rank; 0 where there is none.
    pub(crate) addresses: Vec<u64>,
}

/// A symmetric window.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) bytes: u64,
    pub(crate) offset: u64,
    /// The first rank that allocated it.
    pub(crate) first: Rank,
    /// The place among the addresses of a rank; `None` if the window is empty.
    pub(crate) place: Option<Place>,
    /// Each rank's memory; `None` where the rank has not allocated it, or it is empty, or freed.
    pub(crate) addresses: Vec<Option<u64>>,
    /// Ranks whose memory is not ours.
    pub(crate) registered: Vec<bool>,
    /// Ranks that have freed it.
    pub(crate) freed: usize,
    /// The address of all of them, once a call has needed it.
    pub(crate) multicast: Option<u64>,
}

impl GroupHandle {
    /// The group, unless a failure has ended it.
    pub(crate) fn live<'a>(&self, groups: &'a mut BTreeMap<u64, Group>) -> Result<&'a mut Group, Error> {
        let group = groups.get_mut(&self.id).ok_or(Error::NoGroup)?;
        match &group.failed {
            Some(failure) => Err(Error::Poisoned(failure.clone())),
            None => Ok(group),
        }
    }
}

impl Group {
    /// A group with counters and status records.
    pub(crate) fn new(gpus: &mut dyn Gpus, shared: &Shared) -> Result<Group, Error> {
        let ranks = shared.ranks();
        let WorldOptions { counted, widths, .. } = *shared.options();
        let layout = shared.counter_layout();
        let mut group = Group {
            failed: None,
            counters: Symmetric::none(ranks),
            status: Vec::new(),
            abort: vec![0; ranks as usize],
            patience: 0,
            fifos: Symmetric::none(ranks),
            scratch: Symmetric::none(ranks),
            outgrown: Vec::new(),
            windows: Vec::new(),
            allocated: vec![0; ranks as usize],
            queue: vec![VecDeque::new(); ranks as usize],
            flying: vec![VecDeque::new(); ranks as usize],
            captured: vec![Vec::new(); ranks as usize],
            recorded: vec![Vec::new(); ranks as usize],
            graphs: Vec::new(),
            started: vec![0; ranks as usize],
            latest: None,
        };
        let made = group.counters.make(gpus, layout.bytes(), |gpus, at, bytes| {
            let region = gpus.alloc(at, bytes, COUNTERS, true)?;
            if counted != 0 {
                gpus.write(region, &layout.counted(counted, &widths))?;
            }
            Ok(region)
        });
        match made.and_then(|()| gpus.alloc_status()) {
            Ok(status) => {
                if let Some(patience) = shared.patience() {
                    // Half of what the clock counts: a deadline never wraps.
                    group.patience = patience.as_nanos().clamp(1, i64::MAX as u128) as u64;
                    group.abort = status.iter().map(|record| record + StatusRecord::ABORT_OFFSET).collect();
                }
                Ok(Group { status, ..group })
            }
            Err(error) => {
                group.free(gpus);
                Err(error)
            }
        }
    }

    /// The parameters of a rank's call.
    pub(crate) fn params(&self, call: &Queued, rank: usize) -> Params {
        let ranks = 0..self.counters.addresses.len();
        let shape = &call.program.shape;
        let addresses = |view: View, buffer| -> Vec<u64> {
            let address = |peer| match shape.units(buffer, Rank(peer as u32)) {
                0 => 0,
                _ => self.address(view, rank, peer),
            };
            ranks.clone().map(address).collect()
        };
        let (input, output) = match call.input {
            None => {
                let data = addresses(call.output, Buffer::Data);
                (data.clone(), data)
            }
            Some(input) => (addresses(input, Buffer::Input), addresses(call.output, Buffer::Output)),
        };
        Params {
            rank: Rank(rank as u32),
            count: call.count,
            hash: call.hash(),
            patience: self.patience,
            abort: self.abort[rank],
            status: self.status[rank],
            multicast_input: self.multicast(call.input.unwrap_or(call.output)),
            multicast_output: self.multicast(call.output),
            scalar: call.program.cuda.op.argument(call.program.cuda.dtype),
            input,
            output,
            scratch: self.scratch.addresses.clone(),
            counters: self.counters.addresses.clone(),
            fifos: self.fifos.addresses.clone(),
        }
    }

    /// The multicast address of a view; 0 where there is none.
    fn multicast(&self, view: View) -> u64 {
        let View::Window { window, start, .. } = view else { return 0 };
        let slot = self.windows.get(window);
        slot.and_then(|slot| slot.multicast).map_or(0, |address| address + start)
    }

    /// The address on `rank` of what a call of rank `own` has queued; 0 where that rank has no memory of it.
    fn address(&self, view: View, own: usize, rank: usize) -> u64 {
        match view {
            View::Window { window, start, .. } => {
                let slot = self.windows.get(window);
                slot.and_then(|slot| slot.addresses[rank]).map_or(0, |address| address + start)
            }
            View::Plain { address } if own == rank => address,
            View::Plain { .. } => 0,
        }
    }

    /// Makes FIFOs, unless there are some.
    pub(crate) fn make_fifos(&mut self, gpus: &mut dyn Gpus, layout: &FifoLayout) -> Result<(), Error> {
        if self.fifos.bytes != 0 {
            return Ok(());
        }
        self.fifos.make(gpus, layout.bytes(), |gpus, at, _| gpus.alloc_fifos(at, layout))
    }

    /// Makes scratch of at least so many bytes a rank.
    pub(crate) fn make_scratch(&mut self, gpus: &mut dyn Gpus, bytes: u64) -> Result<(), Error> {
        if bytes <= self.scratch.bytes {
            return Ok(());
        }
        let ranks = self.counters.addresses.len() as u32;
        let mut old = std::mem::replace(&mut self.scratch, Symmetric::none(ranks));
        if self.is_captured() {
            self.outgrown.push(old);
        } else {
            old.free(gpus);
        }
        self.scratch.make(gpus, bytes, |gpus, at, bytes| gpus.alloc(at, bytes, SCRATCH, false))
    }

    /// Frees a rank's memory of a window.
    pub(crate) fn free_window(&mut self, gpus: &mut dyn Gpus, rank: Rank, window: usize) {
        let ranks = self.allocated.len();
        let Some(slot) = self.windows.get_mut(window) else { return };
        if let Some(address) = slot.addresses.get_mut(rank.0 as usize).and_then(Option::take) {
            if !slot.registered[rank.0 as usize] {
                gpus.free(address);
            }
            slot.multicast = None;
            slot.freed += 1;
        }
        if slot.freed == ranks
            && let Some(place) = slot.place.take()
        {
            gpus.release(place, slot.bytes);
        }
    }

    /// Frees all that it has.
    pub(crate) fn free(mut self, gpus: &mut dyn Gpus) {
        for window in 0..self.windows.len() {
            for rank in (0..self.allocated.len()).map(|rank| Rank(rank as u32)) {
                self.free_window(gpus, rank, window);
            }
            let slot = &mut self.windows[window];
            if let Some(place) = slot.place.take() {
                gpus.release(place, slot.bytes);
            }
        }
        let Group { counters, fifos, scratch, outgrown, status, .. } = self;
        for mut memory in [counters, fifos, scratch].into_iter().chain(outgrown) {
            memory.free(gpus);
        }
        status.into_iter().for_each(|address| gpus.free(address));
    }

    /// Frees what only graphs needed that are there no more.
    pub(crate) fn tidy(&mut self, gpus: &mut dyn Gpus) {
        self.graphs.retain(|calls| calls.strong_count() != 0);
        if !self.is_captured() {
            self.outgrown.drain(..).for_each(|mut memory| memory.free(gpus));
        }
    }

    /// Forgets the calls that have ended; none where a kernel has given up, until that has been told.
    pub(crate) fn settle(&mut self, id: u64, gpus: &dyn Gpus) {
        let ended =
            |(flying, rank): (&VecDeque<Queued>, u32)| flying.is_empty() || !gpus.flies(id, Rank(rank));
        let ended: Vec<bool> = self.flying.iter().zip(0..).map(ended).collect();
        if self.has_report(gpus) {
            return;
        }
        for (flying, ended) in self.flying.iter_mut().zip(ended) {
            if ended {
                flying.clear();
            }
        }
    }

    /// Does so before more calls are started, where nobody else has for long.
    pub(crate) fn forget_old(&mut self, id: u64, gpus: &dyn Gpus) {
        if self.flying.iter().any(|flying| flying.len() >= REMEMBERED) {
            self.settle(id, gpus);
        }
    }

    /// Returns true if a kernel of a call has given up.
    pub(crate) fn has_report(&self, gpus: &dyn Gpus) -> bool {
        self.status.iter().any(|&address| gpus.status(address).is_some())
    }

    /// Returns true if a call may still run.
    pub(crate) fn is_flying(&self) -> bool {
        self.flying.iter().any(|flying| !flying.is_empty())
    }

    /// Returns true if a call of `rank` that has not ended uses its memory of a window. Peers' calls touch that memory only
    /// while such a call runs.
    pub(crate) fn uses(&self, rank: Rank, window: usize) -> bool {
        let rank = rank.0 as usize;
        self.queue[rank].iter().chain(&self.flying[rank]).any(|call| call.touches(window))
    }

    /// Returns true if a captured call of `rank` will use its memory of a window.
    pub(crate) fn keeps(&self, rank: Rank, window: usize) -> bool {
        let rank = rank.0 as usize;
        let touches = |calls: &[Queued]| calls.iter().any(|call| call.touches(window));
        let of_graph =
            |calls: &Weak<Vec<Vec<Queued>>>| calls.upgrade().is_some_and(|calls| touches(&calls[rank]));
        touches(&self.captured[rank]) || touches(&self.recorded[rank]) || self.graphs.iter().any(of_graph)
    }

    /// Returns true if calls are in graphs.
    fn is_captured(&self) -> bool {
        let mut calls = self.captured.iter().chain(&self.recorded);
        calls.any(|calls| !calls.is_empty()) || self.graphs.iter().any(|calls| calls.strong_count() != 0)
    }
}

impl Symmetric {
    fn none(ranks: u32) -> Symmetric {
        Symmetric { bytes: 0, place: None, addresses: vec![0; ranks as usize] }
    }

    fn make(
        &mut self,
        gpus: &mut dyn Gpus,
        bytes: u64,
        mut alloc: impl FnMut(&mut dyn Gpus, (Rank, Place), u64) -> Result<u64, Error>,
    ) -> Result<(), Error> {
        let place = gpus.reserve(bytes)?;
        (self.place, self.bytes) = (Some(place), bytes);
        for (address, rank) in self.addresses.iter_mut().zip((0..).map(Rank)) {
            match alloc(gpus, (rank, place), bytes) {
                Ok(made) => *address = made,
                Err(error) => {
                    self.free(gpus);
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    fn free(&mut self, gpus: &mut dyn Gpus) {
        for address in self.addresses.iter_mut().filter(|address| **address != 0) {
            gpus.free(std::mem::take(address));
        }
        if let Some(place) = self.place.take() {
            gpus.release(place, self.bytes);
        }
        self.bytes = 0;
    }
}

impl Drop for GroupHandle {
    fn drop(&mut self) {
        self.shared.free(Freed::Group { group: self.id });
    }
}

impl fmt::Debug for GroupHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Group").field("id", &self.id).finish_non_exhaustive()
    }
}
