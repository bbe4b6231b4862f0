//! The GPUs of a world: one a rank, or one for all.

use super::code;
use super::flights::{Flight, flight};
use super::heap::Heap;
use crate::driver::{
    Context, CudaError, Device, Driver, DriverGraph, Event, Function, LaunchShape, Module, MulticastObject,
    Pinned, Stream,
};
use crate::error::{CallProblem, Error};
use crate::gpus::{Binary, CallProgress, FIFOS, Gpus, Loaded, On, Place, Start, Statistics, Trouble};
use crate::nvrtc::{self, Arch, Code, CodeKind, CompileError};
use cudarc::driver::sys::CUstream;
use quadrille_compiler::emit::Cuda;
use quadrille_compiler::kernel::abi::{FifoLayout, StatusRecord};
use quadrille_compiler::program::ids::Rank;
use std::collections::BTreeMap;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

/// 32-bit words of a status record and of what lies behind it.
const STATUS_WORDS: usize = 16;

/// Dropped in the order of the fields: what binds memory before the memory, streams and contexts last.
#[derive(Debug)]
pub(crate) struct CudaGpus {
    flights: BTreeMap<(u64, u32), Flight>,
    /// Of each rank's own stream.
    graphs: BTreeMap<u64, Vec<DriverGraph>>,
    next_graph: u64,
    multicasts: Vec<MulticastObject>,
    heap: Heap,
    /// Status records, by address: in which memory, and its first word there.
    status: BTreeMap<u64, (Arc<Pinned>, usize)>,
    /// Of each rank, for its calls.
    streams: Vec<Stream>,
    /// Of each rank, for the host's copies: what goes on while calls are captured, and is not captured itself.
    copies: Vec<Stream>,
    /// Of each rank; the same one where they share a device.
    contexts: Vec<Arc<Context>>,
    shared: bool,
    arch: Arch,
    /// The modules that are loaded, each in a context of its own.
    functions: Vec<Arc<[Function]>>,
    /// The longest time that kernels may take to leave.
    leaving: Duration,
    /// A kernel may run that has not left, and that no flight knows.
    stuck: bool,
    driver: Driver,
}

/// Bytes of the memory by which it is tried what devices can do.
const TEST_BYTES: u64 = 4096;

/// Bytes of the copies that a link's bandwidth is measured by.
const LARGE: u64 = 64 << 20;

/// The measured copies from one GPU to another one's memory.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub struct Measured {
    /// True if the bytes were there.
    pub arrived: bool,
    /// Of copies of 64 MiB, in GB/s (10^9 bytes).
    pub bandwidth: f64,
    /// Of a copy of 8 bytes, one behind the other.
    pub latency: Duration,
}

impl CudaGpus {
    /// Starts the devices and reserves addresses.
    pub(super) fn new(
        driver: &Driver,
        ordinals: &[u32],
        shared: bool,
        arch: Arch,
        leaving: Duration,
    ) -> Result<CudaGpus, CudaError> {
        let mut contexts: Vec<Arc<Context>> = Vec::new();
        for &ordinal in ordinals {
            let context = match contexts.first() {
                Some(first) if shared => first.clone(),
                _ => Context::new(&Device::new(driver, ordinal)?)?,
            };
            contexts.push(context);
        }
        let of_each = || contexts.iter().map(Stream::new).collect::<Result<Vec<_>, _>>();
        let (streams, copies) = (of_each()?, of_each()?);
        let distinct = if shared { &contexts[..1] } else { &contexts[..] };
        let devices = distinct.iter().map(|context| context.device().clone()).collect();
        let heap = Heap::new(driver, devices, ordinals.len() as u32)?;
        Ok(CudaGpus {
            flights: BTreeMap::new(),
            graphs: BTreeMap::new(),
            next_graph: 0,
            multicasts: Vec::new(),
            heap,
            status: BTreeMap::new(),
            streams,
            copies,
            contexts,
            shared,
            arch,
            functions: Vec::new(),
            leaving,
            stuck: false,
            driver: driver.clone(),
        })
    }

