//! libnvrtc, CUDA's run-time compiler: found, or fetched, loaded once, and called.
//!
//! | step | function | does |
//! |---|---|---|
//! | search | [`find`] | looks in the places below; loads and downloads nothing |
//! | provision | [`provide`] | [`find`], else fetches the wheel into Quadrille's cache; then loads |
//! | another one | [`fetch`] | finds or fetches one version, for another process; loads nothing |
//! | load | within [`compile`], [`version`], [`supported`] | once a process, whichever thread comes first |
//! | compile | [`compile`] | CUDA C++ text to PTX or a cubin |
//! | remember | [`Cache`] | keeps what was compiled on disk, for those who ask for it |
//!
//! No GPU and no CUDA installation is needed for any of it. The places, in order; the first that has a
//! libnvrtc of CUDA 13 or 12 with its builtins library beside it is taken:
//! 1. `QUADRILLE_NVRTC`, a file or a folder; set but wrong, it is an error, never skipped;
//! 2. `CUDA_HOME`, then `CUDA_PATH`;
//! 3. the dynamic loader's path, or what the process has loaded already;
//! 4. the wheels `nvidia-cuda-nvrtc` and `nvidia-cuda-nvrtc-cu12` where the active `python3` imports from;
//! 5. Quadrille's cache: `quadrille/nvrtc/VERSION` in `XDG_CACHE_HOME`, else in `~/.cache`; of several the one that
//!    [`provide`] fetches, else the newest.
//!
//! A library that calls [`compile`] never downloads anything: only [`provide`] and [`fetch`] do, which are for the
//! command line, the examples and the tests. `QUADRILLE_OFFLINE=1` forbids it there as well.
//!
//! # How it is loaded
//! The builtins library and then libnvrtc are opened by absolute path with global visibility. cudarc, which
//! opens libraries by bare name, then gets the loaded one by its SONAME, with no `LD_LIBRARY_PATH`.
//! cudarc panics where a library or a symbol is missing, so both are probed first. It also tries the bare name
//! `libnvrtc.so` before any SONAME and so can get another one from the loader's path: that is detected, and is
//! an error rather than a silent use of the wrong compiler.

mod tool;

mod found;

mod error;

mod find;

mod arch;

mod load;

mod provide;

mod compile;

mod cache;

pub use arch::{Arch, Features, ParseArchError};
pub use cache::{Cache, Compiled, compile_with};
pub use compile::{Code, CodeKind, CompileError, CompileOptions, Image, Text, compile};
pub use error::{Absence, Looked, NvrtcError, WheelProblem};
pub use find::{cache, driver, find, offline};
pub use found::{Found, Source, Version};
pub use load::{supported, version};
pub use provide::{Progress, announce, fetch, provide};
pub use tool::ToolError;

#[cfg(test)]
mod tests {
    mod cache;
    mod compile;
    mod find;
    mod process;
    mod provide;
}
