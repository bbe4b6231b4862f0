//! Calls among other kernels, as collectives are called in earnest.
//!
//! Before each call a kernel of every rank stores the input; after it another one takes the result. All of them are
//! queued, on windows that later calls use again. A collective that touches a peer's buffer before the peer's call has
//! begun, or after it may have ended, races with these kernels.

use quadrille_compiler::collective::{Collective, Evaluate};
use quadrille_compiler::diagnostic::{Diagnostic, LineColumn, Loc, SourceFile};
use quadrille_compiler::evaluate::record::{Header, OpOrigin, Recorder};
use quadrille_compiler::options::StatementOptions;
use quadrille_compiler::program::ProgramSetting;
use quadrille_compiler::program::RawSite;
use quadrille_compiler::program::RawSlice;
use quadrille_compiler::program::dtype::{DType, RedOp};
use quadrille_compiler::program::ids::{Buffer, Rank};
use quadrille_compiler::program::kind::{Kind, Shape};
use quadrille_compiler::program::{Program, Trails};
use quadrille_runtime::internals::LOCAL_COPY;
use quadrille_runtime::{
    Batch, Call, Communicator, Error, Job, LoadTimes, LoadedKernel, Session, Window, count, units,
};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// What fills memory that has no value yet: no test data have it.
const UNSET: u8 = 0xa5;

/// A call of a chain.
#[derive(Clone, Debug)]
pub struct ChainLink<'a> {
    /// The kernel of each rank.
    pub kernels: Vec<LoadedKernel>,
    /// The input of each rank.
    pub inputs: &'a [Vec<u8>],
}

/// One symmetric window: each rank's memory.
type SymmetricWindow = Vec<Window>;

/// The windows of a chain by what they are for and how long they are.
#[derive(Default)]
struct Windows(Vec<(Buffer, u64, SymmetricWindow)>);

/// What one call reads and stores.
struct ChainStep {
    count: u64,
    /// Bytes of the two views.
    bytes: [u64; 2],
    /// What the kernel before the call reads.
    staging: SymmetricWindow,
    /// `data` in place, else `input`.
    first: SymmetricWindow,
    /// `data` in place, else `output`.
    second: SymmetricWindow,
    /// What the kernel after the call stores.
    result: SymmetricWindow,
}

