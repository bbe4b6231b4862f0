//! Communicators and their symmetric windows.
//!
//! The k-th allocation of every rank belongs to the k-th window: same size, same window offset, on every rank its own
//! memory. So a rank that names one of its own windows has named those of its peers.

use crate::error::Error;
use crate::failure::Failure;
use crate::launch::Queued;
use crate::world::{Freed, Shared, State};
use quadrille_compiler::abi::StatusRecord;
use quadrille_compiler::ids::Rank;
use quadrille_vgpu::Fault;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

/// Window offsets and addresses are multiples of this: what `cudaMalloc` gives.
pub(crate) const ALIGNMENT: u64 = 256;

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
    /// Address of each rank's counter region.
    pub(crate) counters: Vec<u64>,
    /// Address of each rank's status record.
    pub(crate) status: Vec<u64>,
    /// Address of each rank's abort word; 0 where waits are not bounded.
    pub(crate) abort: Vec<u64>,
    /// Nanoseconds that a wait may take; 0 for no bound.
    pub(crate) patience: u64,
    /// Address of each rank's FIFO region; 0 until a program needs them.
    pub(crate) fifos: Vec<u64>,
    pub(crate) scratch: Scratch,
    pub(crate) windows: Vec<Slot>,
    /// Allocations of each rank so far.
    pub(crate) allocated: Vec<usize>,
    /// Calls of each rank that have not run.
    pub(crate) queue: Vec<VecDeque<Queued>>,
    /// Calls that have run on every rank.
    pub(crate) done: u64,
}

/// Memory that programs use while a call runs, equally much on every rank; what it holds does not outlive the call.
#[derive(Debug)]
pub(crate) struct Scratch {
    pub(crate) bytes: u64,
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
    /// Each rank's memory; `None` where the rank has not allocated it, or it is empty.
    pub(crate) addresses: Vec<Option<u64>>,
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
    /// [`Error::AllocSize`] where another rank's memory of the same window has another size.
    pub fn alloc(&self, bytes: u64) -> Result<Window, Error> {
        self.alloc_with(bytes, false)
    }

    /// As [`Communicator::alloc`], filled with zeros.
    pub fn alloc_zeroed(&self, bytes: u64) -> Result<Window, Error> {
        self.alloc_with(bytes, true)
    }

    fn alloc_with(&self, bytes: u64, zeroed: bool) -> Result<Window, Error> {
        let rank = self.rank.0 as usize;
        let mut state = self.group.shared.lock();
        let State { gpus, groups, .. } = &mut *state;
        let group = self.group.live(groups)?;
        let index = group.allocated[rank];
        if let Some(slot) = group.windows.get(index)
            && slot.bytes != bytes
        {
            let (peer, peer_bytes) = (slot.first, slot.bytes);
            return Err(Error::AllocSize { index, rank: self.rank, bytes, peer, peer_bytes });
        }
        let address = if bytes == 0 {
            None
        } else {
            Some(gpus.alloc(self.rank, bytes, ALIGNMENT, &window_label(index), zeroed)?)
        };
        if index == group.windows.len() {
            let offset = group.windows.last().map_or(0, |last| last.offset + last.bytes.max(1));
            group.windows.push(Slot {
                bytes,
                offset: offset.next_multiple_of(ALIGNMENT),
                first: self.rank,
                addresses: vec![None; group.allocated.len()],
                multicast: None,
            });
        }
        let slot = &mut group.windows[index];
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
        state.gpus.read(self.address(), self.len()).map_err(|fault| match fault {
            Fault::Uninitialized(_) => {
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
            fault => Error::Machine(Box::new(fault)),
        })
    }

    fn address(&self) -> u64 {
        self.memory.address + self.range.start
    }

    /// The state, if no call that has not run uses the window.
    fn settled(&self) -> Result<MutexGuard<'_, State>, Error> {
        let (rank, window) = (self.memory.rank, self.memory.index);
        let group = &self.memory.group;
        let mut state = group.shared.lock();
        if group.live(&mut state.groups)?.uses(rank, window) {
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
    /// A group whose counters and status records have been allocated.
    pub(crate) fn new(counters: Vec<u64>, status: Vec<u64>, patience: Option<Duration>) -> Group {
        let ranks = counters.len();
        let abort = |&record: &u64| if patience.is_some() { record + StatusRecord::ABORT_OFFSET } else { 0 };
        // Half of what the clock counts: a deadline never wraps.
        let nanoseconds = |patience: Duration| patience.as_nanos().clamp(1, i64::MAX as u128) as u64;
        Group {
            failed: None,
            counters,
            abort: status.iter().map(abort).collect(),
            status,
            patience: patience.map_or(0, nanoseconds),
            fifos: vec![0; ranks],
            scratch: Scratch { bytes: 0, addresses: vec![0; ranks] },
            windows: Vec::new(),
            allocated: vec![0; ranks],
            queue: vec![VecDeque::new(); ranks],
            done: 0,
        }
    }

    /// Whether a call of `rank` that has not run uses its memory of a window. Peers' calls touch that memory only
    /// while such a call runs.
    pub(crate) fn uses(&self, rank: Rank, window: usize) -> bool {
        let queue = self.queue.get(rank.0 as usize);
        queue.into_iter().flatten().any(|call| call.views().any(|view| view.window == window))
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if self.address != 0 {
            let Memory { group, rank, index, address, .. } = self;
            let freed = Freed::Window { group: group.id, rank: *rank, window: *index, address: *address };
            group.shared.free(freed);
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
