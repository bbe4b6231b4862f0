//! Communicators and their symmetric windows.
//!
//! The k-th allocation of every rank belongs to the k-th window: same size, same window offset, on every rank its own
//! memory. So a rank that names one of its own windows has named those of its peers.

use crate::error::Error;
use crate::failure::Failure;
use crate::launch::Queued;
use crate::world::{Freed, Gpus, Options, Place, Shared, State, Trouble};
use quadrille_compiler::abi::{FifoLayout, StatusRecord};
use quadrille_compiler::ids::Rank;
use quadrille_vgpu::Fault;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, MutexGuard, Weak};
use std::time::Duration;

/// Window offsets and addresses are multiples of this: what `cudaMalloc` gives.
pub(crate) const ALIGNMENT: u64 = 256;

/// So many calls of a rank are remembered, whether or not they have ended.
pub(crate) const REMEMBERED: usize = 64;

/// One rank's end of a group that runs collectives together. Its counters live as long as the group, whatever
/// programs are called.
#[derive(Clone, Debug)]
pub struct Communicator {
    pub(crate) group: Arc<GroupHandle>,
    pub(crate) rank: Rank,
}

/// A part, or all, of one rank's memory of a symmetric window. Freed with its last view, but not before the calls
/// that use it have run.
#[derive(Clone, Debug)]
pub struct Window {
    pub(crate) memory: Arc<Memory>,
    pub(crate) range: Range<u64>,
}

/// Where a rank's memory of a window comes from.
#[derive(Clone, Copy)]
enum Origin {
    New { zeroed: bool },
    Known { address: u64 },
}

/// One rank's memory of a window.
#[derive(Debug)]
pub(crate) struct Memory {
    pub(crate) group: Arc<GroupHandle>,
    pub(crate) rank: Rank,
    pub(crate) index: usize,
    /// Where the window begins among the group's windows.
    pub(crate) offset: u64,
    pub(crate) address: u64,
}

/// What keeps a group alive.
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
    first: Rank,
    /// Where it lies; `None` where it is empty.
    place: Option<Place>,
    /// Each rank's memory; `None` where the rank has not allocated it, or it is empty, or freed.
    pub(crate) addresses: Vec<Option<u64>>,
    /// Ranks whose memory is not ours.
    pub(crate) registered: Vec<bool>,
    /// Ranks that have freed it.
    freed: usize,
    /// The address of all of them, once a call has needed it.
    pub(crate) multicast: Option<u64>,
}

/// The label of a window's memory on the virtual GPUs.
pub(crate) fn window_label(index: usize) -> String {
    format!("window {index}")
}

/// The label of scratch on the virtual GPUs.
pub(crate) const SCRATCH: &str = "scratch";

/// The label of a window's multicast range on the virtual GPUs.
pub(crate) fn multicast_label(index: usize) -> String {
    format!("window {index} of all ranks")
}

/// The label of a FIFO region on the virtual GPUs.
pub(crate) const FIFOS: &str = "FIFOs";

/// The label of a counter region on the virtual GPUs.
pub(crate) const COUNTERS: &str = "counters";

impl Communicator {
    /// This rank.
    pub fn rank(&self) -> Rank {
        self.rank
    }

    /// World size.
    pub fn ranks(&self) -> u32 {
        self.group.shared.ranks()
    }

    /// This rank's memory of the next window, with undefined contents: reading a byte that nobody has written is an
    /// error on virtual GPUs, for the host and for kernels.
    ///
    /// # Errors
    /// [`Error::AllocSize`] where another rank's memory of the same window has another size, [`Error::InFlight`] where
    /// calls run, [`Error::Machine`] or [`Error::Cuda`] where there is no memory.
    pub fn alloc(&self, bytes: u64) -> Result<Window, Error> {
        self.window(bytes, Origin::New { zeroed: false })
    }

    /// As [`Communicator::alloc`], filled with zeros.
    pub fn alloc_zeroed(&self, bytes: u64) -> Result<Window, Error> {
        self.window(bytes, Origin::New { zeroed: true })
    }