/// As [`Session::run_all`], but with the calls among kernels: every rank has kernels queued that store the input before
/// each call and take the result after it, and calls of equal size use the same windows again. Windows begin `shifts`
/// elements behind an aligned address: `data` or `input` by the first, `output` by the second. The kernels before and
/// after are local; they do not show in [`quadrille_runtime::Statistics::links`].
///
/// # Errors
/// Those of [`Session::run_all`].
pub fn run_among_kernels(session: &Session, jobs: &[Job<'_>], shifts: [u64; 2]) -> Result<Batch, Error> {
    let mut load = LoadTimes::default();
    let mut links = Vec::new();
    for job in jobs {
        let mut kernels = Vec::new();
        for communicator in session.communicators() {
            let (kernel, times) = communicator.load_timed(job.collective, job.dtype, job.op)?;
            load += times;
            kernels.push(kernel);
        }
        links.push(ChainLink { kernels, inputs: job.inputs });
    }
    Ok(Batch { load, ..run_chain(session, &links, shifts)? })
}

/// As [`run_among_kernels`], with kernels that have been loaded.
///
/// # Errors
/// Those of [`run_among_kernels`].
pub fn run_chain(session: &Session, links: &[ChainLink<'_>], shifts: [u64; 2]) -> Result<Batch, Error> {
    let all = session.communicators();
    let copies: Vec<LoadedKernel> =
        all.iter().map(|c| c.load(copy(), DType::U8, RedOp::Sum)).collect::<Result<_, _>>()?;
    let mut windows = Windows::default();
    let steps: Vec<ChainStep> =
        links.iter().map(|link| windows.step(all, link, shifts)).collect::<Result<_, _>>()?;
    for (link, step) in links.iter().zip(&steps) {
        for (rank, kernel) in link.kernels.iter().enumerate() {
            let ChainStep { count, bytes, staging, first, second, result } = step;
            let (first, second) = (&first[rank], &second[rank]);
            copies[rank].enqueue(Call::out_of_place(&staging[rank], first, bytes[0]))?;
            kernel.enqueue(match kernel.shape().in_place {
                true => Call::in_place(first, *count),
                false => Call::out_of_place(first, second, *count),
            })?;
            copies[rank].enqueue(Call::out_of_place(second, &result[rank], bytes[1]))?;
        }
    }
    let started = Instant::now();
    let statistics = session.synchronize()?;
    let execute = started.elapsed();
    let mut outputs = Vec::new();
    for (link, step) in links.iter().zip(&steps) {
        let results = link.kernels.iter().zip(&step.result).map(|(kernel, result)| {
            let unit = step.count * kernel.cuda().dtype.bytes() as u64;
            let units = units::result_units(kernel.shape(), kernel.rank());
            result.slice(u64::from(units.start) * unit..u64::from(units.end) * unit)?.read()
        });
        outputs.push(results.collect::<Result<_, Error>>()?);
    }
    Ok(Batch { outputs, statistics, load: LoadTimes::default(), execute })
}

impl Windows {
    /// The windows of a call, those for staging filled.
    fn step(
        &mut self,
        all: &[Communicator],
        link: &ChainLink<'_>,
        shifts: [u64; 2],
    ) -> Result<ChainStep, Error> {
        let Some(kernel) = link.kernels.first() else { return Err(Error::NoRanks) };
        let (shape, dtype) = (*kernel.shape(), kernel.cuda().dtype);
        let count = count(&shape, dtype, link.inputs)
            .map_err(|problems| Error::Inputs { program: kernel.name().to_owned(), problems })?;
        let element = dtype.bytes() as u64;
        let size = |buffer| {
            let units = (0..shape.ranks).map(|rank| shape.units(buffer, Rank(rank)));
            u64::from(units.max().unwrap_or(0)) * count * element
        };
        let buffers = if shape.in_place { [Buffer::Data; 2] } else { [Buffer::Input, Buffer::Output] };
        let bytes = buffers.map(size);
        let shifts = if shape.in_place { [shifts[0]; 2] } else { shifts }.map(|elements| elements * element);
        let first = self.views(all, buffers[0], bytes[0], shifts[0])?;
        let second =
            if shape.in_place { first.clone() } else { self.views(all, buffers[1], bytes[1], shifts[1])? };
        let staging = symmetric(all, bytes[0])?;
        for ((communicator, window), input) in all.iter().zip(&staging).zip(link.inputs) {
            let mut contents = vec![UNSET; bytes[0] as usize];
            let unit = (count * element) as usize;
            for (to, from) in units::placement(&shape, communicator.rank()) {
                let (to, from) = (to as usize * unit, from as usize * unit);
                contents[to..to + unit].copy_from_slice(&input[from..from + unit]);
            }
            window.write(&contents)?;
        }
        let result = symmetric(all, bytes[1])?;
        Ok(ChainStep { count, bytes, staging, first, second, result })
    }

    /// Views of `bytes` bytes behind `shift` bytes of a window: one that an earlier call has used, if there is one.
    fn views(
        &mut self,
        all: &[Communicator],
        buffer: Buffer,
        bytes: u64,
        shift: u64,
    ) -> Result<SymmetricWindow, Error> {
        let used =
            |(role, length, _): &&(Buffer, u64, SymmetricWindow)| (*role, *length) == (buffer, shift + bytes);
        let windows = match self.0.iter().find(used) {
            Some((.., windows)) => windows.clone(),
            None => {
                let windows = symmetric(all, shift + bytes)?;
                for window in &windows {
                    window.write(&vec![UNSET; window.len() as usize])?;
                }
                self.0.push((buffer, shift + bytes, windows.clone()));
                windows
            }
        };
        windows.iter().map(|window| window.slice(shift..shift + bytes)).collect()
    }
}

fn symmetric(all: &[Communicator], bytes: u64) -> Result<SymmetricWindow, Error> {
    all.iter().map(|communicator| communicator.alloc(bytes)).collect()
}

/// The kernel before and after a call: each rank copies one of its buffers to another one of its own.
pub fn copy() -> &'static Collective {
    static COPY: OnceLock<Collective> = OnceLock::new();
    COPY.get_or_init(|| Collective {
        name: LOCAL_COPY.to_owned(),
        kind: Kind::Custom,
        in_place: false,
        ranks: Vec::new(),
        only: false,
        root: 0,
        params: Vec::new(),
        schedules: Vec::new(),
        chosen: 0,
        source: source(),
        name_loc: STATEMENT,
        evaluate: Arc::new(LocalCopy),
    })
}

/// What stands in messages for what such a kernel does.
const TEXT: &str = "the user's kernel before or after a call";
const STATEMENT: Loc =
    Loc { start: LineColumn { line: 1, column: 0 }, end: LineColumn { line: 1, column: TEXT.len() as u32 } };

fn source() -> SourceFile {
    SourceFile { path: LOCAL_COPY.into(), first_line: 1, text: format!("{TEXT}\n").into() }
}

struct LocalCopy;

impl Evaluate for LocalCopy {
    fn program(&self, setting: &ProgramSetting) -> Result<Program, Vec<Diagnostic>> {
        let shape = Shape::new(Kind::Custom, setting.ranks, 1);
        let mut recorder = Recorder::new(Header::new(LOCAL_COPY, shape, source(), STATEMENT));
        let statement = recorder.statement(STATEMENT, StatementOptions::default());
        let origin = OpOrigin { statement, trail: Trails::ROOT };
        for rank in (0..setting.ranks).map(i64::from) {
            let chunk = |buffer| [RawSlice { buffer, rank, start: 0, end: 1 }];
            let (from, to) = (chunk(Buffer::Input), chunk(Buffer::Output));
            recorder.record(origin, &from, &to, RawSite::default());
            recorder.expect(origin, &from, &to);
        }
        recorder.finish()
    }
}
