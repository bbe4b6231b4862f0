//! Errors of GPUs and their driver, each with what to do about it.

use super::api::symbol;
use crate::nvrtc::{Arch, Version};
use cudarc::driver::sys::CUresult;

/// Why GPUs cannot do what was asked of them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CudaError {
    /// libcuda is not there, or is only there to link with.
    #[error("there is no NVIDIA driver on this machine (no usable libcuda)")]
    NoDriver,
    /// The driver has not a function that Quadrille needs.
    #[error(
        "the NVIDIA driver (for CUDA {driver}) is too old: it has no {call}\nhelp: install driver 525 or later (CUDA \
         12.0; 570 for multicast objects is better)"
    )]
    OldDriver {
        /// The CUDA version that the driver is for.
        driver: Version,
        /// The function.
        call: &'static str,
    },
    /// The driver loads nothing that this NVRTC makes for the GPU.
    #[error(
        "the NVIDIA driver (for CUDA {driver}) loads neither PTX {isa} nor a cubin of NVRTC {nvrtc} for {arch}\nhelp: \
         install a driver for CUDA {nvrtc} or later, or `python3 -m pip install 'nvidia-cuda-nvrtc-cu12==12.9.*'` and set \
         QUADRILLE_NVRTC to it"
    )]
    OldForCode {
        /// The CUDA version that the driver is for.
        driver: Version,
        /// The version of NVRTC.
        nvrtc: Version,
        /// The GPU's architecture.
        arch: Arch,
        /// The PTX version that the kernel needs, as `7.8`.
        isa: String,
    },
    /// The GPU is older than what kernels are written for.
    #[error(
        "GPU {device} is an {arch}; kernels need sm_80 or later\nhelp: use a GPU of the Ampere generation or later"
    )]
    OldGpu {
        /// The device's ordinal.
        device: u32,
        /// Its architecture.
        arch: Arch,
    },
    /// The driver sees no GPU.
    #[error("the NVIDIA driver sees no GPU")]
    NoGpu,
    /// A device that is not there was asked for.
    #[error("there is no GPU {device}: the NVIDIA driver sees {present}")]
    NoSuchGpu {
        /// The device's ordinal.
        device: u32,
        /// The number that there is.
        present: u32,
    },
    /// A device was named twice.
    #[error(
        "GPU {device} is named twice: in this world each rank has a GPU of its own\nhelp: for several ranks on one GPU \
         use `World::cuda_shared` (`--ranks-per-device`)"
    )]
    Repeated {
        /// The device's ordinal.
        device: u32,
    },
    /// More than one GPU is needed.
    #[error(
        "a world of one rank a GPU over {ranks} ranks needs as many GPUs, and the driver sees {present}\nhelp: use \
         `--ranks-per-device {ranks}` (`World::cuda_shared`)"
    )]
    TooFew {
        /// Ranks asked for.
        ranks: u32,
        /// GPUs that are there.
        present: u32,
    },
    /// A part of a GPU (MIG) beside another one.
    #[error(
        "GPU {device} is a MIG instance, which has no peer access\nhelp: use `World::cuda_shared` (`--ranks-per-device`) on \
         it, or whole GPUs"
    )]
    Mig {
        /// The device's ordinal.
        device: u32,
    },
    /// Two GPUs cannot reach each other's memory.
    #[error(
        "GPU {device} has no access to the memory of GPU {peer}\nhelp: use GPUs that NVLink or one PCIe switch connects \
         (`nvidia-smi topo -p2p r`, `quadrille doctor`)"
    )]
    NoPeerAccess {
        /// The device that would access.
        device: u32,
        /// The device whose memory it is.
        peer: u32,
    },
    /// A write to a peer's memory did not arrive, although the driver says that it can be done.
    #[error(
        "what GPU {device} wrote into the memory of GPU {peer} did not arrive, although the driver reports peer access\n\
         help: PCIe access control (ACS) or an IOMMU may be in the way: see `nvidia-smi topo -p2p w`, and NVIDIA's notes \
         on ACS"
    )]
    PeerWriteLost {
        /// The device that wrote.
        device: u32,
        /// The device whose memory it is.
        peer: u32,
    },
    /// A feature that the GPU has not.
    #[error("GPU {device} does not support {feature}\nhelp: {help}")]
    Unsupported {
        /// The device's ordinal.
        device: u32,
        /// The feature that it lacks.
        feature: &'static str,
        /// Advice on what to use instead.
        help: &'static str,
    },
    /// Memory is used up.
    #[error(
        "GPU {device} has no memory for {bytes} bytes of {what}: {free} bytes are free\nhelp: use smaller buffers or fewer \
         ranks, or free what others hold (`nvidia-smi`)"
    )]
    OutOfMemory {
        /// The device's ordinal.
        device: u32,
        /// Bytes that were asked for.
        bytes: u64,
        /// Bytes that the driver has left.
        free: u64,
        /// The driver's purpose for it.
        what: String,
    },
    /// A kernel's blocks do not all fit on a GPU at once, and so could wait for ever for those that do not run.
    #[error(
        "`{program}` has {blocks} thread blocks on GPU {device}, which holds {most} at once\nhelp: lower `blocks` or \
         `threads`, use fewer ranks on the GPU, or end other communicators' calls first"
    )]
    Residency {
        /// The collective's name.
        program: String,
        /// The device's ordinal.
        device: u32,
        /// Blocks that have to be resident together.
        blocks: u64,
        /// Blocks that fit.
        most: u64,
    },
    /// A function of the driver failed.
    #[error("{doing}: {call} of the NVIDIA driver gives {code:?}")]
    Call {
        /// The operation that failed.
        doing: String,
        /// The driver's function.
        call: &'static str,
        /// Its result.
        code: CUresult,
    },
}