    /// Some memory of each device, to try with what they can do. It ends with them.
    pub(super) fn test_memory(&mut self) -> Result<Vec<u64>, Error> {
        let place = self.reserve(TEST_BYTES)?;
        let ranks = if self.shared { 1 } else { self.contexts.len() as u32 };
        let what = "a test of peer access";
        (0..ranks).map(|rank| self.alloc((Rank(rank), place), TEST_BYTES, what, true)).collect()
    }

    /// Writes into each peer's memory and reads it there.
    pub(super) fn test_peers(&self, memory: &[u64]) -> Result<(), CudaError> {
        for (device, &own) in memory.iter().enumerate() {
            for (peer, &theirs) in memory.iter().enumerate().filter(|&(peer, _)| peer != device) {
                if !self.arrives((device, own), (peer, theirs), TEST_BYTES)? {
                    let number = |rank: usize| self.contexts[rank].device().ordinal();
                    let (device, peer) = (number(device), number(peer));
                    return Err(CudaError::PeerWriteLost { device, peer });
                }
            }
        }
        Ok(())
    }

    /// Makes a multicast object of the memory.
    pub(super) fn test_multicast(&mut self, memory: &[u64]) -> Result<(), Error> {
        self.multicast(memory, TEST_BYTES, "a test of multicast").map(drop)
    }

    /// Returns true if what a rank's device writes to a peer's memory is there.
    fn arrives(
        &self,
        (device, own): (usize, u64),
        (peer, theirs): (usize, u64),
        bytes: u64,
    ) -> Result<bool, CudaError> {
        let pattern: Vec<u8> = (0..bytes).map(|i| (i * 7 + device as u64 * 31 + 1) as u8).collect();
        self.streams[peer].fill(theirs, bytes, 0)?;
        self.streams[device].write(own, &pattern)?;
        self.streams[device].copy(theirs, own, bytes)?;
        self.streams[device].synchronize()?;
        Ok(self.streams[peer].read(theirs, bytes)? == pattern)
    }

    /// The mean time of a copy by a rank's device, of some in a row.
    fn timed(
        &self,
        (to, from): (u64, u64),
        bytes: u64,
        rank: usize,
        copies: u32,
    ) -> Result<Duration, CudaError> {
        let (stream, context) = (&self.copies[rank], &self.contexts[rank]);
        let (start, end) = (Event::new(context)?, Event::new(context)?);
        // Once before, as the first of its kind takes longer.
        stream.copy(to, from, bytes)?;
        start.record(stream)?;
        (0..copies).try_for_each(|_| stream.copy(to, from, bytes))?;
        end.record(stream)?;
        stream.synchronize()?;
        Ok(end.since(&start)? / copies)
    }

    /// Writes from rank 0 to rank 1, and how fast.
    pub(super) fn measure(&mut self) -> Result<Measured, Error> {
        let place = self.reserve(LARGE)?;
        let [own, theirs] =
            [0, 1].map(|rank| self.alloc((Rank(rank), place), LARGE, "a test of a link", true));
        let (own, theirs) = (own?, theirs?);
        let arrived = self.arrives((0, own), (1, theirs), TEST_BYTES)?;
        let ends = (theirs, own);
        let (large, latency) = (self.timed(ends, LARGE, 0, 8)?, self.timed(ends, 8, 0, 64)?);
        Ok(Measured { arrived, bandwidth: LARGE as f64 / large.as_secs_f64() / 1e9, latency })
    }

    fn blocks(&self, cuda: &Cuda, rank: usize) -> u64 {
        cuda.launch_blocks(Rank(rank as u32)).into()
    }

    /// Makes sure that a call's blocks are resident together with those of other groups' calls that run.
    fn admit(&self, rank: usize, program: &Loaded, most: u64, group: u64) -> Result<(), CudaError> {
        let mut blocks = self.blocks(&program.cuda, rank);
        for ((of, on), flight) in &self.flights {
            if *of != group && (self.shared || *on as usize == rank) && flight.is_running()? {
                blocks += flight.blocks;
            }
        }
        if blocks <= most {
            return Ok(());
        }
        let (program, device) = (program.name.clone(), self.contexts[rank].device().ordinal());
        Err(CudaError::Residency { program, device, blocks, most })
    }

