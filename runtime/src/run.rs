//! Whole runs: inputs in, results out. For examples, tests and the command line.

use crate::communicator::{Communicator, Window};
use crate::error::{Error, InputProblem};
use crate::gpus::Statistics;
use crate::kernel::LoadedKernel;
use crate::launch::Call;
use crate::state::LoadTimes;
use crate::units;
use crate::world::World;
use quadrille_compiler::collective::Collective;
use quadrille_compiler::program::dtype::{DType, RedOp};
use quadrille_compiler::program::ids::{Buffer, Rank};
use quadrille_compiler::program::kind::{Kind, Shape};
use std::time::{Duration, Instant};

/// A call of a collective on all ranks.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// The collective.
    pub collective: &'a Collective,
    /// Element type.
    pub dtype: DType,
    /// Reduction operator.
    pub op: RedOp,
    /// The input of each rank, one a rank, empty for a rank that has none. The count
    /// follows from the sizes.
    pub inputs: &'a [Vec<u8>],
}

/// The results of calls that ran back to back.
#[derive(Clone, PartialEq, Debug)]
pub struct Batch {
    /// The bytes that each rank received: by call, then by rank.
    pub outputs: Vec<Vec<Vec<u8>>>,
    /// The statistics of all calls together.
    pub statistics: Statistics,
    /// The time that loading took.
    pub load: LoadTimes,
    /// The wall time of all calls on this machine: on virtual GPUs it says nothing of a real GPU.
    pub execute: Duration,
}

/// The result of one call.
#[derive(Clone, PartialEq, Debug)]
pub struct Run {
    /// The bytes that each rank received.
    pub outputs: Vec<Vec<u8>>,
    /// The statistics of the call.
    pub statistics: Statistics,
    /// The time that loading took.
    pub load: LoadTimes,
    /// The wall time of the call on this machine: on virtual GPUs it says nothing of a real GPU.
    pub execute: Duration,
}

/// Communicators that are kept from call to call, so that their counters go on.
#[derive(Debug)]
pub struct Session {
    world: World,
    communicators: Vec<Communicator>,
}

impl World {
    /// Loads a collective, calls it once with these inputs (as in [`Job::inputs`]), and gives the results.
    ///
    /// # Errors
    /// Those of [`Communicator::load`] and [`World::synchronize`]; [`Error::Inputs`] where inputs do not fit;
    /// [`Error::Unwritten`] where a result was not written.
    pub fn run(
        &self,
        collective: &Collective,
        dtype: DType,
        op: RedOp,
        inputs: &[Vec<u8>],
    ) -> Result<Run, Error> {
        self.session()?.run(collective, dtype, op, inputs)
    }

    /// Communicators for several runs.
    ///
    /// # Errors
    /// Those of [`World::communicators`].
    pub fn session(&self) -> Result<Session, Error> {
        Ok(Session { world: self.clone(), communicators: self.communicators()? })
    }
}

/// A call that is ready to be queued.
#[derive(Debug)]
pub struct PreparedCall {
    kernels: Vec<LoadedKernel>,
    /// Of each rank.
    buffers: Vec<Buffers>,
    count: u64,
}

#[derive(Debug)]
enum Buffers {
    InPlace(Window),
    OutOfPlace { input: Window, output: Window },
}

impl PreparedCall {
    /// Queues the call of one rank.
    ///
    /// # Errors
    /// Those of [`LoadedKernel::enqueue`].
    pub fn enqueue(&self, rank: usize) -> Result<(), Error> {
        self.kernels[rank].enqueue(match &self.buffers[rank] {
            Buffers::InPlace(data) => Call::in_place(data, self.count),
            Buffers::OutOfPlace { input, output } => Call::out_of_place(input, output, self.count),
        })
    }

    /// The `data` or `output` of a rank.
    pub fn result(&self, rank: usize) -> &Window {
        match &self.buffers[rank] {
            Buffers::InPlace(window) | Buffers::OutOfPlace { output: window, .. } => window,
        }
    }
}

impl Session {
    /// The world of the communicators.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// The communicators, one a rank.
    pub fn communicators(&self) -> &[Communicator] {
        &self.communicators
    }

    /// As [`World::run`], on this session's communicators.
    ///
    /// # Errors
    /// Those of [`World::run`].
    pub fn run(
        &self,
        collective: &Collective,
        dtype: DType,
        op: RedOp,
        inputs: &[Vec<u8>],
    ) -> Result<Run, Error> {
        let Batch { outputs, statistics, load, execute } =
            self.run_all(&[Job { collective, dtype, op, inputs }])?;
        Ok(Run { outputs: outputs.into_iter().flatten().collect(), statistics, load, execute })
    }

