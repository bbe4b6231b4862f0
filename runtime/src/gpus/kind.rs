//! The GPUs that a world is made of, and how they are made.

use super::Gpus;
use super::cuda::Devices;
use super::options::WorldOptions;
use super::virtual_gpus::VirtualGpus;
use crate::error::Error;
use quadrille_compiler::schedule::domain::Domain;
use quadrille_vgpu::ClockOptions;

/// The GPUs that a world is made of.
#[derive(Clone)]
pub(crate) enum WorldKind {
    /// Virtual GPUs, one a rank or one for all.
    Virtual {
        clock: Option<ClockOptions>,
        shared: bool,
    },
    Cuda(Devices),
}

impl WorldKind {
    pub(crate) fn gpus(&self, ranks: u32, options: &WorldOptions) -> Result<Box<dyn Gpus>, Error> {
        Ok(match self {
            WorldKind::Virtual { clock, shared } => {
                Box::new(VirtualGpus::new((ranks, *shared), options, clock.as_ref())?)
            }
            WorldKind::Cuda(devices) => Box::new(devices.gpus(options.leaving)?),
        })
    }

    pub(crate) fn domain(&self, ranks: u32, options: &WorldOptions) -> Domain {
        let full = Domain { block_cap: options.block_cap, ..Domain::full_mesh(ranks) };
        match self {
            // `multimem` is of sm_90 (PTX ISA).
            WorldKind::Virtual { shared: true, .. } => {
                Domain { block_cap: options.block_cap, ..Domain::one_device(ranks) }
            }
            WorldKind::Virtual { .. } => Domain { multicast: options.arch.number >= 90, ..full },
            WorldKind::Cuda(devices) => devices.domain(full),
        }
    }
}