    /// Puts a launch on its stream, behind the group's calls before it; whether it went into a graph.
    fn fly(
        &mut self,
        rank: usize,
        function: &Function,
        shape: LaunchShape,
        params: &[u8],
        on: On,
    ) -> Result<bool, CudaError> {
        let context = &self.contexts[rank];
        let raw = on.stream.map_or(self.streams[rank].raw(), |stream| stream as CUstream);
        // SAFETY: the caller has lent the stream for this call; the other one is ours.
        let stream = unsafe { Stream::borrowed(context, raw) };
        if stream.is_captured()? {
            // SAFETY: as below; memory of captured calls is kept as long as our graph of them, or the group.
            unsafe { function.launch(&stream, shape, params)? };
            return Ok(true);
        }
        let flight = flight(&mut self.flights, (on.group, rank as u32), context)?;
        let own = on.stream.is_none();
        flight.begin(&stream, own)?;
        // SAFETY: the parameter block is what the kernel's text says; it points to memory of the group, which is kept until
        // the call has ended, and is mapped for all devices of the world.
        unsafe { function.launch(&stream, shape, params)? };
        flight.blocks = flight.blocks.max(shape.blocks.into());
        if let Err(error) = flight.end(&stream, own) {
            // Nothing would tell when it ends.
            self.recall(&[stream]);
            return Err(error);
        }
        Ok(false)
    }

    /// Makes kernels leave their waits.
    fn tell(&self) {
        for (pinned, first) in self.status.values() {
            if let Some(word) = pinned.words().get(first + STATUS_WORDS / 2) {
                word.store(1, Ordering::Release);
            }
        }
    }

    /// Makes all kernels leave, as some would wait for what never comes, and waits for those on these streams.
    fn recall(&mut self, streams: &[Stream]) {
        self.tell();
        // A stream that cannot be asked is of a context in which nothing runs any more.
        let runs = || streams.iter().any(|stream| !stream.is_idle().unwrap_or(true));
        self.stuck |= !ended_within(self.leaving, runs);
    }

    /// Returns true if a call may run.
    fn is_flying(&self) -> bool {
        self.flights.values().any(|flight| flight.is_running().unwrap_or(false))
    }

    fn stream_at(&self, address: u64) -> &Stream {
        let rank = self.heap.rank(address).unwrap_or(0);
        self.copies.get(rank).unwrap_or(&self.copies[0])
    }
}

impl Gpus for CudaGpus {
    fn target(&self) -> Result<(Arch, CodeKind), Error> {
        let nvrtc = |error| Error::Compile(CompileError::Nvrtc(error));
        let version = nvrtc::version().map_err(nvrtc)?;
        let known = nvrtc::supported().map_err(nvrtc)?;
        Ok(code::target(self.arch, self.driver.version()?, version, known))
    }

    /// On every device, before any call: the driver loads nothing lazily while a peer's kernel waits.
    fn load(&mut self, code: &Code, cuda: &Cuda, program: &str) -> Result<Binary, Error> {
        let nvrtc = nvrtc::version().map_err(|error| Error::Compile(CompileError::Nvrtc(error)))?;
        let code = match code {
            Code::Ptx(ptx) => Code::Ptx(code::lowered(ptx, self.arch, self.driver.version()?, nvrtc)?),
            cubin @ Code::Cubin(_) => cubin.clone(),
        };
        let mut functions = Vec::new();
        for (rank, context) in self.contexts.iter().enumerate() {
            let function = match functions.first() {
                Some(first) if self.shared => Clone::clone(first),
                _ => Module::load(context, &code, program)?.function(&cuda.entry)?,
            };
            let (blocks, most) = (self.blocks(cuda, rank), function.resident(cuda.threads)?);
            if blocks > most {
                let (program, device) = (program.to_owned(), context.device().ordinal());
                return Err(CudaError::Residency { program, device, blocks, most }.into());
            }
            functions.push(function);
        }
        let functions: Arc<[Function]> = functions.into();
        self.functions.push(functions.clone());
        Ok(Binary::Cuda(functions))
    }

    fn reserve(&mut self, bytes: u64) -> Result<Place, Error> {
        match self.heap.reserve(bytes) {
            Some(place) => Ok(place),
            None => {
                let (device, free) = (self.contexts[0].device().ordinal(), self.contexts[0].free_memory()?);
                let what = "a window".to_owned();
                Err(CudaError::OutOfMemory { device, bytes, free, what }.into())
            }
        }
    }