    /// Loads and queues all jobs, so that no host stands between their calls, and runs them.
    ///
    /// # Errors
    /// Those of [`World::run`].
    pub fn run_all(&self, jobs: &[Job<'_>]) -> Result<Batch, Error> {
        let mut load = LoadTimes::default();
        let mut prepared = Vec::new();
        for job in jobs {
            let mut kernels = Vec::new();
            for communicator in &self.communicators {
                let (kernel, times) = communicator.load_timed(job.collective, job.dtype, job.op)?;
                load += times;
                kernels.push(kernel);
            }
            prepared.push(self.prepare(kernels, job.inputs)?);
        }
        Ok(Batch { load, ..self.execute(&prepared)? })
    }

    /// As [`World::synchronize_measured`].
    ///
    /// # Errors
    /// Those of [`World::synchronize`].
    pub fn synchronize(&self) -> Result<Statistics, Error> {
        self.world.shared.synchronize()
    }

    /// Allocates and fills the buffers of a call.
    /// Kernels and inputs are one a rank, by rank.
    ///
    /// # Errors
    /// [`Error::Inputs`] where the inputs do not fit, those of [`Communicator::alloc`], and [`Error::NoRanks`] without kernels.
    pub fn prepare(&self, kernels: Vec<LoadedKernel>, inputs: &[Vec<u8>]) -> Result<PreparedCall, Error> {
        let Some(first) = kernels.first() else { return Err(Error::NoRanks) };
        let (shape, dtype) = (*first.shape(), first.cuda().dtype);
        let count = count(&shape, dtype, inputs)
            .map_err(|problems| Error::Inputs { program: first.name().to_owned(), problems })?;
        let unit = count * dtype.bytes() as u64;
        // A symmetric window has one size, also on ranks that have no input.
        let largest = |buffer| {
            let units = (0..shape.ranks).map(|rank| shape.units(buffer, Rank(rank)));
            u64::from(units.max().unwrap_or(0)) * unit
        };
        let mut buffers = Vec::new();
        for (communicator, input) in self.communicators.iter().zip(inputs) {
            let place = if shape.in_place { Buffer::Data } else { Buffer::Input };
            let window = communicator.alloc(largest(place))?;
            for (to, from) in units::placement(&shape, communicator.rank()) {
                let (to, from) = (u64::from(to) * unit, u64::from(from) * unit);
                window.slice(to..to + unit)?.write(&input[from as usize..(from + unit) as usize])?;
            }
            buffers.push(if shape.in_place {
                Buffers::InPlace(window)
            } else {
                // What a custom collective leaves open is read all the same.
                let bytes = largest(Buffer::Output);
                let output = match shape.kind {
                    Kind::Custom => communicator.alloc_zeroed(bytes)?,
                    _ => communicator.alloc(bytes)?,
                };
                Buffers::OutOfPlace { input: window, output }
            });
        }
        Ok(PreparedCall { kernels, buffers, count })
    }

    /// Queues the calls of all ranks and runs them back to back.
    ///
    /// # Errors
    /// Those of [`LoadedKernel::enqueue`] and [`World::synchronize`]; [`Error::Unwritten`] where a result was not written.
    pub fn execute(&self, calls: &[PreparedCall]) -> Result<Batch, Error> {
        for call in calls {
            (0..call.kernels.len()).try_for_each(|rank| call.enqueue(rank))?;
        }
        let started = Instant::now();
        let statistics = self.synchronize()?;
        let execute = started.elapsed();
        let mut outputs = Vec::new();
        for call in calls {
            let results = call.kernels.iter().zip(&call.buffers).map(|(kernel, buffers)| {
                let unit = call.count * kernel.cuda().dtype.bytes() as u64;
                let (Buffers::InPlace(window) | Buffers::OutOfPlace { output: window, .. }) = buffers;
                let units = units::result_units(kernel.shape(), kernel.rank);
                window.slice(u64::from(units.start) * unit..u64::from(units.end) * unit)?.read()
            });
            outputs.push(results.collect::<Result<_, Error>>()?);
        }
        Ok(Batch { outputs, statistics, load: LoadTimes::default(), execute })
    }
}

/// Elements of a unit, by the sizes of the inputs; everything that is wrong with them.
pub fn count(shape: &Shape, dtype: DType, inputs: &[Vec<u8>]) -> Result<u64, Vec<InputProblem>> {
    let mut problems = Vec::new();
    if inputs.len() != shape.ranks as usize {
        problems.push(InputProblem::Number { given: inputs.len(), ranks: shape.ranks });
    }
    let mut first: Option<(usize, u32)> = None;
    for (input, rank) in inputs.iter().zip((0..shape.ranks).map(Rank)) {
        let bytes = input.len();
        let units = units::input_units(shape, rank);
        if units == 0 {
            if bytes != 0 {
                problems.push(InputProblem::Unwanted { rank, bytes });
            }
            continue;
        }
        match first {
            Some((need, _)) if need != bytes => problems.push(InputProblem::Size { rank, bytes, need }),
            Some(_) => {}
            None => {
                first = Some((bytes, units));
                if !bytes.is_multiple_of(units as usize * dtype.bytes()) {
                    problems.push(InputProblem::Uneven { rank, bytes, units, dtype });
                }
            }
        }
    }
    match first {
        Some((bytes, units)) if problems.is_empty() => Ok((bytes / (units as usize * dtype.bytes())) as u64),
        _ => Err(problems),
    }
}
