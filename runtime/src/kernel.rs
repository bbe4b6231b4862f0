//! Loading a collective: proved and lowered for the world, compiled once a text, shared by all ranks.

use crate::communicator::{Communicator, GroupHandle};
use crate::driver::Function;
use crate::error::Error;
use crate::nvrtc::{self, Compiled};
use crate::world::{Gpus, Shared, World};
use quadrille_compiler::collective::Collective;
use quadrille_compiler::emit::Cuda;
use quadrille_compiler::program::dtype::{DType, RedOp};
use quadrille_compiler::program::ids::Rank;
use quadrille_compiler::program::kind::Shape;
use quadrille_vgpu::PtxModule;
use std::collections::HashMap;
use std::fmt;
use std::ops::AddAssign;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A collective that one rank can call.
#[derive(Clone)]
pub struct LoadedKernel {
    pub(crate) loaded: Arc<Loaded>,
    pub(crate) group: Arc<GroupHandle>,
    pub(crate) rank: Rank,
}

/// A collective, compiled for a world.
pub(crate) struct Loaded {
    /// The collective's name.
    pub(crate) name: String,
    pub(crate) shape: Shape,
    /// Only counts divisible by the number of chunks are admitted.
    pub(crate) divisible: bool,
    pub(crate) cuda: Cuda,
    /// [`Cuda::hash`].
    pub(crate) hash: u64,
    /// The name that the text has in line tables; differs between texts.
    pub(crate) file: String,
    pub(crate) binary: Binary,
}

/// Code that GPUs have loaded.
#[derive(Clone, Debug)]
pub(crate) enum Binary {
    /// Of virtual GPUs.
    Ptx(Arc<PtxModule>),
    /// Of real ones: the kernel on each rank's device.
    Cuda(Arc<[Function]>),
}

impl Loaded {
    /// The statement that all steps are for; `None` where there are several.
    pub(crate) fn only_statement(&self) -> Option<&str> {
        let mut steps = self.cuda.lines.iter().map(|line| line.what.as_str()).filter(|what| !what.is_empty());
        let first = steps.next()?;
        steps.all(|what| what == first).then_some(first)
    }
}

/// The time that loading took; zero for kernels that had been loaded before.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LoadTimes {
    /// Evaluating, proving, lowering and emitting.
    pub lower: Duration,
    /// NVRTC or the kernel cache, and reading the PTX.
    pub compile: Duration,
    /// Of that: until the GPUs had the code that NVRTC or the cache gave.
    pub load: Duration,
    /// Texts that NVRTC compiled.
    pub compiled: u32,
    /// Texts that the kernel cache had compiled.
    pub cached: u32,
}

impl AddAssign for LoadTimes {
    fn add_assign(&mut self, other: LoadTimes) {
        self.lower += other.lower;
        self.compile += other.compile;
        self.load += other.load;
        self.compiled += other.compiled;
        self.cached += other.cached;
    }
}

/// The collectives and binaries that a world has loaded.
#[derive(Default)]
pub(crate) struct LoadCache {
    /// The cache on disk, which outlives the world.
    disk: Option<nvrtc::Cache>,
    /// Holding a collective keeps its evaluator's address from being used for another.
    collectives: Vec<(Collective, DType, RedOp, Arc<Loaded>)>,
    /// By CUDA text.
    binaries: HashMap<String, Binary>,
}

impl World {
    /// From now on, what this world compiles is kept in `cache` and taken from it. Without this a world compiles
    /// everything itself.
    pub fn keep_kernels(&self, cache: nvrtc::Cache) {
        self.shared.cache().disk = Some(cache);
    }
}

impl Communicator {
    /// Makes a collective callable: stage 1 and stage 2 for this world's [`crate::World::domain`], the kernel, NVRTC.
    /// What a world has loaded once is kept.
    ///
    /// # Errors
    /// [`Error::Program`] where the collective is wrong or does not admit the world's size, [`Error::Compile`] where
    /// there is no NVRTC.
    pub fn load(&self, collective: &Collective, dtype: DType, op: RedOp) -> Result<LoadedKernel, Error> {
        Ok(self.load_timed(collective, dtype, op)?.0)
    }

