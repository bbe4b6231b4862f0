//! Calls: checked, queued, and run once every rank has queued them.

use crate::argument::Argument;
use crate::error::{CallProblem, Error};
use crate::gpus::Loaded;
use crate::kernel::LoadedKernel;
use crate::state::{Queued, View};
use cudarc::driver::CudaStream;
use quadrille_compiler::kernel::abi;
use quadrille_compiler::program::ids::Buffer;
use std::ops::Range;
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
    InPlace(Argument<'a>),
    OutOfPlace { input: Argument<'a>, output: Argument<'a> },
}

impl<'a> Call<'a> {
    /// The call of an in-place collective: on a [`crate::Window`], or on [`crate::Plain`] memory where the schedule goes
    /// through slots.
    pub fn in_place(data: impl Into<Argument<'a>>, count: u64) -> Call<'a> {
        Call { buffers: Buffers::InPlace(data.into()), count }
    }

    /// The call of an out-of-place collective. On a rank that has no input (broadcast and scatter, but for the root)
    /// `input` is any view with the offset that the root's has; so is `output` where there is none (reduce, gather).
    pub fn out_of_place(
        input: impl Into<Argument<'a>>,
        output: impl Into<Argument<'a>>,
        count: u64,
    ) -> Call<'a> {
        Call { buffers: Buffers::OutOfPlace { input: input.into(), output: output.into() }, count }
    }

    fn arguments(&self) -> impl Iterator<Item = (Buffer, Argument<'a>)> {
        let [first, second] = match self.buffers {
            Buffers::InPlace(data) => [Some((Buffer::Data, data)), None],
            Buffers::OutOfPlace { input, output } => {
                [Some((Buffer::Input, input)), Some((Buffer::Output, output))]
            }
        };
        first.into_iter().chain(second)
    }
}

impl LoadedKernel {
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

    /// As [`LoadedKernel::enqueue`], on a stream of the caller's: the call runs after what is on it, and what is put on it later
    /// runs after the call. While the stream is captured, the call goes into the caller's graph.
    ///
    /// # Calls in graphs of the caller's
    /// What the call needs (windows, scratch, FIFOs, code) is kept as long as the communicator, and each launch is a call of its
    /// own, as the counters lie in the GPUs' memory. When the graph is launched, and whether it runs, nobody can know but who
    /// launches it. So it is the caller who has to see to this ([`crate::World::capture`] sees to all of it):
    /// - The graph is launched on every rank or on none, as often and in the same order among the communicator's other calls.
    /// - One call of a communicator runs at a time: a launch is not put behind calls on other streams, nor those behind it.
    ///   Use one stream for both, or order the streams by events.
    /// - [`crate::World::synchronize`] does not wait for it: wait for the stream. Until then windows that it uses are neither
    ///   read nor written by the host, no memory is allocated or given up and nothing is loaded, though it would not be refused.
    /// - Its thread blocks are not added up with those of other communicators' calls on the same GPU. Where together they may be
    ///   more than fit ([`LoadedKernel::cuda`] says how many there are), let them run one after the other.
    /// - Its launches have ended before the last handle of the communicator is given up, and before new communicators replace
    ///   those that a failure has ended.
    ///
    /// A wait of it that takes too long is given up like any; the next call of the world's, or [`crate::World::synchronize`],
    /// tells of it.
    ///
    /// # Errors
    /// Those of [`LoadedKernel::enqueue`]; among the problems, a stream of another device, and a world of virtual GPUs, which
    /// have none.
    pub fn enqueue_on(&self, stream: &CudaStream, call: Call<'_>) -> Result<(), Error> {
        let context = Some(stream.context().cu_ctx() as usize);
        self.enqueue_in(call, Some(stream.cu_stream() as usize), context)
    }

    pub(crate) fn enqueue_with(&self, call: Call<'_>, stream: Option<usize>) -> Result<(), Error> {
        self.enqueue_in(call, stream, None)
    }

