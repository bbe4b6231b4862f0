//! Calls: checked, queued, and run once every rank has queued them.

use crate::communicator::{ALIGNMENT, Group, SCRATCH, Slot, Window, multicast_label};
use crate::error::{CallProblem, Error};
use crate::failure;
use crate::kernel::{Kernel, Loaded};
use crate::world::{Shared, State, Statistics};
use quadrille_compiler::abi::{self, FifoLayout, Params, StatusRecord, call_hash};
use quadrille_compiler::dtype::{DType, RedOp};
use quadrille_compiler::ids::{Buffer, Rank};
use quadrille_vgpu::Fault;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, MutexGuard};

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
}

impl Queued {
    pub(crate) fn views(&self) -> impl Iterator<Item = View> {
        self.input.into_iter().chain([self.output])
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

    fn params(&self, group: &Group, rank: usize) -> Params {
        let ranks = 0..group.counters.len();
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
            counters: group.counters.clone(),
            fifos: group.fifos.clone(),
        }
    }
}

impl Kernel {
    /// Queues a call of this rank. Calls of one rank run in the order of queueing, when [`crate::World::synchronize`]
    /// finds that every rank has queued them.
    ///
    /// # Errors
    /// [`Error::Call`] with everything that is wrong with the arguments; nothing is queued then.
    pub fn enqueue(&self, call: Call<'_>) -> Result<(), Error> {
        let problems = self.problems(&call);
        if !problems.is_empty() {
            let program = self.loaded.name.clone();
            return Err(Error::Call { program, rank: self.rank, problems });
        }
        let (input, output) = match call.buffers {
            Buffers::InPlace(data) => (None, View::of(data)),
            Buffers::OutOfPlace { input, output } => (Some(View::of(input)), View::of(output)),
        };
        let mut state = self.group.shared.lock();
        let group = self.group.live(&mut state.groups)?;
        let program = self.loaded.clone();
        group.queue[self.rank.0 as usize].push_back(Queued { program, count: call.count, input, output });
        Ok(())
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

/// The calls of one group that run now: of each rank, equally many.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) group: u64,
    pub(crate) calls: Vec<Vec<Queued>>,
}

impl Shared {
    /// Runs every call that all ranks have queued, group by group and in order; then says which others are missing.
    pub(crate) fn synchronize(&self) -> Result<Statistics, Error> {
        let mut state = self.lock();
        state.reserve(&self.fifo_layout())?;
        let batches = state.take_ready();
        self.finish(state, &batches)
    }

    /// Runs every call of every rank, as on GPUs that do not wait for each other before a launch.
    #[cfg(test)]
    pub(crate) fn synchronize_alone(&self) -> Result<Statistics, Error> {
        let mut state = self.lock();
        state.reserve(&self.fifo_layout())?;
        let all = |group: &mut Group| group.queue.iter_mut().map(|queue| queue.drain(..).collect()).collect();
        let batches: Vec<Batch> =
            state.groups.iter_mut().map(|(&id, group)| Batch { group: id, calls: all(group) }).collect();
        self.finish(state, &batches)
    }