    /// Makes `bytes` bytes that are there already this rank's memory of the next window: memory of another library's that
    /// every rank of this process reaches at its address. It is not freed with the window, and the switch does not reach it.
    ///
    /// # Errors
    /// Those of [`Communicator::alloc`].
    ///
    /// # Safety
    /// The bytes are memory of this rank's GPU, mapped for the GPUs of all ranks, and live as long as the window and the
    /// calls that use it. `address` is a multiple of 256.
    pub unsafe fn register(&self, address: u64, bytes: u64) -> Result<Window, Error> {
        self.window(bytes, Origin::Known { address })
    }

    fn window(&self, bytes: u64, from: Origin) -> Result<Window, Error> {
        let rank = self.rank.0 as usize;
        let mut state = self.group.shared.lock();
        self.group.live(&mut state.groups)?;
        state.quiet("allocate a window")?;
        let State { gpus, groups, .. } = &mut *state;
        let group = self.group.live(groups)?;
        let index = group.allocated[rank];
        let new = index == group.windows.len();
        if new {
            let offset = group.windows.last().map_or(0, |last| last.offset + last.bytes.max(1));
            group.windows.push(Slot {
                bytes,
                offset: offset.next_multiple_of(ALIGNMENT),
                first: self.rank,
                place: if bytes == 0 { None } else { Some(gpus.reserve(bytes)?) },
                addresses: vec![None; group.allocated.len()],
                registered: vec![false; group.allocated.len()],
                freed: 0,
                multicast: None,
            });
        }
        let slot = &mut group.windows[index];
        if slot.bytes != bytes {
            let (peer, peer_bytes) = (slot.first, slot.bytes);
            return Err(Error::AllocSize { index, rank: self.rank, bytes, peer, peer_bytes });
        }
        let address = match (from, slot.place) {
            (_, None) => None,
            (Origin::Known { address }, _) => {
                slot.registered[rank] = true;
                Some(address)
            }
            (Origin::New { zeroed }, Some(place)) => {
                match gpus.alloc((self.rank, place), bytes, &window_label(index), zeroed) {
                    Ok(address) => Some(address),
                    Err(error) => {
                        // As if it had not been tried: another size may be tried next.
                        if new {
                            group.windows.pop();
                            gpus.release(place, bytes);
                        }
                        return Err(error);
                    }
                }
            }
        };
        slot.addresses[rank] = address;
        group.allocated[rank] += 1;
        let memory = Memory {
            group: self.group.clone(),
            rank: self.rank,
            index,
            offset: slot.offset,
            address: address.unwrap_or(0),
        };
        Ok(Window { memory: Arc::new(memory), range: 0..bytes })
    }
}

impl Window {
    /// Bytes of this view.
    pub fn len(&self) -> u64 {
        self.range.end - self.range.start
    }

    /// Whether this view has no bytes.
    pub fn is_empty(&self) -> bool {
        self.range.is_empty()
    }

    /// Whose memory it is.
    pub fn rank(&self) -> Rank {
        self.memory.rank
    }

    /// Where this view begins among the communicator's windows, in bytes: equal on every rank for the same view of
    /// the same window.
    pub fn offset(&self) -> u64 {
        self.memory.offset + self.range.start
    }

    /// Its address on the GPUs of this process: kernels of every rank reach it there. 0 where it has no bytes.
    pub fn address(&self) -> u64 {
        if self.is_empty() { 0 } else { self.memory.address + self.range.start }
    }

    /// The bytes `range` of this view.
    ///
    /// # Errors
    /// [`Error::Slice`] where the range is not inside.
    pub fn slice(&self, range: Range<u64>) -> Result<Window, Error> {
        if range.start > range.end || range.end > self.len() {
            return Err(Error::Slice { start: range.start, end: range.end, len: self.len() });
        }
        let start = self.range.start;
        Ok(Window { memory: self.memory.clone(), range: start + range.start..start + range.end })
    }

    /// Fills this view.
    ///
    /// # Errors
    /// [`Error::Length`] where `bytes` is not as long as the view, [`Error::Busy`] where a call that has not run uses
    /// the window.
    pub fn write(&self, bytes: &[u8]) -> Result<(), Error> {
        let mut state = self.settled()?;
        if bytes.len() as u64 != self.len() {
            return Err(Error::Length { given: bytes.len() as u64, len: self.len() });
        }
        if bytes.is_empty() {
            return Ok(());
        }
        state.gpus.write(self.address(), bytes)
    }

