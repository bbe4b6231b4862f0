//! Worlds of real GPUs. This version finds the GPUs and says that it cannot use them yet.

use super::World;
use crate::error::Error;
use cudarc::driver::sys as cuda;

/// Why a world of GPUs cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CudaAbsence {
    /// libcuda is not there, or has not the functions of a driver.
    #[error("there is no NVIDIA driver on this machine (no usable libcuda)")]
    NoDriver,
    /// The driver does not start.
    #[error("the NVIDIA driver does not start: {call} gives {code:?}")]
    Driver {
        /// The driver's function.
        call: &'static str,
        /// Its result.
        code: cuda::CUresult,
    },
    /// The driver sees no GPU.
    #[error("the NVIDIA driver sees no GPU")]
    NoGpu,
    /// A device that is not there was asked for.
    #[error("there is no GPU {device}: the NVIDIA driver sees {present}")]
    NoSuchGpu {
        /// The device's ordinal.
        device: u32,
        /// How many there are.
        present: u32,
    },
    /// The GPUs are there.
    #[error("the NVIDIA driver sees {present} GPUs, but worlds of GPUs are not supported by this version")]
    Unsupported {
        /// How many there are.
        present: u32,
    },
}

impl World {
    /// A world of the GPUs with these ordinals, one a rank.
    ///
    /// # Errors
    /// [`Error::Cuda`], in this version always: no driver, no GPU, or GPUs that it cannot use yet.
    pub fn cuda(devices: &[u32]) -> Result<World, Error> {
        let present = gpus().map_err(Error::Cuda)?;
        if devices.is_empty() {
            return Err(Error::NoRanks);
        }
        Err(Error::Cuda(match devices.iter().find(|&&device| device >= present) {
            Some(&device) => CudaAbsence::NoSuchGpu { device, present },
            None => CudaAbsence::Unsupported { present },
        }))
    }
}

/// How many GPUs the driver sees; at least 1.
pub fn gpus() -> Result<u32, CudaAbsence> {
    let checked = |call, code: cuda::CUresult| match code {
        cuda::CUresult::CUDA_SUCCESS => Ok(()),
        cuda::CUresult::CUDA_ERROR_NO_DEVICE => Err(CudaAbsence::NoGpu),
        // The libcuda that is only there to link with.
        cuda::CUresult::CUDA_ERROR_STUB_LIBRARY => Err(CudaAbsence::NoDriver),
        code => Err(CudaAbsence::Driver { call, code }),
    };
    // SAFETY: opens libcuda by name and asks for two symbols, whose types do not matter as they are not called
    // here. Library and symbols may be missing, and cudarc panics then, so they are asked for first.
    let usable = unsafe {
        cuda::is_culib_present()
            && [&b"cuInit\0"[..], b"cuDeviceGetCount\0"]
                .into_iter()
                .all(|symbol| cuda::culib().get::<unsafe extern "C" fn()>(symbol).is_ok())
    };
    if !usable {
        return Err(CudaAbsence::NoDriver);
    }
    // SAFETY: cuInit may be called at any time and any number of times; its only flag is 0.
    checked("cuInit", unsafe { cuda::cuInit(0) })?;
    let mut count = 0;
    // SAFETY: writes one integer; the driver is initialized.
    checked("cuDeviceGetCount", unsafe { cuda::cuDeviceGetCount(&mut count) })?;
    match u32::try_from(count) {
        Ok(count) if count > 0 => Ok(count),
        _ => Err(CudaAbsence::NoGpu),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_world_of_gpus_is_an_error_with_a_remedy() {
        let error = World::cuda(&[0, 1]).unwrap_err();
        assert!(error.is_missing(), "{error}");
        assert!(error.to_string().contains("--world virtual"), "{error}");
    }
}