    /// As [`Communicator::load`], with the time that it took.
    pub fn load_timed(
        &self,
        collective: &Collective,
        dtype: DType,
        op: RedOp,
    ) -> Result<(LoadedKernel, LoadTimes), Error> {
        let (loaded, times) = self.group.shared.load(collective, dtype, op)?;
        Ok((self.kernel(loaded), times))
    }

    pub(crate) fn kernel(&self, loaded: Arc<Loaded>) -> LoadedKernel {
        LoadedKernel { loaded, group: self.group.clone(), rank: self.rank }
    }
}

impl LoadedKernel {
    /// The rank that can call it.
    pub fn rank(&self) -> Rank {
        self.rank
    }

    /// The collective's name.
    pub fn name(&self) -> &str {
        &self.loaded.name
    }

    /// Kind, world size, chunks and placement: what sizes of buffers follow from.
    pub fn shape(&self) -> &Shape {
        &self.loaded.shape
    }

    /// The CUDA text and its launch shape.
    pub fn cuda(&self) -> &Cuda {
        &self.loaded.cuda
    }
}

impl Shared {
    fn load(
        &self,
        collective: &Collective,
        dtype: DType,
        op: RedOp,
    ) -> Result<(Arc<Loaded>, LoadTimes), Error> {
        let mut cache = self.cache();
        if let Some(loaded) = cache.find(collective, dtype, op) {
            return Ok((loaded, LoadTimes::default()));
        }
        let started = Instant::now();
        let program = collective.program(self.ranks())?;
        let cuda = collective.cuda_in(&self.domain(), dtype, op, self.widths())?;
        let lower = started.elapsed();
        let name = collective.name.clone();
        let mut state = self.lock();
        state.quiet("load a kernel")?;
        let (loaded, times) =
            cache.compile(&mut *state.gpus, name, program.shape, program.divisible, cuda)?;
        drop(state);
        cache.collectives.push((collective.clone(), dtype, op, loaded.clone()));
        Ok((loaded, LoadTimes { lower, ..times }))
    }
}

impl LoadCache {
    fn find(&self, collective: &Collective, dtype: DType, op: RedOp) -> Option<Arc<Loaded>> {
        let same = |known: &Collective| {
            Arc::ptr_eq(&known.evaluate, &collective.evaluate)
                && (&known.name, known.in_place, &known.ranks, known.only)
                    == (&collective.name, collective.in_place, &collective.ranks, collective.only)
                && (known.root, &known.params, known.options())
                    == (collective.root, &collective.params, collective.options())
        };
        let mut entries = self.collectives.iter();
        let entry = entries.find(|(known, t, o, _)| (*t, *o) == (dtype, op) && same(known))?;
        Some(entry.3.clone())
    }

    /// Compiles a text unless the world has compiled the same one before.
    pub(crate) fn compile(
        &mut self,
        gpus: &mut dyn Gpus,
        name: String,
        shape: Shape,
        divisible: bool,
        cuda: Cuda,
    ) -> Result<(Arc<Loaded>, LoadTimes), Error> {
        let hash = cuda.hash();
        let file = format!("{}.{hash:016x}.cu", cuda.entry);
        let started = Instant::now();
        let mut times = LoadTimes::default();
        let binary = match self.binaries.get(&cuda.text) {
            Some(binary) => binary.clone(),
            None => {
                let (arch, kind) = gpus.target()?;
                let options = nvrtc::CompileOptions { arch, kind, name: &file };
                let compiled = nvrtc::compile_with(self.disk.as_ref(), &cuda.text, &options);
                let Compiled { image, hit } = compiled.map_err(Error::Compile)?;
                *(if hit { &mut times.cached } else { &mut times.compiled }) += 1;
                let begun = Instant::now();
                let binary = gpus.load(&image.code, &cuda, &name)?;
                times.load = begun.elapsed();
                self.binaries.insert(cuda.text.clone(), binary.clone());
                binary
            }
        };
        times.compile = started.elapsed();
        Ok((Arc::new(Loaded { name, shape, divisible, hash, cuda, file, binary }), times))
    }
}

impl fmt::Debug for LoadedKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoadedKernel")
            .field("name", &self.loaded.name)
            .field("rank", &self.rank)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Loaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loaded").field("name", &self.name).field("file", &self.file).finish_non_exhaustive()
    }
}