    fn release(&mut self, place: Place, bytes: u64) {
        self.heap.release(place, bytes);
    }

    fn alloc(&mut self, at: (Rank, Place), bytes: u64, label: &str, zeroed: bool) -> Result<u64, Error> {
        let rank = at.0.0 as usize;
        let address = self.heap.alloc(at, &self.contexts[rank], bytes, label)?;
        // Zeros before anybody is told of the address.
        if zeroed && let Err(error) = self.copies[rank].fill(address, bytes, 0) {
            self.heap.free(address);
            return Err(error.into());
        }
        Ok(address)
    }

    fn alloc_fifos(&mut self, at: (Rank, Place), layout: &FifoLayout) -> Result<u64, Error> {
        self.alloc(at, layout.bytes(), FIFOS, true)
    }

    /// In the host's memory: the host reads them, and writes the abort words behind them, while kernels run.
    fn alloc_status(&mut self) -> Result<Vec<u64>, Error> {
        let ranks = self.contexts.len();
        let words = ranks * STATUS_WORDS;
        let pinned = Arc::new(Pinned::new(&self.contexts[0], words, "status records")?);
        let mut addresses = Vec::new();
        for rank in 0..ranks {
            let first = rank * STATUS_WORDS;
            let address = pinned.address() + 4 * first as u64;
            self.status.insert(address, (pinned.clone(), first));
            addresses.push(address);
        }
        Ok(addresses)
    }

    fn status(&self, address: u64) -> Option<StatusRecord> {
        let (pinned, first) = self.status.get(&address)?;
        let words = pinned.words().get(*first..first + STATUS_WORDS)?;
        let bytes: Vec<u8> =
            words.iter().flat_map(|word| word.load(Ordering::Acquire).to_le_bytes()).collect();
        StatusRecord::decode(&bytes)
    }

    fn multicast(&mut self, members: &[u64], _: u64, _: &str) -> Result<u64, Error> {
        let memory: Option<Vec<_>> =
            members.iter().map(|&address| self.heap.memory(address).cloned()).collect();
        let Some(memory) = memory else { return Err(Error::NoGroup) };
        let multicast = MulticastObject::new(&self.driver, &memory)?;
        let address = multicast.address();
        self.multicasts.push(multicast);
        Ok(address)
    }

    fn free(&mut self, address: u64) {
        if let Some(memory) = self.heap.memory(address) {
            self.multicasts.retain(|multicast| !multicast.binds(memory));
        }
        self.heap.free(address);
        self.status.remove(&address);
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), Error> {
        Ok(self.stream_at(address).write(address, bytes)?)
    }

    fn read(&self, address: u64, bytes: u64) -> Result<Vec<u8>, Trouble> {
        Ok(self.stream_at(address).read(address, bytes).map_err(Error::from)?)
    }

    fn copy(&mut self, to: u64, from: u64, bytes: u64, times: u32) -> Result<Option<Duration>, Trouble> {
        // Registered memory is not the heap's.
        let rank = self.heap.rank(from).filter(|&rank| rank < self.contexts.len()).unwrap_or(0);
        Ok(Some(self.timed((to, from), bytes, rank, times.max(1)).map_err(Error::from)?))
    }

    fn device(&self, rank: Rank) -> Option<u32> {
        self.contexts.get(rank.0 as usize).map(|context| context.device().ordinal())
    }

    fn start(&self) -> Start {
        if self.shared { Start::Together } else { Start::AtOnce }
    }

    fn admits(&self, rank: Rank, stream: usize, known: Option<usize>) -> Result<Option<CallProblem>, Error> {
        let context = &self.contexts[rank.0 as usize];
        // SAFETY: the caller has lent the stream for the call that is being checked.
        let stream = unsafe { Stream::borrowed(context, stream as CUstream) };
        let device = context.device().ordinal();
        let own = known.is_none_or(|known| known == context.raw() as usize) && stream.is_of_context()?;
        Ok((!own).then_some(CallProblem::ForeignStream { device }))
    }

