//! `--for`: the runtime that executes an MSCCL XML file.

use clap::{Args, ValueEnum};
use quadrille_compiler::interop::msccl::Runtime;

/// The runtime of MSCCL XML files.
#[derive(Debug, Args)]
pub(crate) struct RuntimeOption {
    /// Runtime that is to execute an MSCCL XML file
    #[arg(long = "for", value_enum, value_name = "RUNTIME", default_value_t = MscclRuntime::Msccl)]
    runtime: MscclRuntime,
}

/// A runtime that executes MSCCL XML files.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum MscclRuntime {
    /// Microsoft's MSCCL: 256 steps a thread block, 32 channels.
    Msccl,
    /// RCCL: 64 steps a thread block. Newer ROCm has dropped it (rocm-systems #4340).
    Rccl,
}

impl RuntimeOption {
    /// The runtime, as the compiler names it.
    pub(crate) fn get(&self) -> Runtime {
        match self.runtime {
            MscclRuntime::Msccl => Runtime::Msccl,
            MscclRuntime::Rccl => Runtime::Rccl,
        }
    }
}
