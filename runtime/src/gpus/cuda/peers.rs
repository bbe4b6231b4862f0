//! Access between devices, and the abilities of their links.

use crate::driver::api::symbol;
use crate::driver::{CudaError, Device, Driver};
use cudarc::driver::sys::CUdevice_attribute;

/// Makes sure that each reaches each, as the driver says; whether all links are NVLink, which carries out atomics at the
/// other end and keeps lines whole.
pub(super) fn connected(devices: &[Device]) -> Result<bool, CudaError> {
    let mut nvlink = true;
    for device in devices {
        for peer in devices.iter().filter(|peer| peer.ordinal() != device.ordinal()) {
            if !device.reaches(peer)? {
                return Err(CudaError::NoPeerAccess { device: device.ordinal(), peer: peer.ordinal() });
            }
            nvlink &= device.has_native_atomics(peer)?;
        }
    }
    Ok(nvlink)
}

/// Makes sure that multicast objects can be had, as driver and devices say.
pub(super) fn multicast(driver: &Driver, devices: &[Device]) -> Result<(), CudaError> {
    if driver.lacks(symbol::multicast_create) {
        return Err(CudaError::OldDriver { driver: driver.version()?, call: symbol::multicast_create });
    }
    for device in devices {
        if device.attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED)? == 0 {
            let feature = "multicast objects (CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED is 0)";
            let help = "they need GPUs of the Hopper generation or later behind NVSwitches, driver 535 or later, the \
                        Fabric Manager running, and confidential computing off; without them moves go rank by rank";
            return Err(CudaError::Unsupported { device: device.ordinal(), feature, help });
        }
    }
    Ok(())
}