impl CudaError {
    /// Returns true if its text says what to do.
    pub(crate) fn has_help(&self) -> bool {
        use CudaError::{Call, NoDriver, NoGpu, NoSuchGpu};
        !matches!(self, NoDriver | NoGpu | NoSuchGpu { .. } | Call { .. })
    }

    /// Returns true if the driver says that the process's contexts are lost: whatever it is asked from then on, it answers with an
    /// error, and only a new process can use its GPUs. These are the results of which the driver's reference says so, and the
    /// errors of memory and links that no retry mends.
    pub fn is_sticky(&self) -> bool {
        use CUresult as R;
        matches!(
            self,
            CudaError::Call {
                code: R::CUDA_ERROR_ILLEGAL_ADDRESS
                    | R::CUDA_ERROR_LAUNCH_TIMEOUT
                    | R::CUDA_ERROR_ASSERT
                    | R::CUDA_ERROR_HARDWARE_STACK_ERROR
                    | R::CUDA_ERROR_ILLEGAL_INSTRUCTION
                    | R::CUDA_ERROR_MISALIGNED_ADDRESS
                    | R::CUDA_ERROR_INVALID_ADDRESS_SPACE
                    | R::CUDA_ERROR_INVALID_PC
                    | R::CUDA_ERROR_LAUNCH_FAILED
                    | R::CUDA_ERROR_TENSOR_MEMORY_LEAK
                    | R::CUDA_ERROR_EXTERNAL_DEVICE
                    | R::CUDA_ERROR_MPS_CLIENT_TERMINATED
                    | R::CUDA_ERROR_ECC_UNCORRECTABLE
                    | R::CUDA_ERROR_NVLINK_UNCORRECTABLE
                    | R::CUDA_ERROR_CONTAINED
                    | R::CUDA_ERROR_CONTEXT_IS_DESTROYED,
                ..
            }
        )
    }

    /// Returns true if the machine lacks something, as opposed to a wrong request or a failed call.
    pub fn is_missing(&self) -> bool {
        !matches!(self, CudaError::Repeated { .. } | CudaError::Residency { .. } | CudaError::Call { .. })
    }
}

/// The result of a function of the driver.
pub(super) fn check(
    call: &'static str,
    code: CUresult,
    doing: impl FnOnce() -> String,
) -> Result<(), CudaError> {
    match code {
        CUresult::CUDA_SUCCESS => Ok(()),
        CUresult::CUDA_ERROR_NO_DEVICE => Err(CudaError::NoGpu),
        CUresult::CUDA_ERROR_STUB_LIBRARY => Err(CudaError::NoDriver),
        // What `init` gives where the library is there and the kernel module is not.
        CUresult::CUDA_ERROR_SYSTEM_DRIVER_MISMATCH | CUresult::CUDA_ERROR_NOT_FOUND
            if call == symbol::init =>
        {
            Err(CudaError::NoDriver)
        }
        code => Err(CudaError::Call { doing: doing(), call, code }),
    }
}
