//! Modules, kernels, launches.

use super::api::symbol;
use super::error::{CudaError, check};
use super::{Context, Stream};
use crate::nvrtc::Code;
use cudarc::driver::sys::{CUfunction, CUjit_option, CUmodule, CUresult};
use std::ffi::{CString, c_void};
use std::ptr;
use std::sync::Arc;

/// A cubin or PTX that a device has loaded.
#[derive(Debug)]
pub(crate) struct Module {
    context: Arc<Context>,
    raw: CUmodule,
}

// SAFETY: a module may be used by any thread; the driver locks it.
unsafe impl Send for Module {}
// SAFETY: as above.
unsafe impl Sync for Module {}

/// Room for what the driver says of PTX that it does not take.
const LOG_BYTES: usize = 8192;

impl Module {
    pub(crate) fn load(context: &Arc<Context>, code: &Code, program: &str) -> Result<Arc<Module>, CudaError> {
        let _current = context.enter()?;
        let mut image = code.bytes().to_vec();
        // PTX is a C string.
        image.push(0);
        let mut log = vec![0u8; LOG_BYTES];
        let mut options =
            [CUjit_option::CU_JIT_ERROR_LOG_BUFFER, CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
        let mut values = [log.as_mut_ptr().cast::<c_void>(), ptr::without_provenance_mut(LOG_BYTES)];
        let mut raw = ptr::null_mut();
        // SAFETY: writes one handle, which is unloaded once, on drop; the image ends with a zero byte, there are as many
        // options and values as are said, and the log has the size that is said.
        let result = unsafe {
            context.device.driver.api.module_load(
                &mut raw,
                image.as_ptr().cast(),
                2,
                options.as_mut_ptr(),
                values.as_mut_ptr(),
            )
        };
        check(symbol::module_load, result, || {
            let end = log.iter().position(|&byte| byte == 0).unwrap_or(LOG_BYTES);
            let log = String::from_utf8_lossy(&log[..end]);
            let log = if log.trim().is_empty() { String::new() } else { format!(" ({})", log.trim()) };
            format!("loading `{program}` on GPU {}{log}", context.device.ordinal())
        })?;
        Ok(Arc::new(Module { context: context.clone(), raw }))
    }

    pub(crate) fn function(self: &Arc<Module>, name: &str) -> Result<Function, CudaError> {
        let doing = || format!("looking for the kernel `{name}`");
        let Ok(c_name) = CString::new(name) else {
            let code = CUresult::CUDA_ERROR_INVALID_VALUE;
            return Err(CudaError::Call { doing: doing(), call: symbol::module_function, code });
        };
        let mut raw = ptr::null_mut();
        // SAFETY: writes one handle; the module is alive and the name is a C string.
        let code =
            unsafe { self.context.device.driver.api.module_function(&mut raw, self.raw, c_name.as_ptr()) };
        check(symbol::module_function, code, doing)?;
        Ok(Function { module: self.clone(), raw })
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        let Ok(_current) = self.context.enter() else { return };
        // SAFETY: it is ours, and none of its kernels runs.
        let _ = unsafe { self.context.device.driver.api.module_unload(self.raw) };
    }
}

/// A kernel of a module.
#[derive(Clone, Debug)]
pub(crate) struct Function {
    module: Arc<Module>,
    raw: CUfunction,
}

// SAFETY: a kernel may be launched by any thread; the driver locks it.
unsafe impl Send for Function {}
// SAFETY: as above.
unsafe impl Sync for Function {}

/// Blocks and threads of a launch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LaunchShape {
    pub(crate) blocks: u32,
    pub(crate) threads: u32,
    /// The driver makes sure that all blocks are resident at once.
    pub(crate) cooperative: bool,
}

impl Function {
    /// Blocks of so many threads that the device holds at once.
    pub(crate) fn resident(&self, threads: u32) -> Result<u64, CudaError> {
        let context = &self.module.context;
        let _current = context.enter()?;
        let mut blocks = 0;
        // SAFETY: writes one integer; the kernel is alive.
        let code = unsafe { context.device.driver.api.occupancy(&mut blocks, self.raw, threads as i32, 0) };
        check(symbol::occupancy, code, || "asking how many blocks fit".to_owned())?;
        Ok(u64::from(blocks.unsigned_abs()) * u64::from(context.device.multiprocessors()?))
    }

    /// Queues it with one parameter, of these bytes.
    ///
    /// # Safety
    /// The parameter is the kernel's, and what it points to is mapped for the device and lives until the kernel has ended.
    pub(crate) unsafe fn launch(
        &self,
        stream: &Stream,
        shape: LaunchShape,
        param: &[u8],
    ) -> Result<(), CudaError> {
        let context = &self.module.context;
        let _current = context.enter()?;
        let api = &context.device.driver.api;
        let LaunchShape { blocks, threads, cooperative } = shape;
        // The driver copies the bytes before it returns; 8-byte words have the block's alignment.
        let mut words: Vec<u64> = param
            .chunks(8)
            .map(|chunk| chunk.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)))
            .collect();
        let mut params = [words.as_mut_ptr().cast::<c_void>()];
        let doing = || format!("launching a kernel on GPU {}", context.device.ordinal());
        if cooperative {
            // SAFETY: the kernel is alive and has this one parameter; the rest is the caller's promise.
            let code = unsafe {
                api.launch_cooperative(
                    self.raw,
                    blocks,
                    1,
                    1,
                    threads,
                    1,
                    1,
                    0,
                    stream.raw,
                    params.as_mut_ptr(),
                )
            };
            check(symbol::launch_cooperative, code, doing)
        } else {
            let (params, extra) = (params.as_mut_ptr(), ptr::null_mut());
            // SAFETY: as above.
            let code =
                unsafe { api.launch(self.raw, blocks, 1, 1, threads, 1, 1, 0, stream.raw, params, extra) };
            check(symbol::launch, code, doing)
        }
    }
}