    /// On a stream, if that is said, of a context, if that is known.
    pub(crate) fn enqueue_in(
        &self,
        call: Call<'_>,
        stream: Option<usize>,
        context: Option<usize>,
    ) -> Result<(), Error> {
        let mut problems = self.problems(&call);
        let mut state = self.group.shared.lock();
        let own = state.gpus.device(self.rank);
        problems.extend(call.arguments().filter_map(|(buffer, argument)| match argument {
            Argument::Plain(plain) => {
                let device = plain.device().filter(|device| own != Some(*device))?;
                Some(CallProblem::ForeignMemory { buffer, device })
            }
            Argument::Window(_) => None,
        }));
        if let Some(stream) = stream {
            problems.extend(state.gpus.admits(self.rank, stream, context)?);
        }
        if !problems.is_empty() {
            let program = self.loaded.name.clone();
            return Err(Error::Call { program, rank: self.rank, problems });
        }
        let (input, output) = match call.buffers {
            Buffers::InPlace(data) => (None, view(data)),
            Buffers::OutOfPlace { input, output } => (Some(view(input)), view(output)),
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
        for (buffer, argument) in call.arguments() {
            let size = cuda.dtype.bytes() as u64;
            let bytes = match argument {
                Argument::Window(window) if !Arc::ptr_eq(&window.memory.group, &self.group) => {
                    problems.push(CallProblem::ForeignWindow { buffer });
                    continue;
                }
                Argument::Window(window) if window.memory.rank != self.rank => {
                    problems.push(CallProblem::PeersWindow { buffer, peer: window.memory.rank });
                    continue;
                }
                Argument::Window(window) => {
                    if !window.offset().is_multiple_of(size) {
                        let (offset, dtype) = (window.offset(), cuda.dtype);
                        problems.push(CallProblem::Misaligned { buffer, offset, dtype });
                    }
                    window.len()
                }
                Argument::Plain(plain) => {
                    if cuda.reaches_peers {
                        problems.push(CallProblem::Unmapped { buffer });
                        continue;
                    }
                    if plain.address() == 0 && !plain.is_empty() {
                        problems.push(CallProblem::Null { buffer });
                    }
                    if !plain.address().is_multiple_of(size) {
                        let (offset, dtype) = (plain.address(), cuda.dtype);
                        problems.push(CallProblem::Misaligned { buffer, offset, dtype });
                    }
                    plain.len()
                }
            };
            let units = shape.units(buffer, self.rank);
            if units == 0 {
                continue;
            }
            match count.checked_mul(size).and_then(|bytes| bytes.checked_mul(u64::from(units))) {
                None => problems.push(CallProblem::TooLarge { buffer, units, count }),
                Some(need) if need == bytes => {}
                Some(need) => {
                    let dtype = cuda.dtype;
                    problems.push(CallProblem::Size { buffer, bytes, need, units, count, dtype });
                }
            }
        }
        if let Buffers::OutOfPlace { input, output } = call.buffers {
            let (first, second) = (extent(input), extent(output));
            if first.start.max(second.start) < first.end.min(second.end) {
                let (input, output) = match (input, output) {
                    (Argument::Window(input), Argument::Window(output)) => {
                        (input.range.clone(), output.range.clone())
                    }
                    _ => (first, second),
                };
                problems.push(CallProblem::Overlap { input, output });
            }
        }
        problems
    }
}

/// The addresses of a buffer.
fn extent(argument: Argument<'_>) -> Range<u64> {
    let (address, bytes) = match argument {
        Argument::Window(window) => (window.address(), window.len()),
        Argument::Plain(plain) => (plain.address(), plain.len()),
    };
    address..address.saturating_add(bytes)
}

/// The view that a call queues of an argument.
fn view(argument: Argument<'_>) -> View {
    match argument {
        Argument::Window(window) => {
            let (memory, start) = (&window.memory, window.range.start);
            View::Window { window: memory.index, start, offset: window.offset() }
        }
        Argument::Plain(plain) => View::Plain { address: plain.address() },
    }
}
