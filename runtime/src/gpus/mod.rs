//! The interface of a world's GPUs. Communicators, calls and failures are written against this; which GPUs they are only
//! this folder knows.

mod options;

mod labels;

mod loaded;

mod timeline;

mod statistics;

mod virtual_gpus;

mod cuda;

mod kind;

pub(crate) use cuda::{Devices, measure, multicast};
pub use cuda::{Measured, gpus, lowered};
pub(crate) use kind::WorldKind;
pub(crate) use labels::{ALIGNMENT, COUNTERS, FIFOS, SCRATCH, multicast_label, window_label};
pub(crate) use loaded::{Binary, Loaded};
pub use options::{LEAVING, MOST_BLOCKS, MOST_RANKS, PATIENCE, WorldOptions};
pub use statistics::{Link, Statistics};
pub use timeline::{BlockTimeline, StepTimes, Timeline};
pub(crate) use virtual_gpus::owner;

use crate::error::{CallProblem, Error};
use crate::nvrtc::{Arch, Code, CodeKind};
use quadrille_compiler::emit::Cuda;
use quadrille_compiler::kernel::abi::{FifoLayout, StatusRecord};
use quadrille_compiler::program::ids::Rank;
use quadrille_vgpu::Fault;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The place of memory within the addresses of a rank: equal on every rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place(pub(crate) u64);

/// The moment at which a queued call starts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Start {
    /// All together, when the world is synchronized.
    WhenSynchronized,
    /// At once, each rank for itself.
    AtOnce,
    /// In one launch for all ranks, as soon as each has queued it.
    Together,
}

/// The group and stream that a call is put on.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct On {
    /// The number of its group.
    pub(crate) group: u64,
    /// The caller's stream, a `CUstream`; `None` for the rank's own.
    pub(crate) stream: Option<usize>,
}

/// The state of the calls that were launched.
#[derive(Debug)]
pub(crate) enum CallProgress {
    /// Some run.
    Running,
    /// All have ended.
    Done(Box<Statistics>),
    /// They were stopped, as a kernel has written its status record.
    Stopped,
}

/// A reason that keeps GPUs from doing something.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// A kernel did what it must not, found by virtual GPUs.
    Fault(Fault),
    /// Anything else.
    Error(Error),
}

impl From<Fault> for Trouble {
    fn from(fault: Fault) -> Trouble {
        Trouble::Fault(fault)
    }
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Trouble {
        Trouble::Error(error)
    }
}

impl From<Trouble> for Error {
    fn from(trouble: Trouble) -> Error {
        match trouble {
            Trouble::Fault(fault) => Error::Machine(Box::new(fault)),
            Trouble::Error(error) => error,
        }
    }
}

/// The GPUs of a world. An address is good on every rank.
pub(crate) trait Gpus: fmt::Debug + Send {
    /// Returns the architecture and form that kernels are compiled to.
    fn target(&self) -> Result<(Arch, CodeKind), Error>;

    /// Makes compiled code ready to be launched on every rank, and makes sure that its blocks fit.
    fn load(&mut self, code: &Code, cuda: &Cuda, program: &str) -> Result<Binary, Error>;

    /// Addresses for `bytes` bytes of every rank.
    fn reserve(&mut self, bytes: u64) -> Result<Place, Error>;

    /// Gives addresses back: no rank has memory there any more.
    fn release(&mut self, place: Place, bytes: u64);

    /// At least 1 byte of a rank's memory at a place that is reserved for as much.
    fn alloc(&mut self, at: (Rank, Place), bytes: u64, label: &str, zeroed: bool) -> Result<u64, Error>;

    /// A rank's FIFOs, likewise; all zero.
    fn alloc_fifos(&mut self, at: (Rank, Place), layout: &FifoLayout) -> Result<u64, Error>;

    /// Each rank's status record, all zero, where the host can look at it at any time.
    fn alloc_status(&mut self) -> Result<Vec<u64>, Error>;

    /// Returns the report of a kernel there, if one has given up.
    fn status(&self, address: u64) -> Option<StatusRecord>;

    /// One address for memory of all ranks. It ends with that memory.
    fn multicast(&mut self, members: &[u64], bytes: u64, label: &str) -> Result<u64, Error>;

    /// Frees what begins at an address. What is not there needs no freeing.
    fn free(&mut self, address: u64);

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), Error>;

    /// The bytes, or what keeps them from being read: [`Fault::Uninitialized`] above all.
    fn read(&self, address: u64, bytes: u64) -> Result<Vec<u8>, Trouble>;

    /// Copies `times` times, and waits until that is done; the mean time of one copy, where GPUs have a clock of their own.
    fn copy(&mut self, to: u64, from: u64, bytes: u64, times: u32) -> Result<Option<Duration>, Trouble>;

    fn start(&self) -> Start;

    /// Returns true if a launch by rank 0 is of all ranks.
    fn together(&self) -> bool {
        self.start() == Start::Together
    }

    /// A rank's device, by the driver's number; virtual GPUs have none.
    fn device(&self, _: Rank) -> Option<u32> {
        None
    }

    /// Returns the problem that keeps a rank's calls from a caller's stream, of a context that the caller knows or the driver is asked for:
    /// it does not know that of a default stream.
    fn admits(&self, rank: Rank, stream: usize, context: Option<usize>)
    -> Result<Option<CallProblem>, Error>;

    /// Launches a rank's kernel, or where calls start together all ranks'; on virtual GPUs, queues it. A rank without
    /// thread blocks has nothing to do. Says whether the launch went into a graph.
    fn launch(&mut self, rank: Rank, program: &Arc<Loaded>, params: Vec<u8>, on: On)
    -> Result<bool, Trouble>;

    /// From now on launches on the ranks' own streams go into a graph, where GPUs have any.
    fn begin_capture(&mut self) -> Result<(), Error>;

    /// Ends that; a number for the graph.
    fn end_capture(&mut self) -> Result<u64, Error>;

    /// Launches a graph, with calls of these groups.
    fn replay(&mut self, graph: u64, groups: &[u64]) -> Result<(), Trouble>;

    /// Forgets a graph.
    fn forget(&mut self, graph: u64);

    /// Goes on with what was launched: virtual GPUs run it to its end, others look at it.
    fn progress(&mut self) -> Result<CallProgress, Trouble>;

    /// Returns true if a call of a group, launched by a rank, may still run.
    fn flies(&self, group: u64, rank: Rank) -> bool;

    /// Forgets what it keeps of a group, of which no call runs any more.
    fn disband(&mut self, group: u64);

    /// Makes kernels leave their waits: one of them has given up.
    fn abort(&mut self);
}