    /// The bytes of this view.
    ///
    /// # Errors
    /// [`Error::Busy`] where a call that has not run uses the window, [`Error::Unwritten`] where nobody has written a
    /// byte of it.
    pub fn read(&self) -> Result<Vec<u8>, Error> {
        let state = self.settled()?;
        if self.is_empty() {
            return Ok(Vec::new());
        }
        state.gpus.read(self.address(), self.len()).map_err(|trouble| match trouble {
            Trouble::Fault(Fault::Uninitialized(_)) => {
                let (rank, window) = (self.memory.rank, self.memory.index);
                // The most bytes that can be read: all written.
                let (mut written, mut end) = (0, self.len());
                while written + 1 < end {
                    let middle = written.midpoint(end);
                    let readable = state.gpus.read(self.address(), middle).is_ok();
                    (written, end) = if readable { (middle, end) } else { (written, middle) };
                }
                Error::Unwritten { rank, window, offset: self.range.start + written }
            }
            trouble => trouble.into(),
        })
    }

    /// Fills this view with the bytes of another one, which no kernel does: on real GPUs the copy engines, or what the driver
    /// has. It is done `times` times in a row; gives the mean time of one by the GPU's own clock, `None` on virtual GPUs.
    ///
    /// # Errors
    /// [`Error::Length`] where they are not equally long, [`Error::Busy`] where a call that has not run uses one of them,
    /// [`Error::ForeignMemory`] where they are of different worlds, [`Error::Machine`] where virtual GPUs
    /// find a byte that nobody has written.
    pub fn copy_from(&self, from: &Window, times: u32) -> Result<Option<Duration>, Error> {
        drop(from.settled()?);
        let mut state = self.settled()?;
        if from.len() != self.len() {
            return Err(Error::Length { given: from.len(), len: self.len() });
        }
        if !Arc::ptr_eq(&from.memory.group.shared, &self.memory.group.shared) {
            return Err(Error::ForeignMemory);
        }
        if self.is_empty() {
            return Ok(None);
        }
        Ok(state.gpus.copy(self.address(), from.address(), self.len(), times)?)
    }

    /// The state, if no call that has not run uses the window.
    fn settled(&self) -> Result<MutexGuard<'_, State>, Error> {
        let (rank, window) = (self.memory.rank, self.memory.index);
        let group = &self.memory.group;
        let mut state = group.shared.lock();
        let State { gpus, groups, .. } = &mut *state;
        let id = group.id;
        let group = group.live(groups)?;
        group.settle(id, &**gpus);
        if group.uses(rank, window) {
            return Err(Error::Busy { rank, window });
        }
        Ok(state)
    }
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
        let Options { counted, widths, .. } = *shared.options();
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

    /// Whether a kernel of a call has given up.
    pub(crate) fn has_report(&self, gpus: &dyn Gpus) -> bool {
        self.status.iter().any(|&address| gpus.status(address).is_some())
    }

    /// Whether a call may still run.
    pub(crate) fn is_flying(&self) -> bool {
        self.flying.iter().any(|flying| !flying.is_empty())
    }

    /// Whether a call of `rank` that has not ended uses its memory of a window. Peers' calls touch that memory only
    /// while such a call runs.
    pub(crate) fn uses(&self, rank: Rank, window: usize) -> bool {
        let rank = rank.0 as usize;
        self.queue[rank].iter().chain(&self.flying[rank]).any(|call| call.touches(window))
    }

    /// Whether a captured call of `rank` will use its memory of a window.
    pub(crate) fn keeps(&self, rank: Rank, window: usize) -> bool {
        let rank = rank.0 as usize;
        let touches = |calls: &[Queued]| calls.iter().any(|call| call.touches(window));
        let of_graph =
            |calls: &Weak<Vec<Vec<Queued>>>| calls.upgrade().is_some_and(|calls| touches(&calls[rank]));
        touches(&self.captured[rank]) || touches(&self.recorded[rank]) || self.graphs.iter().any(of_graph)
    }

    /// Whether calls are in graphs.
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

impl Drop for Memory {
    fn drop(&mut self) {
        if self.address != 0 {
            let Memory { group, rank, index, .. } = self;
            group.shared.free(Freed::Window { group: group.id, rank: *rank, window: *index });
        }
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
