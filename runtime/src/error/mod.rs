//! Errors of the runtime, each with what to do about it.

mod signature;

mod failure;

mod text;

pub use failure::{Access, At, Awaited, Cause, Failure, Target, Wait};
pub use signature::Signature;

use crate::driver::CudaError;
use crate::nvrtc::CompileError;
use quadrille_compiler::diagnostic::Diagnostics;
use quadrille_compiler::program::dtype::DType;
use quadrille_compiler::program::ids::{Buffer, Rank};
use quadrille_vgpu::{Fault, PtxError};
use std::fmt::{self, Write};
use std::ops::Range;
use std::sync::Arc;

/// Advice for machines without GPUs.
const USE_VIRTUAL: &str =
    "\nhelp: use virtual GPUs, which need none (`--world virtual`, or `World::virtual_gpus(n)`)";

/// Advice after an error that stays.
const NEW_PROCESS: &str = "\nhelp: the GPUs' contexts of this process are lost, and every call of the driver fails from now on: end the \
     process and start a new one";

fn with_help(error: &CudaError) -> String {
    let help = match error {
        error if error.has_help() => "",
        error if error.is_sticky() => NEW_PROCESS,
        _ => USE_VIRTUAL,
    };
    format!("{error}{help}")
}

/// Advice after a failure that has ended the communicators.
fn after(failure: &Failure) -> &'static str {
    match &failure.cause {
        Cause::Driver { error } if error.is_sticky() => NEW_PROCESS,
        _ => {
            "\nhelp: make new ones with `World::communicators`; windows and kernels of the old ones are lost"
        }
    }
}

