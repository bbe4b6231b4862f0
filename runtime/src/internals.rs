//! Doors into the runtime for `quadrille-testing` and for tests: a driver of their own under a world, kernels from any
//! text, and the memory that belongs to communicators. No part of the API: it changes without notice.

pub use crate::driver::api::{Api, symbol};
pub use crate::driver::{Context, Device, Driver, DriverGraph, Stream};
pub use crate::gpus::lowered;
pub use crate::state::{LOCAL_COPY, REMEMBERED};

use crate::argument::Plain;
use crate::communicator::Communicator;
use crate::error::Error;
use crate::gpus::{Statistics, WorldOptions};
use crate::kernel::LoadedKernel;
use crate::launch::Call;
use crate::run::Session;
use crate::state::LoadTimes;
use crate::survey::Survey;
use crate::world::World;
use quadrille_compiler::emit::Cuda;
use quadrille_compiler::kernel::abi::{CounterLayout, FifoLayout, StatusRecord};
use quadrille_compiler::program::ids::Rank;
use quadrille_compiler::program::kind::Shape;
use std::collections::VecDeque;

/// As [`World::cuda_with`], on a driver.
///
/// # Errors
/// Those of [`World::cuda_with`].
pub fn cuda(driver: Driver, devices: &[u32], options: WorldOptions) -> Result<World, Error> {
    World::cuda_by(driver, devices, options)
}

/// As [`World::cuda_shared_with`], on a driver.
///
/// # Errors
/// Those of [`World::cuda_shared_with`].
pub fn cuda_shared(driver: Driver, device: u32, ranks: u32, options: WorldOptions) -> Result<World, Error> {
    World::cuda_shared_by(driver, device, ranks, options)
}

/// As [`crate::survey`], of the GPUs of a driver.
///
/// # Errors
/// Those of [`crate::survey`].
pub fn survey(driver: &Driver) -> Result<Survey, Error> {
    crate::survey::of(driver)
}

/// A kernel's text that nothing has proved, and what calls of it look like.
#[derive(Clone, Debug)]
pub struct Unproved {
    /// The name that messages have for it.
    pub name: String,
    /// The shape from which the sizes of buffers follow.
    pub shape: Shape,
    /// True where counts must be multiples of the number of chunks.
    pub divisible: bool,
    /// The text and its launch shape.
    pub cuda: Cuda,
}

/// Compiles and loads a text as it is.
///
/// # Errors
/// [`Error::Compile`] where NVRTC does not compile the text or there is none, [`Error::InFlight`] where calls run.
pub fn load(communicator: &Communicator, unproved: Unproved) -> Result<(LoadedKernel, LoadTimes), Error> {
    let Unproved { name, shape, divisible, cuda } = unproved;
    let shared = &communicator.group.shared;
    let mut cache = shared.cache();
    let mut state = shared.lock();
    state.quiet("load a kernel")?;
    let (loaded, times) = cache.compile(&mut *state.gpus, name, shape, divisible, cuda)?;
    Ok((communicator.kernel(loaded), times))
}

/// Returns true if one launch has the blocks of all ranks.
pub fn launches_together(communicator: &Communicator) -> bool {
    communicator.group.shared.lock().gpus.together()
}

/// The options of a communicator's world.
pub fn options(communicator: &Communicator) -> WorldOptions {
    *communicator.group.shared.options()
}

/// Queues a call on a stream (a `CUstream`) where one is given.
///
/// # Errors
/// Those of [`LoadedKernel::enqueue_on`].
pub fn enqueue(kernel: &LoadedKernel, call: Call<'_>, stream: Option<usize>) -> Result<(), Error> {
    kernel.enqueue_with(call, stream)
}

/// Queues a call on the default stream of a context (a `CUcontext`).
///
/// # Errors
/// Those of [`LoadedKernel::enqueue_on`].
pub fn enqueue_in_context(kernel: &LoadedKernel, call: Call<'_>, context: usize) -> Result<(), Error> {
    kernel.enqueue_in(call, Some(0), Some(context))
}

/// The same memory, as that of a device.
pub fn of_device(plain: Plain<'_>, device: u32) -> Plain<'_> {
    plain.on(device)
}

/// Tells the kernels of all ranks to give up, as after a failure.
pub fn abort(communicator: &Communicator) {
    communicator.group.shared.lock().gpus.abort();
}

/// Runs every queued call, even where other ranks have queued none, as GPUs that start calls at once do.
///
/// # Errors
/// Those of [`World::synchronize`].
pub fn synchronize_alone(session: &Session) -> Result<Statistics, Error> {
    session.world().shared.synchronize_alone()
}

/// The most calls that a rank of the communicator's group remembers at the moment.
pub fn remembered(communicator: &Communicator) -> usize {
    let state = communicator.group.shared.lock();
    let group = &state.groups[&communicator.group.id];
    let captured = group.captured.iter().map(Vec::len);
    captured.chain(group.flying.iter().map(VecDeque::len)).max().unwrap_or(0)
}

/// The memory that belongs to the communicators of a group.
#[derive(Clone, Copy, Debug)]
pub struct GroupMemory<'a> {
    communicator: &'a Communicator,
}

impl<'a> GroupMemory<'a> {
    /// The memory of a communicator's group.
    pub fn of(communicator: &'a Communicator) -> GroupMemory<'a> {
        GroupMemory { communicator }
    }

    /// The status record of each rank, where it has one.
    pub fn status(&self) -> Vec<Option<StatusRecord>> {
        let group = &self.communicator.group;
        let state = group.shared.lock();
        state.groups[&group.id].status.iter().map(|&address| state.gpus.status(address)).collect()
    }

    /// The layout of a rank's counter region.
    pub fn counter_layout(&self) -> CounterLayout {
        self.communicator.group.shared.counter_layout()
    }

    /// The layout of a rank's FIFO region.
    pub fn fifo_layout(&self) -> FifoLayout {
        self.communicator.group.shared.fifo_layout()
    }

    /// The address of a rank's counter region.
    pub fn counters(&self, rank: Rank) -> u64 {
        let group = &self.communicator.group;
        group.shared.lock().groups[&group.id].counters.addresses[rank.0 as usize]
    }

    /// The address of a rank's FIFO region; 0 where no call has needed one.
    pub fn fifos(&self, rank: Rank) -> u64 {
        let group = &self.communicator.group;
        group.shared.lock().groups[&group.id].fifos.addresses[rank.0 as usize]
    }

    /// Sets the abort words of some ranks: their kernels give up.
    ///
    /// # Errors
    /// [`Error::Machine`] where the words cannot be written.
    pub fn abort(&self, ranks: &[Rank]) -> Result<(), Error> {
        let group = &self.communicator.group;
        let mut state = group.shared.lock();
        for rank in ranks {
            let word = state.groups[&group.id].abort[rank.0 as usize];
            state.gpus.write(word, &StatusRecord::ABORT.to_le_bytes())?;
        }
        Ok(())
    }

    /// Returns true if calls in graphs, or memory that such calls need, are kept.
    pub fn keeps_captured_calls(&self) -> bool {
        let group = &self.communicator.group;
        let state = group.shared.lock();
        let group = &state.groups[&group.id];
        let mut calls = group.captured.iter().chain(&group.recorded);
        !group.graphs.is_empty() || !group.outgrown.is_empty() || calls.any(|calls| !calls.is_empty())
    }

    /// The bytes at an address; `None` where they cannot be read. A failure that has ended the group does not matter.
    pub fn read(&self, address: u64, bytes: u64) -> Option<Vec<u8>> {
        self.communicator.group.shared.lock().gpus.read(address, bytes).ok()
    }
}
