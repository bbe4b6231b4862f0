//! Calls: checked, queued, and run once every rank has queued them.

use crate::communicator::{Group, Slot, Window};
use crate::error::{CallProblem, Error};
use crate::kernel::{Kernel, Loaded};
use cudarc::driver::CudaStream;
use quadrille_compiler::abi::{self, Params, call_hash};
use quadrille_compiler::dtype::{DType, RedOp};
use quadrille_compiler::ids::{Buffer, Rank};
use std::fmt;
use std::sync::Arc;

/// The arguments of one rank's call. A unit has `count` elements (the `count` of NCCL's call of the kind); how many
/// units a buffer has follows from the kind. The same views of the same windows are due on every rank.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    buffers: Buffers<'a>,
    count: u64,
}

#[derive(Clone, Copy, Debug)]
enum Buffers<'a> {
    InPlace(&'a Window),
    OutOfPlace { input: &'a Window, output: &'a Window },
}

impl<'a> Call<'a> {
    /// The call of an in-place collective.
    pub fn in_place(data: &'a Window, count: u64) -> Call<'a> {
        Call { buffers: Buffers::InPlace(data), count }
    }

    /// The call of an out-of-place collective. On a rank that has no input (broadcast and scatter, but for the root)
    /// `input` is any view with the offset that the root's has; so is `output` where there is none (reduce, gather).
    pub fn out_of_place(input: &'a Window, output: &'a Window, count: u64) -> Call<'a> {
        Call { buffers: Buffers::OutOfPlace { input, output }, count }
    }

    fn views(&self) -> impl Iterator<Item = (Buffer, &'a Window)> {
        let [first, second] = match self.buffers {
            Buffers::InPlace(data) => [Some((Buffer::Data, data)), None],
            Buffers::OutOfPlace { input, output } => {
                [Some((Buffer::Input, input)), Some((Buffer::Output, output))]
            }
        };
        first.into_iter().chain(second)
    }
}

/// What a rank calls: what must be equal on every rank.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Signature {
    /// The collective's name.
    pub program: String,
    /// Elements of one unit.
    pub count: u64,
    /// Element type.
    pub dtype: DType,
    /// Reduction operator.
    pub op: RedOp,
    /// Window offsets of `data`, or of `input` and `output`, in bytes.
    pub offsets: Vec<u64>,
    /// Hash of the kernel's text.
    pub kernel: u64,
}

/// `ring_all_reduce of 1000 bf16 (sum), window offset 0`
impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let offsets: Vec<_> = self.offsets.iter().map(u64::to_string).collect();
        let s = if offsets.len() == 1 { "" } else { "s" };
        let Signature { program, count, dtype, op, .. } = self;
        write!(f, "{program}, count {count}, {dtype} {op}, window offset{s} {}", offsets.join(" and "))
    }
}

/// A view of a window, as a rank has queued it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View {
    pub(crate) window: usize,
    /// Where it begins in the window.
    pub(crate) start: u64,
    /// Where it begins among the windows.
    offset: u64,
}

impl View {
    fn of(window: &Window) -> View {
        View { window: window.memory.index, start: window.range.start, offset: window.offset() }
    }

    /// Its multicast address; 0 where there is none.
    fn multicast(self, windows: &[Slot]) -> u64 {
        let slot = windows.get(self.window);
        slot.and_then(|slot| slot.multicast).map_or(0, |address| address + self.start)
    }

    /// Its address on `rank`; 0 where that rank has no memory of the window.
    fn address(self, windows: &[Slot], rank: usize) -> u64 {
        let slot = windows.get(self.window);
        slot.and_then(|slot| slot.addresses[rank]).map_or(0, |address| address + self.start)
    }
}