/// An error of the runtime.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A world of no ranks.
    #[error("a world has at least one rank\nhelp: give a number of ranks, or devices")]
    NoRanks,
    /// More ranks than a parameter block has room for.
    #[error("a world of {ranks} ranks is too large: a kernel's parameters hold the addresses of {most}")]
    TooManyRanks {
        /// The ranks asked for.
        ranks: u32,
        /// The most possible.
        most: u32,
    },
    /// A block cap outside its bounds.
    #[error("a rank cannot have up to {cap} thread blocks\nhelp: choose a block cap from 1 to {most}")]
    BlockCap {
        /// The cap asked for.
        cap: u32,
        /// The most possible.
        most: u32,
    },
    /// GPUs cannot do what was asked of them.
    #[error("{}", with_help(.0))]
    Cuda(#[from] CudaError),
    /// Real GPUs were asked for what only virtual ones have.
    #[error(
        "{what} is of virtual GPUs only, and this is a world of real ones\nhelp: use `World::virtual_gpus(n)` for it"
    )]
    NotVirtual {
        /// The thing that was asked for.
        what: &'static str,
    },
    /// Calls run that memory or code must not be changed under.
    #[error("cannot {doing} while calls run\nhelp: call `World::synchronize` first")]
    InFlight {
        /// The operation, as a verb.
        doing: &'static str,
    },
    /// Calls go into a graph, and so can neither be waited for nor be mixed with others.
    #[error("cannot {doing} while calls are captured\nhelp: do it before or after `World::capture`")]
    Capturing {
        /// The operation, as a verb.
        doing: &'static str,
    },
    /// The collective is wrong, or not for this world.
    #[error(transparent)]
    Program(#[from] Diagnostics),
    /// The kernel's text could not be compiled.
    #[error(transparent)]
    Compile(CompileError),
    /// NVRTC gave another kind of code than it was asked for.
    #[error("NVRTC gave no PTX for `{program}`\nhelp: set QUADRILLE_NVRTC to another libnvrtc")]
    NoPtx {
        /// The collective's name.
        program: String,
    },
    /// Virtual GPUs cannot execute the kernel's PTX.
    #[error(
        "virtual GPUs cannot execute the PTX of `{program}`:\n{source}\nhelp: this is a gap in the virtual GPUs, or \
         NVRTC is of another version than they know: set QUADRILLE_NVRTC to one of CUDA 13.0, and report it"
    )]
    Ptx {
        /// The collective's name.
        program: String,
        /// The thing that is not supported.
        source: PtxError,
    },
    /// A rank's memory of a symmetric window has another size than a peer's.
    #[error(
        "allocation {index} of rank {} has {bytes} bytes, that of rank {} has {peer_bytes}: together they are one \
         symmetric window\nhelp: allocate the same sizes in the same order on every rank",
        rank.0,
        peer.0
    )]
    AllocSize {
        /// The number of the communicator's allocation, from 0.
        index: usize,
        /// The allocating rank.
        rank: Rank,
        /// The size asked for, in bytes.
        bytes: u64,
        /// The rank that made the allocation of this index first.
        peer: Rank,
        /// Its size in bytes.
        peer_bytes: u64,
    },
    /// A range outside its window.
    #[error("bytes {start}..{end} do not lie in a view of {len} bytes\nhelp: choose a range inside it")]
    Slice {
        /// First byte.
        start: u64,
        /// One past the last byte.
        end: u64,
        /// Bytes of the view.
        len: u64,
    },
    /// Bytes that do not fill the view they are written to.
    #[error("{given} bytes do not fill a view of {len} bytes\nhelp: write to a slice of it that is as long")]
    Length {
        /// Bytes given.
        given: u64,
        /// Bytes of the view.
        len: u64,
    },
    /// Windows of different worlds.
    #[error(
        "one of the windows is of another world\nhelp: copy between windows of one world's communicators"
    )]
    ForeignMemory,
    /// A window that a queued call uses.
    #[error(
        "window {window} of rank {} is used by a call that has not run\nhelp: call `World::synchronize` first",
        rank.0
    )]
    Busy {
        /// The rank whose memory it is.
        rank: Rank,
        /// The window, by order of allocation from 0.
        window: usize,
    },
    /// Bytes that nobody has written were read by the host.
    #[error(
        "byte {offset} of window {window} of rank {} has not been written by anyone\nhelp: write it, allocate with \
         `alloc_zeroed`, or read only what has been written",
        rank.0
    )]
    Unwritten {
        /// The rank whose memory it is.
        rank: Rank,
        /// The window, by order of allocation from 0.
        window: usize,
        /// The first such byte, in the window.
        offset: u64,
    },
    /// Arguments that a call does not admit.
    #[error("rank {} cannot call `{program}`:{}", rank.0, list(problems))]
    Call {
        /// The collective's name.
        program: String,
        /// The calling rank.
        rank: Rank,
        /// Everything that is wrong; not empty.
        problems: Vec<CallProblem>,
    },
    /// A registered window, for a kernel that goes through the switch.
    #[error(
        "window {window} is registered memory, which has no multicast address, and the kernel goes through the switch\n\
         help: allocate the window with `Communicator::alloc`, or choose a schedule without `multimem`"
    )]
    NoMulticast {
        /// The window, by order of allocation from 0.
        window: usize,
    },
    /// Some ranks have queued a call that others have not. What every rank had queued has run; the rest waits.
    #[error(
        "{} never enqueued call {call} ({program}); {} did\nhelp: enqueue it there too, then synchronize again",
        ranks(missing),
        ranks(enqueued)
    )]
    NotEnqueued {
        /// Number of the call on this communicator, from 1.
        call: u64,
        /// The call, as the first rank that has queued it names it.
        program: Box<Signature>,
        /// The ranks that have not queued it.
        missing: Vec<Rank>,
        /// The ranks that have.
        enqueued: Vec<Rank>,
    },
    /// The calls that ran have failed. Every communicator of the world has ended.
    #[error("{0}")]
    Failed(Arc<Failure>),
    /// A failure has ended this communicator earlier.
    #[error(
        "this communicator has ended, as a call on it or beside it failed:\n{0}{help}", help = after(.0)
    )]
    Poisoned(Arc<Failure>),
    /// A communicator that its world does not know any more.
    #[error(
        "this communicator is not part of its world any more\nhelp: make new ones with `World::communicators`"
    )]
    NoGroup,
    /// Inputs that do not fit the collective.
    #[error("the inputs do not fit `{program}`:{}", list(problems))]
    Inputs {
        /// The collective's name.
        program: String,
        /// Everything that is wrong; not empty.
        problems: Vec<InputProblem>,
    },
    /// The virtual GPUs refuse a request of the runtime.
    #[error("the virtual GPUs refuse a request: {0}\nhelp: a smaller message or world needs less memory")]
    Machine(Box<Fault>),
}