    fn finish(&self, mut state: MutexGuard<'_, State>, batches: &[Batch]) -> Result<Statistics, Error> {
        let statistics = if batches.is_empty() {
            Statistics::default()
        } else {
            let outcome = state.execute(batches);
            let records = state.records(batches);
            match outcome {
                Ok(Some(statistics)) if records.is_empty() => statistics,
                outcome => {
                    let layouts = (self.counter_layout(), self.fifo_layout());
                    let failure =
                        failure::explain(layouts, self.patience(), batches, &records, outcome.err());
                    return Err(Error::Failed(state.fail(failure)));
                }
            }
        };
        for batch in batches {
            if let Some(group) = state.groups.get_mut(&batch.group) {
                group.done += batch.calls.first().map_or(0, Vec::len) as u64;
            }
        }
        state.groups.values().find_map(Group::missing).map_or(Ok(statistics), Err)
    }
}

impl State {
    /// Makes each group's scratch as large as its queued calls need, FIFOs where they need any, and multicast ranges of the
    /// windows that go through the switch; nothing is running that uses them.
    fn reserve(&mut self, fifos: &FifoLayout) -> Result<(), Error> {
        for group in self.groups.values_mut() {
            let staged = group.queue.iter().flatten().any(|call| call.program.cuda.staged);
            if staged && group.fifos.contains(&0) {
                for (address, rank) in group.fifos.iter_mut().zip(0..) {
                    *address = self.gpus.alloc_fifos(Rank(rank), fifos)?;
                }
            }
            let switched = group.queue.iter().flatten().filter(|call| call.program.cuda.multicast);
            let mut windows: Vec<usize> =
                switched.flat_map(|call| call.views().map(|view| view.window).collect::<Vec<_>>()).collect();
            windows.sort_unstable();
            windows.dedup();
            for index in windows {
                let slot = &mut group.windows[index];
                // Where a rank has no memory of a window, no program reaches all ranks' through the switch.
                let members: Option<Vec<u64>> = slot.addresses.iter().copied().collect();
                if let (None, Some(members)) = (slot.multicast, members) {
                    slot.multicast =
                        Some(self.gpus.multicast(&members, slot.bytes, &multicast_label(index))?);
                }
            }
            let need = group.queue.iter().flatten().map(Queued::scratch_bytes).max().unwrap_or(0);
            if need <= group.scratch.bytes {
                continue;
            }
            group.scratch.bytes = 0;
            for (address, rank) in group.scratch.addresses.iter_mut().zip(0..) {
                self.gpus.free(std::mem::take(address));
                *address = self.gpus.alloc(Rank(rank), need, ALIGNMENT, SCRATCH, false)?;
            }
            group.scratch.bytes = need;
        }
        Ok(())
    }

    /// Takes from the queues what every rank of a group has queued.
    fn take_ready(&mut self) -> Vec<Batch> {
        let mut batches = Vec::new();
        for (&id, group) in &mut self.groups {
            let ready = group.queue.iter().map(VecDeque::len).min().unwrap_or(0);
            if ready > 0 {
                let calls = group.queue.iter_mut().map(|queue| queue.drain(..ready).collect()).collect();
                batches.push(Batch { group: id, calls });
            }
        }
        batches
    }

    /// Launches and runs; `None` where a kernel has written its status record.
    fn execute(&mut self, batches: &[Batch]) -> Result<Option<Statistics>, Fault> {
        for batch in batches {
            let Some(group) = self.groups.get(&batch.group) else { continue };
            for (rank, calls) in batch.calls.iter().enumerate() {
                for call in calls {
                    let params = call.params(group, rank).encode();
                    self.gpus.launch(Rank(rank as u32), &call.program, params)?;
                }
            }
        }
        self.gpus.run()
    }

    /// The status records that are not empty, each with the index of its batch.
    fn records(&self, batches: &[Batch]) -> Vec<(usize, StatusRecord)> {
        let mut records = Vec::new();
        for (index, batch) in batches.iter().enumerate() {
            let group = self.groups.get(&batch.group);
            for &address in group.iter().flat_map(|group| &group.status) {
                let bytes = self.gpus.read(address, StatusRecord::BYTES).ok();
                let record = bytes.and_then(|bytes| StatusRecord::decode(&bytes));
                records.extend(record.map(|record| (index, record)));
            }
        }
        records
    }
}

impl Group {
    /// The first call that some ranks have queued and others have not.
    fn missing(&self) -> Option<Error> {
        let (missing, enqueued): (Vec<_>, Vec<_>) =
            (0..self.queue.len()).partition(|&rank| self.queue[rank].is_empty());
        let first = *enqueued.first()?;
        let ranks = |list: Vec<usize>| list.into_iter().map(|rank| Rank(rank as u32)).collect();
        Some(Error::NotEnqueued {
            call: self.done + 1,
            program: Box::new(self.queue[first].front()?.signature()),
            missing: ranks(missing),
            enqueued: ranks(enqueued),
        })
    }
}
