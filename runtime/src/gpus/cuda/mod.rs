//! Real GPUs in one process.

mod code;
mod flights;
mod gpus;
mod heap;
mod peers;

use super::options::LEAVING;
use crate::driver::{CudaError, Device, Driver};
use crate::error::Error;
use crate::nvrtc::Arch;
pub use code::lowered;
use cudarc::driver::sys::CUdevice_attribute;
use gpus::CudaGpus;
pub use gpus::Measured;
use quadrille_compiler::schedule::domain::Domain;
use std::time::Duration;

/// The GPUs of a world, and what all of them can do.
#[derive(Clone, Debug)]
pub(crate) struct Devices {
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

impl Devices {
    /// Asks every device what it can do; nothing is made on any of them.
    pub(crate) fn survey(driver: Driver, ordinals: Vec<u32>, shared: bool) -> Result<Devices, Error> {
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
    pub(crate) fn gpus(&self, leaving: Duration) -> Result<CudaGpus, CudaError> {
        CudaGpus::new(&self.driver, &self.ordinals, self.shared, self.arch, leaving)
    }

    pub(crate) fn domain(&self, full: Domain) -> Domain {
        let Devices { multicast, whole_lines, shared, .. } = *self;
        Domain { multicast, whole_lines, one_device: shared, ..full }
    }

    pub(crate) fn describe(&self) -> String {
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