/// A call that has been checked and not run.
#[derive(Clone, Debug)]
pub(crate) struct Queued {
    pub(crate) program: Arc<Loaded>,
    pub(crate) count: u64,
    /// `None` in place.
    pub(crate) input: Option<View>,
    /// `data` in place.
    pub(crate) output: View,
    /// The caller's stream, a `CUstream`; `None` for the rank's own.
    pub(crate) stream: Option<usize>,
}

impl Queued {
    pub(crate) fn views(&self) -> impl Iterator<Item = View> {
        self.input.into_iter().chain([self.output])
    }

    pub(crate) fn touches(&self, window: usize) -> bool {
        self.views().any(|view| view.window == window)
    }

    /// The views with the names that the program has for them.
    pub(crate) fn buffers(&self) -> impl Iterator<Item = (Buffer, View)> {
        let output = if self.input.is_some() { Buffer::Output } else { Buffer::Data };
        self.input.map(|view| (Buffer::Input, view)).into_iter().chain([(output, self.output)])
    }

    pub(crate) fn signature(&self) -> Signature {
        let Loaded { name, cuda, hash, .. } = &*self.program;
        Signature {
            program: name.clone(),
            count: self.count,
            dtype: cuda.dtype,
            op: cuda.op,
            offsets: self.views().map(|view| view.offset).collect(),
            kernel: *hash,
        }
    }

    /// What the start signals carry.
    pub(crate) fn hash(&self) -> u32 {
        let Loaded { cuda, hash, .. } = &*self.program;
        let input = self.input.unwrap_or(self.output).offset;
        call_hash(*hash, self.count, cuda.dtype, cuda.op, &[input, self.output.offset])
    }

    /// Bytes of scratch that the call needs on every rank.
    pub(crate) fn scratch_bytes(&self) -> u64 {
        let Loaded { shape, divisible, cuda, .. } = &*self.program;
        let chunk = abi::chunk_elements(self.count, shape.chunks, *divisible, cuda.dtype);
        u64::from(shape.scratch) * chunk * cuda.dtype.bytes() as u64
    }

    pub(crate) fn params(&self, group: &Group, rank: usize) -> Params {
        let ranks = 0..group.counters.addresses.len();
        let shape = &self.program.shape;
        let addresses = |view: View, buffer| -> Vec<u64> {
            let address = |peer| match shape.units(buffer, Rank(peer as u32)) {
                0 => 0,
                _ => view.address(&group.windows, peer),
            };
            ranks.clone().map(address).collect()
        };
        let (input, output) = match self.input {
            None => {
                let data = addresses(self.output, Buffer::Data);
                (data.clone(), data)
            }
            Some(input) => (addresses(input, Buffer::Input), addresses(self.output, Buffer::Output)),
        };
        Params {
            rank: Rank(rank as u32),
            count: self.count,
            hash: self.hash(),
            patience: group.patience,
            abort: group.abort[rank],
            status: group.status[rank],
            multicast_input: self.input.unwrap_or(self.output).multicast(&group.windows),
            multicast_output: self.output.multicast(&group.windows),
            scalar: self.program.cuda.op.argument(self.program.cuda.dtype),
            input,
            output,
            scratch: group.scratch.addresses.clone(),
            counters: group.counters.addresses.clone(),
            fifos: group.fifos.addresses.clone(),
        }
    }
}

impl Kernel {
    /// Queues a call of this rank. Calls of one rank run in the order of queueing. On virtual GPUs they run when
    /// [`crate::World::synchronize`] finds that every rank has queued them; on real ones at once, on a stream of the
    /// communicator's own, and [`crate::World::synchronize`] waits for them.
    ///
    /// # Errors
    /// [`Error::Call`] with everything that is wrong with the arguments, [`Error::InFlight`] where the call needs memory
    /// that cannot be made while others run, [`Error::Failed`] where an earlier call has failed; nothing is queued then.
    pub fn enqueue(&self, call: Call<'_>) -> Result<(), Error> {
        self.enqueue_with(call, None)
    }

