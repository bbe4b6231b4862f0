//! Communicators and their symmetric windows.
//!
//! The k-th allocation of every rank belongs to the k-th window: same size, same window offset, on every rank its own
//! memory. So a rank that names one of its own windows has named those of its peers.

use crate::error::Error;
use crate::gpus::{ALIGNMENT, Trouble, window_label};
use crate::state::{Freed, GroupHandle, Slot, State};
use quadrille_compiler::program::ids::Rank;
use quadrille_vgpu::Fault;
use std::ops::Range;
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

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

/// The source of a rank's memory of a window.
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
    /// The window's offset among the group's windows.
    pub(crate) offset: u64,
    pub(crate) address: u64,
}

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

    /// Returns true if this view has no bytes.
    pub fn is_empty(&self) -> bool {
        self.range.is_empty()
    }

    /// The rank whose memory it is.
    pub fn rank(&self) -> Rank {
        self.memory.rank
    }

    /// The offset of this view among the communicator's windows, in bytes: equal on every rank for the same view of
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

impl Drop for Memory {
    fn drop(&mut self) {
        if self.address != 0 {
            let Memory { group, rank, index, .. } = self;
            group.shared.free(Freed::Window { group: group.id, rank: *rank, window: *index });
        }
    }
}
