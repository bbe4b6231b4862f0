//! Worlds of real GPUs in one process.

mod code;
mod flights;
mod gpus;
mod heap;
mod peers;

use super::{LEAVING, MOST_BLOCKS, MOST_RANKS, World, WorldKind, WorldOptions};
use crate::driver::{CudaError, Device, Driver};
use crate::error::Error;
use crate::nvrtc::Arch;
pub use code::lowered;
use cudarc::driver::sys::CUdevice_attribute;
use gpus::CudaGpus;
pub use gpus::Measured;
use quadrille_compiler::schedule::domain::Domain;
use std::sync::Arc;
use std::time::Duration;

/// The GPUs of a world, and what all of them can do.
#[derive(Clone, Debug)]
pub(super) struct Devices {
    driver: Driver,
    /// Of each rank; all the same one where ranks share it.
    ordinals: Vec<u32>,
    shared: bool,
    name: String,
    /// The oldest architecture among them.
    arch: Arch,
    /// True if their switch combines and multicasts.
    multicast: bool,
    /// True if their links keep lines of 128 bytes whole.
    whole_lines: bool,
}

/// The oldest architecture that kernels are written for.
const OLDEST: u32 = 80;

impl World {
    /// A world of the GPUs with these ordinals, one a rank, with default [`WorldOptions`].
    ///
    /// # Errors
    /// [`Error::Cuda`]: no driver, a device that is not there or is named twice, or one that does not reach another's
    /// memory. [`Error::NoRanks`], [`Error::TooManyRanks`].
    pub fn cuda(devices: &[u32]) -> Result<World, Error> {
        World::cuda_with(devices, WorldOptions::default())
    }

    /// As [`World::cuda`], with options; those that only virtual GPUs have, and the architecture, are not read.
    ///
    /// # Errors
    /// Those of [`World::cuda`], and [`Error::BlockCap`].
    pub fn cuda_with(devices: &[u32], options: WorldOptions) -> Result<World, Error> {
        World::cuda_by(Driver::of_machine()?, devices, options)
    }

    /// `ranks` ranks that share one GPU, with default [`WorldOptions`]: all of them run in one cooperative launch.
    ///
    /// # Errors
    /// [`Error::Cuda`]: no driver, or no such device. [`Error::NoRanks`], [`Error::TooManyRanks`].
    pub fn cuda_shared(device: u32, ranks: u32) -> Result<World, Error> {
        World::cuda_shared_with(device, ranks, WorldOptions::default())
    }

    /// As [`World::cuda_shared`], with options as in [`World::cuda_with`].
    ///
    /// # Errors
    /// Those of [`World::cuda_shared`], and [`Error::BlockCap`].
    pub fn cuda_shared_with(device: u32, ranks: u32, options: WorldOptions) -> Result<World, Error> {
        World::cuda_shared_by(Driver::of_machine()?, device, ranks, options)
    }

    pub(crate) fn cuda_by(driver: Driver, devices: &[u32], options: WorldOptions) -> Result<World, Error> {
        let ranks = checked(devices.len(), &options)?;
        let repeated = (1..devices.len()).find(|&at| devices[..at].contains(&devices[at]));
        if let Some(at) = repeated {
            return Err(CudaError::Repeated { device: devices[at] }.into());
        }
        let present = driver.devices()?;
        if ranks > present {
            return Err(CudaError::TooFew { ranks, present }.into());
        }
        let devices = Devices::survey(driver, devices.to_vec(), false)?;
        World::new(ranks, options, WorldKind::Cuda(devices), Arc::default())
    }

    pub(crate) fn cuda_shared_by(
        driver: Driver,
        device: u32,
        ranks: u32,
        options: WorldOptions,
    ) -> Result<World, Error> {
        let ranks = checked(ranks as usize, &options)?;
        let devices = Devices::survey(driver, vec![device; ranks as usize], true)?;
        World::new(ranks, options, WorldKind::Cuda(devices), Arc::default())
    }
}

/// Returns the number of GPUs that the driver of this machine sees; at least 1.
///
/// # Errors
/// [`CudaError::NoDriver`], [`CudaError::NoGpu`], [`CudaError::OldDriver`].
pub fn gpus() -> Result<u32, CudaError> {
    Driver::of_machine()?.devices()
}

/// Makes a multicast object for memory of several GPUs, as a test.
pub(crate) fn multicast(driver: &Driver, ordinals: &[u32]) -> Result<(), Error> {
    let devices: Vec<Device> =
        ordinals.iter().map(|&ordinal| Device::new(driver, ordinal)).collect::<Result<_, CudaError>>()?;
    peers::multicast(driver, &devices)?;
    let arch = devices.first().ok_or(CudaError::NoGpu)?.arch()?;
    let mut gpus = CudaGpus::new(driver, ordinals, false, arch, LEAVING)?;
    let memory = gpus.test_memory()?;
    gpus.test_multicast(&memory)
}

