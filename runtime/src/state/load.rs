//! Collectives that a world has loaded: proved and lowered for it, compiled once a text.

use super::Shared;
use crate::error::Error;
use crate::gpus::{Binary, Gpus, Loaded};
use crate::nvrtc::{self, Compiled};
use quadrille_compiler::collective::Collective;
use quadrille_compiler::emit::Cuda;
use quadrille_compiler::program::dtype::{DType, RedOp};
use quadrille_compiler::program::kind::Shape;
use std::collections::HashMap;
use std::ops::AddAssign;
use std::sync::Arc;
use std::time::{Duration, Instant};

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
    pub(crate) disk: Option<nvrtc::Cache>,
    /// Holding a collective keeps its evaluator's address from being used for another.
    collectives: Vec<(Collective, DType, RedOp, Arc<Loaded>)>,
    /// By CUDA text.
    binaries: HashMap<String, Binary>,
}

impl Shared {
    pub(crate) fn load(
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
