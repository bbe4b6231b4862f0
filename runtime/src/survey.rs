//! A survey of this machine's GPUs, asked and tried: for `quadrille doctor`.

use crate::driver::{CudaError, Device, Driver};
use crate::error::Error;
use crate::gpus::{Measured, measure, multicast};
use crate::nvrtc::{Arch, Version};
use cudarc::driver::sys::CUdevice_attribute;

/// The GPUs of a machine and their links.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Survey {
    /// The CUDA version that the driver is for.
    pub driver: Version,
    /// By ordinal.
    pub gpus: Vec<Gpu>,
    /// Every ordered pair of different GPUs.
    pub links: Vec<PeerLink>,
    /// The outcome of making a multicast object for memory of all GPUs; an error says what was missing. `None`: there
    /// is one GPU, which has no use for it.
    pub multicast: Option<Result<(), String>>,
}

/// A GPU.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Gpu {
    /// The driver's number for it.
    pub ordinal: u32,
    /// As the driver names it.
    pub name: String,
    /// The architecture that kernels are compiled for.
    pub arch: Arch,
    /// Bytes of its memory.
    pub memory: u64,
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// True if it takes part in multicast objects (NVLink SHARP).
    pub multicast: bool,
    /// True if all blocks of a launch can be made sure to be resident.
    pub cooperative: bool,
    /// True if its memory can be mapped at addresses of one's choice.
    pub virtual_memory: bool,
    /// True if it is a part of a GPU.
    pub mig: bool,
}

/// The way in which a GPU reaches another one's memory.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct PeerLink {
    /// The GPU that accesses.
    pub gpu: u32,
    /// The GPU whose memory it is.
    pub peer: u32,
    /// True if the driver says that it can.
    pub access: bool,
    /// True if atomics are carried out at the other end: NVLink.
    pub native_atomics: bool,
    /// The outcome of writing there; an error's text if it could not be tried.
    pub tried: Result<Measured, String>,
}

/// Asks every GPU of the machine, writes from each to each, and makes a multicast object for all.
///
/// # Errors
/// [`Error::Cuda`]: there is no driver or no GPU, or a question fails.
pub fn survey() -> Result<Survey, Error> {
    of(&Driver::of_machine()?)
}

pub(crate) fn of(driver: &Driver) -> Result<Survey, Error> {
    let count = driver.devices()?;
    let devices: Vec<Device> =
        (0..count).map(|ordinal| Device::new(driver, ordinal)).collect::<Result<_, CudaError>>()?;
    let gpus = devices.iter().map(gpu).collect::<Result<Vec<_>, _>>()?;
    let mut links = Vec::new();
    for (device, gpu) in devices.iter().zip(0..) {
        for (other, peer) in devices.iter().zip(0..).filter(|&(_, peer)| peer != gpu) {
            let access = device.reaches(other)?;
            let tried = match access {
                true => measure(driver, gpu, peer).map_err(|error| error.to_string()),
                false => Err("no access".to_owned()),
            };
            let native_atomics = device.has_native_atomics(other)?;
            links.push(PeerLink { gpu, peer, access, native_atomics, tried });
        }
    }
    let all: Vec<u32> = (0..count).collect();
    let multicast = (count > 1).then(|| {
        multicast(driver, &all).map_err(|error| match error {
            // Without the advice to do without GPUs.
            Error::Cuda(error) => error.to_string(),
            error => error.to_string(),
        })
    });
    Ok(Survey { driver: driver.version()?, gpus, links, multicast })
}

fn gpu(device: &Device) -> Result<Gpu, CudaError> {
    let has = |which| Ok(device.attribute(which)? != 0);
    Ok(Gpu {
        ordinal: device.ordinal(),
        name: device.name()?,
        arch: device.arch()?,
        memory: device.memory()?,
        multiprocessors: device.multiprocessors()?,
        multicast: has(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED)?,
        cooperative: has(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH)?,
        virtual_memory: has(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED)?,
        mig: device.is_mig()?,
    })
}
