//! On which GPUs the ranks run.

use quadrille_runtime::{CudaError, Error, World, gpus};

/// How ranks lie on GPUs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// All on one GPU, in one launch.
    Shared,
    /// One a GPU.
    Each,
    /// All on one virtual GPU, in one launch.
    VirtualShared,
    /// One a virtual GPU.
    VirtualEach,
}

impl Place {
    /// The places of virtual GPUs.
    pub const VIRTUAL: [Place; 2] = [Place::VirtualShared, Place::VirtualEach];

    /// The places of this machine's GPUs.
    ///
    /// # Errors
    /// [`Error::Cuda`] where ranks cannot even share a GPU.
    pub fn of_machine() -> Result<Vec<Place>, Error> {
        let present = gpus()?;
        drop(World::cuda_shared(0, 2)?);
        Ok(if present > 1 { vec![Place::Shared, Place::Each] } else { vec![Place::Shared] })
    }

    /// Returns true for virtual GPUs.
    pub fn is_virtual(self) -> bool {
        Place::VIRTUAL.contains(&self)
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Place::Shared => "one GPU",
            Place::Each => "GPU each",
            Place::VirtualShared => "one vGPU",
            Place::VirtualEach => "vGPU each",
        }
    }

    /// A world of so many ranks.
    ///
    /// # Errors
    /// Those of the runtime's; [`CudaError::TooFew`] where there are fewer GPUs than ranks.
    pub(super) fn world(self, ranks: u32) -> Result<World, Error> {
        match self {
            Place::Shared => World::cuda_shared(0, ranks),
            Place::Each => {
                let present = gpus()?;
                if ranks > present {
                    return Err(CudaError::TooFew { ranks, present }.into());
                }
                World::cuda(&(0..ranks).collect::<Vec<_>>())
            }
            Place::VirtualShared => World::virtual_shared(ranks),
            Place::VirtualEach => World::virtual_gpus(ranks),
        }
    }

    /// Blocks of a rank that fit beside those of all others, on any GPU with as many multiprocessors.
    pub(super) fn blocks(self, ranks: u32, multiprocessors: Option<u32>) -> u32 {
        match (self, multiprocessors) {
            (Place::Shared, Some(all)) => (all / ranks).clamp(1, 16),
            (Place::Each, Some(all)) => all.clamp(1, 16),
            _ => 2,
        }
    }
}
