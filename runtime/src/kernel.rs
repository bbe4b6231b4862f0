//! Loading a collective: proved and lowered for the world, compiled once a text, shared by all ranks.

use crate::communicator::Communicator;
use crate::error::Error;
use crate::gpus::Loaded;
use crate::nvrtc;
use crate::state::{GroupHandle, LoadTimes};
use crate::world::World;
use quadrille_compiler::collective::Collective;
use quadrille_compiler::emit::Cuda;
use quadrille_compiler::program::dtype::{DType, RedOp};
use quadrille_compiler::program::ids::Rank;
use quadrille_compiler::program::kind::Shape;
use std::fmt;
use std::sync::Arc;

/// A collective that one rank can call.
#[derive(Clone)]
pub struct LoadedKernel {
    pub(crate) loaded: Arc<Loaded>,
    pub(crate) group: Arc<GroupHandle>,
    pub(crate) rank: Rank,
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

impl fmt::Debug for LoadedKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoadedKernel")
            .field("name", &self.loaded.name)
            .field("rank", &self.rank)
            .finish_non_exhaustive()
    }
}