impl Error {
    /// Returns true if the machine lacks something (no libnvrtc, no GPU) rather than the program or the run being wrong.
    pub fn is_missing(&self) -> bool {
        match self {
            Error::Cuda(error) => error.is_missing(),
            Error::Compile(CompileError::Nvrtc(_)) => true,
            _ => false,
        }
    }
}

/// One thing wrong with a call's arguments.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallProblem {
    /// One buffer for an out-of-place collective.
    #[error(
        "it is out of place, and is called with one buffer; give it an input and an output that are disjoint"
    )]
    OneBuffer,
    /// Two buffers for an in-place collective.
    #[error("it is in place, and is called with two buffers; give it the one that holds input and output")]
    TwoBuffers,
    /// A window of another communicator.
    #[error(
        "`{buffer}` is a window of another communicator; allocate it with the one that loaded the kernel"
    )]
    ForeignWindow {
        /// The buffer.
        buffer: Buffer,
    },
    /// A window of another rank.
    #[error("`{buffer}` is rank {}'s memory; give each rank's call its own", peer.0)]
    PeersWindow {
        /// The buffer.
        buffer: Buffer,
        /// The rank whose memory it is.
        peer: Rank,
    },
    /// Memory that peers do not map, for a kernel that reaches their buffers.
    #[error(
        "`{buffer}` is no window, so peers do not map it, and the kernel puts and gets there; allocate a window, or give \
         the collective a schedule through slots (`#[schedule(transport = staged)]`)"
    )]
    Unmapped {
        /// The buffer.
        buffer: Buffer,
    },
    /// Memory of another GPU than the rank's.
    #[error(
        "`{buffer}` is memory of GPU {device}, and not of this rank's; give each rank memory of its own GPU"
    )]
    ForeignMemory {
        /// The buffer.
        buffer: Buffer,
        /// The rank whose memory it is.
        device: u32,
    },
    /// A buffer of the wrong size.
    #[error(
        "`{buffer}` has {bytes} bytes, but {units} x {count} {dtype} are {need}; give it a slice of exactly that size"
    )]
    Size {
        /// The buffer.
        buffer: Buffer,
        /// Bytes of the view.
        bytes: u64,
        /// Bytes due.
        need: u64,
        /// Units of the buffer.
        units: u32,
        /// Elements of a unit.
        count: u64,
        /// Element type.
        dtype: DType,
    },
    /// A count whose bytes do not fit 64 bits.
    #[error("`{buffer}` of {units} x {count} elements is larger than any memory; give it a smaller count")]
    TooLarge {
        /// The buffer.
        buffer: Buffer,
        /// Units of the buffer.
        units: u32,
        /// Elements of a unit.
        count: u64,
    },
    /// A buffer that does not begin at a multiple of the element size.
    #[error(
        "`{buffer}` begins at window offset {offset}, which no {dtype} can; begin it at a multiple of {}",
        dtype.bytes()
    )]
    Misaligned {
        /// The buffer.
        buffer: Buffer,
        /// The offset among the windows.
        offset: u64,
        /// Element type.
        dtype: DType,
    },
    /// A window that is not there yet, or no more, on every rank.
    #[error(
        "`{buffer}` is a window of which {} has no memory; allocate it on every rank before the first call, and keep it \
         until the last one has ended",
        ranks(missing)
    )]
    NotEverywhere {
        /// The buffer.
        buffer: Buffer,
        /// The ranks without it.
        missing: Vec<Rank>,
    },
    /// No memory where there has to be some.
    #[error(
        "`{buffer}` is at address 0, where no memory is; give it the address of memory on the rank's GPU"
    )]
    Null {
        /// The buffer.
        buffer: Buffer,
    },
    /// Two buffers that share bytes.
    #[error(
        "`input` (bytes {}..{}) and `output` (bytes {}..{}) of one window overlap; give it disjoint ones",
        input.start, input.end, output.start, output.end
    )]
    Overlap {
        /// Bytes of the window.
        input: Range<u64>,
        /// Bytes of the window.
        output: Range<u64>,
    },
    /// A count that a `divisible` collective does not admit.
    #[error(
        "it is `divisible` into {chunks} chunks, which count {count} is not; give it a multiple of {chunks}"
    )]
    NotDivisible {
        /// Elements of a unit.
        count: u64,
        /// Chunks of a unit.
        chunks: u32,
    },
    /// A stream in a world that has none.
    #[error("virtual GPUs have no streams; call `enqueue` without one")]
    NoStreams,
    /// A stream of another device.
    #[error(
        "the stream is not of GPU {device}, which is this rank's; give it a stream of that one's context"
    )]
    ForeignStream {
        /// The rank's device.
        device: u32,
    },
    /// Ranks that share a launch have queued different calls.
    #[error("it calls {own}, but rank {} calls {theirs}; ranks on one GPU run in one launch: make them equal", peer.0)]
    Differs {
        /// This rank's call.
        own: Box<Signature>,
        /// The other rank.
        peer: Rank,
        /// Its call.
        theirs: Box<Signature>,
    },
    /// Ranks that share a launch have queued it on different streams.
    #[error("rank {} queued it on another stream; ranks on one GPU run in one launch: use one stream", peer.0)]
    OtherStream {
        /// The other rank.
        peer: Rank,
    },
    /// A count whose tiles would give more signals than the counters of a narrow build tell apart.
    #[error(
        "count {count} takes more than the {most} tiles that counters of this width can count; take fewer"
    )]
    Tiles {
        /// Elements of a unit.
        count: u64,
        /// The most tiles.
        most: u64,
    },
}