    fn launch(
        &mut self,
        rank: Rank,
        program: &Arc<Loaded>,
        params: Vec<u8>,
        on: On,
    ) -> Result<bool, Trouble> {
        let number = rank.0 as usize;
        let Binary::Cuda(functions) = &program.binary else { return Ok(false) };
        let Some(function) = functions.get(number) else { return Ok(false) };
        let blocks = self.blocks(&program.cuda, number);
        if blocks == 0 {
            return Ok(false);
        }
        let most = function.resident(program.cuda.threads).map_err(Error::from)?;
        self.admit(number, program, most, on.group).map_err(Error::from)?;
        let shape =
            LaunchShape { blocks: blocks as u32, threads: program.cuda.threads, cooperative: self.shared };
        Ok(self.fly(number, function, shape, &params, on).map_err(Error::from)?)
    }

    fn begin_capture(&mut self) -> Result<(), Error> {
        for (begun, stream) in self.streams.iter().enumerate() {
            if let Err(error) = stream.begin_capture() {
                for stream in &self.streams[..begun] {
                    let _ = stream.end_capture();
                }
                return Err(error.into());
            }
        }
        Ok(())
    }

    fn end_capture(&mut self) -> Result<u64, Error> {
        // All of them end, whatever becomes of one.
        let graphs: Vec<Result<DriverGraph, CudaError>> =
            self.streams.iter().map(Stream::end_capture).collect();
        let graphs = graphs.into_iter().collect::<Result<Vec<_>, _>>()?;
        self.next_graph += 1;
        self.graphs.insert(self.next_graph, graphs);
        Ok(self.next_graph)
    }

    fn replay(&mut self, graph: u64, groups: &[u64]) -> Result<(), Trouble> {
        let CudaGpus { flights, graphs, streams, contexts, .. } = self;
        let Some(graphs) = graphs.get(&graph) else { return Ok(()) };
        let launch = |(rank, graph): (usize, &DriverGraph)| -> Result<(), CudaError> {
            let stream = &streams[rank];
            for &group in groups {
                flight(flights, (group, rank as u32), &contexts[rank])?.begin(stream, true)?;
            }
            graph.launch(stream)?;
            for &group in groups {
                flight(flights, (group, rank as u32), &contexts[rank])?.end(stream, true)?;
            }
            Ok(())
        };
        if let Err(error) = graphs.iter().enumerate().try_for_each(launch) {
            // The ranks that have begun would wait for the others.
            let streams = mem::take(&mut self.streams);
            self.recall(&streams);
            self.streams = streams;
            return Err(Error::from(error).into());
        }
        Ok(())
    }

    fn forget(&mut self, graph: u64) {
        self.graphs.remove(&graph);
    }

    fn progress(&mut self) -> Result<CallProgress, Trouble> {
        let mut elapsed: Option<Duration> = None;
        for flight in self.flights.values() {
            if flight.is_running().map_err(Error::from)? {
                return Ok(CallProgress::Running);
            }
        }
        for flight in self.flights.values_mut() {
            elapsed = elapsed.max(flight.settle().map_err(Error::from)?);
        }
        Ok(CallProgress::Done(Box::new(Statistics { elapsed, ..Statistics::default() })))
    }

    fn flies(&self, group: u64, rank: Rank) -> bool {
        // Where calls start together they are those of rank 0.
        let rank = if self.shared { 0 } else { rank.0 };
        let running = |flight: &Flight| flight.is_running().unwrap_or(false);
        self.flights.get(&(group, rank)).is_some_and(running)
    }

    fn disband(&mut self, group: u64) {
        self.flights.retain(|(of, _), _| *of != group);
    }

    fn abort(&mut self) {
        self.tell();
    }
}

/// Returns true if something stops running within so long.
fn ended_within(time: Duration, runs: impl Fn() -> bool) -> bool {
    let begun = Instant::now();
    while runs() {
        if begun.elapsed() > time {
            return false;
        }
        thread::sleep(Duration::from_millis(1));
    }
    true
}

impl Drop for CudaGpus {
    /// Nothing is freed under a kernel that runs: it is told to leave, and if it does not, its memory and code stay.
    fn drop(&mut self) {
        if !self.stuck {
            if !self.is_flying() {
                return;
            }
            self.tell();
            if ended_within(self.leaving, || self.is_flying()) {
                return;
            }
        }
        mem::forget(mem::take(&mut self.multicasts));
        mem::forget(mem::take(&mut self.status));
        mem::forget(mem::take(&mut self.functions));
        self.heap.leave();
    }
}
