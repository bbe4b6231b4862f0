//! Devices and their primary contexts, which cudarc and PyTorch use as well.

use super::Driver;
use super::api::symbol;
use super::error::{CudaError, check};
use crate::nvrtc::{Arch, Features};
use cudarc::driver::sys::{
    CUcontext, CUdevice, CUdevice_P2PAttribute, CUdevice_attribute, CUmemAllocationHandleType, CUresult,
    CUstreamCaptureMode,
};
use std::ffi::CStr;
use std::ptr;
use std::sync::Arc;

/// A GPU that is there.
#[derive(Clone, Debug)]
pub struct Device {
    pub(super) driver: Driver,
    pub(super) raw: CUdevice,
    ordinal: u32,
    /// The ways in which its memory can be given to other processes; some containers admit none.
    pub(super) handles: CUmemAllocationHandleType,
}

impl Device {
    /// # Errors
    /// [`CudaError::NoSuchGpu`].
    /// The device with that number.
    ///
    /// # Errors
    /// [`CudaError::Call`] where the driver does not give it.
    pub fn new(driver: &Driver, ordinal: u32) -> Result<Device, CudaError> {
        let present = driver.devices()?;
        if ordinal >= present {
            return Err(CudaError::NoSuchGpu { device: ordinal, present });
        }
        let mut raw = 0;
        // SAFETY: writes one handle; there is such a device.
        let code = unsafe { driver.api.device_get(&mut raw, ordinal as i32) };
        check(symbol::device_get, code, || format!("opening GPU {ordinal}"))?;
        let none = CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_NONE;
        let mut device = Device { driver: driver.clone(), raw, ordinal, handles: none };
        let files = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED;
        if device.attribute(files)? != 0 {
            device.handles = CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
        }
        Ok(device)
    }

    pub(crate) fn ordinal(&self) -> u32 {
        self.ordinal
    }

    fn asking(&self, what: &str) -> String {
        format!("asking GPU {} for its {what}", self.ordinal)
    }

    /// Its name, as `nvidia-smi` gives it.
    pub(crate) fn name(&self) -> Result<String, CudaError> {
        let mut name = [0u8; 256];
        // SAFETY: writes a C string of at most 256 bytes.
        let code = unsafe { self.driver.api.device_name(name.as_mut_ptr().cast(), 256, self.raw) };
        check(symbol::device_name, code, || self.asking("name"))?;
        let name = CStr::from_bytes_until_nul(&name).unwrap_or_default();
        Ok(name.to_string_lossy().into_owned())
    }

    pub(crate) fn attribute(&self, which: CUdevice_attribute) -> Result<u32, CudaError> {
        let mut value = 0;
        // SAFETY: writes one integer.
        let code = unsafe { self.driver.api.device_attribute(&mut value, which, self.raw) };
        check(symbol::device_attribute, code, || self.asking(&format!("{which:?}")))?;
        Ok(value.unsigned_abs())
    }

    /// The architecture that kernels are compiled for.
    pub(crate) fn arch(&self) -> Result<Arch, CudaError> {
        let major = self.attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
        let minor = self.attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
        Ok(Arch { number: 10 * major + minor, features: Features::Common })
    }

    /// Streaming multiprocessors.
    pub(crate) fn multiprocessors(&self) -> Result<u32, CudaError> {
        self.attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
    }

    /// Bytes of its memory.
    pub(crate) fn memory(&self) -> Result<u64, CudaError> {
        let mut bytes = 0;
        // SAFETY: writes one integer.
        let code = unsafe { self.driver.api.device_total_mem(&mut bytes, self.raw) };
        check(symbol::device_total_mem, code, || self.asking("memory"))?;
        Ok(bytes as u64)
    }

    /// Returns true if it is a part of a GPU. There is no attribute for that; the name tells (`NVIDIA H200 MIG 1g.18gb`).
    pub(crate) fn is_mig(&self) -> Result<bool, CudaError> {
        Ok(self.name()?.contains(" MIG "))
    }