/// One thing wrong with the inputs of a run.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InputProblem {
    /// More or fewer inputs than ranks.
    #[error("there are {given} inputs for {ranks} ranks; give one a rank")]
    Number {
        /// Inputs given.
        given: usize,
        /// World size.
        ranks: u32,
    },
    /// An input that is not made of whole units of whole elements.
    #[error("the input of rank {} has {bytes} bytes, no multiple of {units} x {} ({dtype})", rank.0, dtype.bytes())]
    Uneven {
        /// The rank whose input it is.
        rank: Rank,
        /// Its size.
        bytes: usize,
        /// Units of an input.
        units: u32,
        /// Element type.
        dtype: DType,
    },
    /// An input of another size than the others.
    #[error("the input of rank {} has {bytes} bytes, but must have {need}, as the first has", rank.0)]
    Size {
        /// The rank whose input it is.
        rank: Rank,
        /// Its size in bytes.
        bytes: usize,
        /// The size due in bytes.
        need: usize,
    },
    /// An input of a rank that has none.
    #[error("rank {} has no input, but is given {bytes} bytes; give it an empty one", rank.0)]
    Unwanted {
        /// The rank.
        rank: Rank,
        /// The size given in bytes.
        bytes: usize,
    },
}

fn list(problems: &[impl fmt::Display]) -> String {
    problems.iter().fold(String::new(), |mut text, problem| {
        // Writing to a string does not fail.
        let _ = write!(text, "\n  {problem}");
        text
    })
}

/// `rank 3`, `ranks 0, 1, 2`.
pub(crate) fn ranks(ranks: &[Rank]) -> String {
    let numbers: Vec<_> = ranks.iter().map(|rank| rank.0.to_string()).collect();
    format!("rank{} {}", if ranks.len() == 1 { "" } else { "s" }, numbers.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nvrtc::NvrtcError;

    #[test]
    fn only_what_the_machine_lacks_is_missing() {
        assert!(Error::Compile(CompileError::Nvrtc(NvrtcError::NoCacheFolder)).is_missing());
        assert!(Error::Cuda(CudaError::NoGpu).is_missing());
        assert!(!Error::NoRanks.is_missing());
    }
}
