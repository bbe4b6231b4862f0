//! Which devices reach each other, and what their links can do.

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

/// Whether all say that multicast objects can be had; a world of one device has no use for them.
pub(super) fn multicast(driver: &Driver, devices: &[Device]) -> Result<bool, CudaError> {
    let mut supported = devices.len() > 1 && !driver.lacks(symbol::multicast_create);
    for device in devices {
        let which = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED;
        supported = supported && device.attribute(which)? != 0;
    }
    Ok(supported)
}