    /// As [`Kernel::enqueue`], on a stream of the caller's: the call runs after what is on it, and what is put on it later
    /// runs after the call. While the stream is captured, the call goes into the graph.
    ///
    /// # Errors
    /// Those of [`Kernel::enqueue`]; among the problems, a stream of another device, and a world of virtual GPUs, which
    /// have none.
    pub fn enqueue_on(&self, stream: &CudaStream, call: Call<'_>) -> Result<(), Error> {
        self.enqueue_with(call, Some(stream.cu_stream() as usize))
    }

    pub(crate) fn enqueue_with(&self, call: Call<'_>, stream: Option<usize>) -> Result<(), Error> {
        let mut problems = self.problems(&call);
        let mut state = self.group.shared.lock();
        if let Some(stream) = stream {
            problems.extend(state.gpus.admits(self.rank, stream)?);
        }
        if !problems.is_empty() {
            let program = self.loaded.name.clone();
            return Err(Error::Call { program, rank: self.rank, problems });
        }
        let (input, output) = match call.buffers {
            Buffers::InPlace(data) => (None, View::of(data)),
            Buffers::OutOfPlace { input, output } => (Some(View::of(input)), View::of(output)),
        };
        let program = self.loaded.clone();
        let group = self.group.live(&mut state.groups)?;
        group.queue[self.rank.0 as usize].push_back(Queued {
            program,
            count: call.count,
            input,
            output,
            stream,
        });
        self.group.shared.advance(&mut state, self.group.id, self.rank)
    }

    fn problems(&self, call: &Call<'_>) -> Vec<CallProblem> {
        let Loaded { shape, cuda, divisible, .. } = &*self.loaded;
        let in_place = matches!(call.buffers, Buffers::InPlace(_));
        if in_place != shape.in_place {
            return vec![if in_place { CallProblem::OneBuffer } else { CallProblem::TwoBuffers }];
        }
        let mut problems = Vec::new();
        let count = call.count;
        if *divisible && !count.is_multiple_of(u64::from(shape.chunks)) {
            problems.push(CallProblem::NotDivisible { count, chunks: shape.chunks });
        }
        if let Some((most, bytes)) = cuda.tiles {
            let chunk = abi::chunk_elements(count, shape.chunks, *divisible, cuda.dtype);
            let tiles = (u128::from(chunk) * cuda.dtype.bytes() as u128).div_ceil(bytes.into());
            if tiles > most.into() {
                problems.push(CallProblem::Tiles { count, most });
            }
        }
        for (buffer, window) in call.views() {
            if !Arc::ptr_eq(&window.memory.group, &self.group) {
                problems.push(CallProblem::ForeignWindow { buffer });
                continue;
            }
            if window.memory.rank != self.rank {
                problems.push(CallProblem::PeersWindow { buffer, peer: window.memory.rank });
                continue;
            }
            let size = cuda.dtype.bytes() as u64;
            if !window.offset().is_multiple_of(size) {
                problems.push(CallProblem::Misaligned { buffer, offset: window.offset(), dtype: cuda.dtype });
            }
            let units = shape.units(buffer, self.rank);
            if units == 0 {
                continue;
            }
            match count.checked_mul(size).and_then(|bytes| bytes.checked_mul(u64::from(units))) {
                None => problems.push(CallProblem::TooLarge { buffer, units, count }),
                Some(need) if need == window.len() => {}
                Some(need) => {
                    let (bytes, dtype) = (window.len(), cuda.dtype);
                    problems.push(CallProblem::Size { buffer, bytes, need, units, count, dtype });
                }
            }
        }
        if let Buffers::OutOfPlace { input, output } = call.buffers
            && Arc::ptr_eq(&input.memory, &output.memory)
            && input.range.start.max(output.range.start) < input.range.end.min(output.range.end)
        {
            let (input, output) = (input.range.clone(), output.range.clone());
            problems.push(CallProblem::Overlap { input, output });
        }
        problems
    }
}