/// Writes from a GPU to another one's memory.
pub(crate) fn measure(driver: &Driver, gpu: u32, peer: u32) -> Result<Measured, Error> {
    let arch = Device::new(driver, gpu)?.arch()?;
    CudaGpus::new(driver, &[gpu, peer], false, arch, LEAVING)?.measure()
}

fn checked(ranks: usize, options: &WorldOptions) -> Result<u32, Error> {
    let cap = options.block_cap;
    match u32::try_from(ranks) {
        Ok(0) => Err(Error::NoRanks),
        Ok(ranks) if ranks <= MOST_RANKS => {
            let admitted = (1..=MOST_BLOCKS).contains(&cap);
            if admitted { Ok(ranks) } else { Err(Error::BlockCap { cap, most: MOST_BLOCKS }) }
        }
        _ => Err(Error::TooManyRanks { ranks: ranks.try_into().unwrap_or(u32::MAX), most: MOST_RANKS }),
    }
}

impl Devices {
    /// Asks every device what it can do; nothing is made on any of them.
    fn survey(driver: Driver, ordinals: Vec<u32>, shared: bool) -> Result<Devices, Error> {
        let distinct = if shared { &ordinals[..1] } else { &ordinals[..] };
        let devices: Vec<Device> = distinct
            .iter()
            .map(|&ordinal| Device::new(&driver, ordinal))
            .collect::<Result<_, CudaError>>()?;
        let mut arch: Option<Arch> = None;
        for device in &devices {
            let own = device.arch()?;
            let ordinal = device.ordinal();
            if own.number < OLDEST {
                return Err(CudaError::OldGpu { device: ordinal, arch: own }.into());
            }
            if device
                .attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED)?
                == 0
            {
                let feature = "virtual memory management";
                let help = "use a GPU in a mode that has it (not WDDM), or `--world virtual`";
                return Err(CudaError::Unsupported { device: ordinal, feature, help }.into());
            }
            if shared && device.attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH)? == 0 {
                let feature = "cooperative launch";
                let help = "use one GPU a rank, or `--world virtual`";
                return Err(CudaError::Unsupported { device: ordinal, feature, help }.into());
            }
            if devices.len() > 1 && device.is_mig()? {
                return Err(CudaError::Mig { device: ordinal }.into());
            }
            arch = Some(arch.map_or(own, |arch| arch.min(own)));
        }
        let name = devices.first().map_or(Ok(String::new()), Device::name)?;
        let mut devices = Devices {
            whole_lines: !shared && peers::connected(&devices)?,
            // A world of one device has no use for it.
            multicast: devices.len() > 1 && peers::multicast(&driver, &devices).is_ok(),
            driver,
            ordinals,
            shared,
            name,
            arch: arch.ok_or(CudaError::NoGpu)?,
        };
        // What is written to a peer must arrive, and a multicast object must be had, whatever the driver says.
        let mut gpus = devices.gpus(LEAVING)?;
        let memory = gpus.test_memory()?;
        gpus.test_peers(&memory)?;
        devices.multicast = devices.multicast && gpus.test_multicast(&memory).is_ok();
        drop(gpus);
        Ok(devices)
    }

    /// The GPUs themselves, whose kernels may take so long to leave.
    pub(super) fn gpus(&self, leaving: Duration) -> Result<CudaGpus, CudaError> {
        CudaGpus::new(&self.driver, &self.ordinals, self.shared, self.arch, leaving)
    }

    pub(super) fn domain(&self, full: Domain) -> Domain {
        let Devices { multicast, whole_lines, shared, .. } = *self;
        Domain { multicast, whole_lines, one_device: shared, ..full }
    }

    pub(super) fn describe(&self) -> String {
        let Devices { ordinals, name, shared, .. } = self;
        let ranks = ordinals.len();
        match (shared, ranks) {
            (true, _) => format!("{ranks} ranks on GPU {} ({name})", ordinals[0]),
            (false, 1) => format!("GPU {} ({name})", ordinals[0]),
            (false, _) => {
                let numbers: Vec<_> = ordinals.iter().map(u32::to_string).collect();
                format!("{ranks} GPUs ({}: {name})", numbers.join(", "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_world_of_gpus_is_an_error_with_a_remedy_where_there_are_none() {
        if gpus().is_ok() {
            return;
        }
        let error = World::cuda(&[0, 1]).unwrap_err();
        assert!(error.is_missing(), "{error}");
        assert!(error.to_string().contains("--world virtual"), "{error}");
    }
}