    /// Returns true if its kernels reach the peer's memory, as the driver says.
    pub(crate) fn reaches(&self, peer: &Device) -> Result<bool, CudaError> {
        let mut can = 0;
        // SAFETY: writes one integer.
        let code = unsafe { self.driver.api.device_can_access_peer(&mut can, self.raw, peer.raw) };
        let doing = || format!("asking whether GPU {} reaches GPU {}", self.ordinal, peer.ordinal);
        check(symbol::device_can_access_peer, code, doing)?;
        Ok(can != 0)
    }

    /// Returns true if atomics on the peer's memory are carried out there: a link that has them is NVLink.
    pub(crate) fn has_native_atomics(&self, peer: &Device) -> Result<bool, CudaError> {
        let which = CUdevice_P2PAttribute::CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED;
        let mut value = 0;
        // SAFETY: writes one integer.
        let code = unsafe { self.driver.api.device_p2p_attribute(&mut value, which, self.raw, peer.raw) };
        let doing = || format!("asking for the link of GPU {} and GPU {}", self.ordinal, peer.ordinal);
        check(symbol::device_p2p_attribute, code, doing)?;
        Ok(value != 0)
    }
}

/// A device's primary context, which lives at least as long as this.
#[derive(Debug)]
pub struct Context {
    pub(super) device: Device,
    pub(super) raw: CUcontext,
}

// SAFETY: a context may be made current in any thread; the driver locks what it shares.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Context {
    /// Makes sure that the device has its primary context.
    ///
    /// # Errors
    /// [`CudaError::Call`] where the driver does not make it.
    pub fn new(device: &Device) -> Result<Arc<Context>, CudaError> {
        let mut raw = ptr::null_mut();
        // SAFETY: writes one handle, which is released once, on drop.
        let code = unsafe { device.driver.api.ctx_retain(&mut raw, device.raw) };
        check(symbol::ctx_retain, code, || format!("starting GPU {}", device.ordinal))?;
        Ok(Arc::new(Context { device: device.clone(), raw }))
    }

    /// The driver's handle.
    pub fn raw(&self) -> CUcontext {
        self.raw
    }

    pub(crate) fn device(&self) -> &Device {
        &self.device
    }

    /// Makes it this thread's current one until the guard is dropped. While it lives, captures that somebody else has under
    /// way do not forbid this thread what they would (`cuEventQuery` above all): nothing here touches what they capture.
    pub(crate) fn enter(&self) -> Result<Entered<'_>, CudaError> {
        let api = &self.device.driver.api;
        let doing = || format!("turning to GPU {}", self.device.ordinal);
        let mut before = ptr::null_mut();
        // SAFETY: writes one handle.
        check(symbol::ctx_get_current, unsafe { api.ctx_get_current(&mut before) }, doing)?;
        // SAFETY: the context is alive.
        check(symbol::ctx_set_current, unsafe { api.ctx_set_current(self.raw) }, doing)?;
        let mut entered = Entered { context: self, before, mode: None };
        let mut mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        // SAFETY: exchanges one value with the thread's.
        let code = unsafe { api.capture_mode(&mut mode) };
        entered.mode = (code == CUresult::CUDA_SUCCESS).then_some(mode);
        Ok(entered)
    }

    /// Bytes that are free.
    pub(crate) fn free_memory(&self) -> Result<u64, CudaError> {
        let _current = self.enter()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: writes two integers.
        let code = unsafe { self.device.driver.api.mem_info(&mut free, &mut total) };
        check(symbol::mem_info, code, || self.device.asking("free memory"))?;
        Ok(free as u64)
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: it was retained once, and nothing that was made in it is left.
        let _ = unsafe { self.device.driver.api.ctx_release(self.device.raw) };
    }
}

/// While it lives, a context is the thread's current one.
pub(crate) struct Entered<'a> {
    context: &'a Context,
    before: CUcontext,
    /// The thread's capture mode before.
    mode: Option<CUstreamCaptureMode>,
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        let api = &self.context.device.driver.api;
        if let Some(mut mode) = self.mode {
            // SAFETY: exchanges one value with the thread's.
            let _ = unsafe { api.capture_mode(&mut mode) };
        }
        // SAFETY: what was current before; null is none.
        let _ = unsafe { api.ctx_set_current(self.before) };
    }
}
