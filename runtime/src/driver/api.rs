//! The boundary to libcuda: its functions as the driver has them, each found by name when the library is loaded. Nothing
//! above this file knows a symbol; nothing in it knows what functions are for.

use cudarc::driver::sys::{
    self as cuda, CUcontext, CUdevice, CUdevice_P2PAttribute, CUdevice_attribute, CUdeviceptr, CUevent,
    CUfunction, CUgraph, CUgraphExec, CUjit_option, CUmemAccessDesc, CUmemAllocationGranularity_flags,
    CUmemAllocationProp, CUmemGenericAllocationHandle, CUmodule, CUmulticastGranularity_flags,
    CUmulticastObjectProp, CUresult, CUstream, CUstreamCaptureMode, CUstreamCaptureStatus,
};
use std::ffi::{c_char, c_void};

macro_rules! api {
    ($($name:ident = $symbol:literal ($($arg:ident: $ty:ty),*);)*) => {
        /// The driver's functions. Each method is the function whose name [`symbol`] has, with its arguments.
        #[expect(clippy::too_many_arguments, reason = "the driver's functions have as many")]
        pub trait Api: Send + Sync {
            /// The functions that this driver has not.
            fn missing(&self) -> Vec<&'static str>;
            $(
                #[doc = concat!("`", $symbol, "`")]
                ///
                /// # Safety
                /// The caller keeps what the CUDA driver API demands of callers of this function.
                unsafe fn $name(&self, $($arg: $ty),*) -> CUresult;
            )*
        }

        /// The functions' names in the library.
        #[expect(non_upper_case_globals, reason = "they are called as the methods are")]
        pub mod symbol {
            $(#[doc = concat!("`", $symbol, "`")] pub const $name: &str = $symbol;)*
        }

        /// The functions of the libcuda of this process. One that an old driver lacks gives `CUDA_ERROR_NOT_FOUND`.
        pub(super) struct Libcuda {
            $($name: Option<unsafe extern "C" fn($($ty),*) -> CUresult>,)*
        }

        impl Libcuda {
            /// `None` where there is no libcuda.
            pub(super) fn load() -> Option<Libcuda> {
                // SAFETY: opens libcuda by name; cudarc would panic where it is missing, so that is asked first.
                if !unsafe { cuda::is_culib_present() } {
                    return None;
                }
                // SAFETY: the library has just been found; it is never closed.
                let library = unsafe { cuda::culib() };
                Some(Libcuda {
                    // SAFETY: the driver's symbol of this name has this type (cuda.h).
                    $($name: unsafe { library.get($symbol.as_bytes()) }.ok().map(|function| *function),)*
                })
            }
        }

        impl Api for Libcuda {
            fn missing(&self) -> Vec<&'static str> {
                [$((self.$name.is_none(), $symbol)),*].into_iter().filter(|m| m.0).map(|m| m.1).collect()
            }

            $(unsafe fn $name(&self, $($arg: $ty),*) -> CUresult {
                match self.$name {
                    // SAFETY: the caller does what the driver asks for.
                    Some(function) => unsafe { function($($arg),*) },
                    None => CUresult::CUDA_ERROR_NOT_FOUND,
                }
            })*
        }
    };
}

api! {
    init = "cuInit"(flags: u32);
    driver_version = "cuDriverGetVersion"(version: *mut i32);
    device_count = "cuDeviceGetCount"(count: *mut i32);
    device_get = "cuDeviceGet"(device: *mut CUdevice, ordinal: i32);
    device_name = "cuDeviceGetName"(name: *mut c_char, len: i32, device: CUdevice);
    device_attribute = "cuDeviceGetAttribute"(value: *mut i32, which: CUdevice_attribute, device: CUdevice);
    device_total_mem = "cuDeviceTotalMem_v2"(bytes: *mut usize, device: CUdevice);
    device_can_access_peer = "cuDeviceCanAccessPeer"(can: *mut i32, device: CUdevice, peer: CUdevice);
    device_p2p_attribute = "cuDeviceGetP2PAttribute"(
        value: *mut i32, which: CUdevice_P2PAttribute, device: CUdevice, peer: CUdevice
    );
    ctx_retain = "cuDevicePrimaryCtxRetain"(ctx: *mut CUcontext, device: CUdevice);
    ctx_release = "cuDevicePrimaryCtxRelease_v2"(device: CUdevice);
    ctx_set_current = "cuCtxSetCurrent"(ctx: CUcontext);
    ctx_get_current = "cuCtxGetCurrent"(ctx: *mut CUcontext);
    mem_info = "cuMemGetInfo_v2"(free: *mut usize, total: *mut usize);
    mem_granularity = "cuMemGetAllocationGranularity"(
        granularity: *mut usize, prop: *const CUmemAllocationProp, which: CUmemAllocationGranularity_flags
    );
    mem_create = "cuMemCreate"(
        handle: *mut CUmemGenericAllocationHandle, bytes: usize, prop: *const CUmemAllocationProp, flags: u64
    );
    mem_release = "cuMemRelease"(handle: CUmemGenericAllocationHandle);
    mem_address_reserve = "cuMemAddressReserve"(
        address: *mut CUdeviceptr, bytes: usize, align: usize, hint: CUdeviceptr, flags: u64
    );
    mem_address_free = "cuMemAddressFree"(address: CUdeviceptr, bytes: usize);
    mem_map = "cuMemMap"(
        address: CUdeviceptr, bytes: usize, offset: usize, handle: CUmemGenericAllocationHandle, flags: u64
    );
    mem_unmap = "cuMemUnmap"(address: CUdeviceptr, bytes: usize);
    mem_set_access = "cuMemSetAccess"(
        address: CUdeviceptr, bytes: usize, who: *const CUmemAccessDesc, count: usize
    );
    multicast_granularity = "cuMulticastGetGranularity"(
        granularity: *mut usize, prop: *const CUmulticastObjectProp, which: CUmulticastGranularity_flags
    );
    multicast_create = "cuMulticastCreate"(
        handle: *mut CUmemGenericAllocationHandle, prop: *const CUmulticastObjectProp
    );
    multicast_add_device = "cuMulticastAddDevice"(handle: CUmemGenericAllocationHandle, device: CUdevice);
    multicast_bind_mem = "cuMulticastBindMem"(
        handle: CUmemGenericAllocationHandle, at: usize, memory: CUmemGenericAllocationHandle, from: usize,
        bytes: usize, flags: u64
    );
    multicast_unbind = "cuMulticastUnbind"(
        handle: CUmemGenericAllocationHandle, device: CUdevice, at: usize, bytes: usize
    );
    host_alloc = "cuMemHostAlloc"(host: *mut *mut c_void, bytes: usize, flags: u32);
    host_free = "cuMemFreeHost"(host: *mut c_void);
    host_device_pointer = "cuMemHostGetDevicePointer_v2"(address: *mut CUdeviceptr, host: *mut c_void, flags: u32);
    memcpy_to_device = "cuMemcpyHtoDAsync_v2"(
        to: CUdeviceptr, from: *const c_void, bytes: usize, stream: CUstream
    );
    memcpy_to_host = "cuMemcpyDtoHAsync_v2"(to: *mut c_void, from: CUdeviceptr, bytes: usize, stream: CUstream);
    memcpy_on_device = "cuMemcpyDtoDAsync_v2"(to: CUdeviceptr, from: CUdeviceptr, bytes: usize, stream: CUstream);
    memset = "cuMemsetD8Async"(to: CUdeviceptr, byte: u8, bytes: usize, stream: CUstream);
    stream_create = "cuStreamCreate"(stream: *mut CUstream, flags: u32);
    stream_destroy = "cuStreamDestroy_v2"(stream: CUstream);
    stream_synchronize = "cuStreamSynchronize"(stream: CUstream);
    stream_query = "cuStreamQuery"(stream: CUstream);
    stream_wait_event = "cuStreamWaitEvent"(stream: CUstream, event: CUevent, flags: u32);
    stream_capture_status = "cuStreamIsCapturing"(stream: CUstream, status: *mut CUstreamCaptureStatus);
    stream_context = "cuStreamGetCtx"(stream: CUstream, ctx: *mut CUcontext);
    stream_begin_capture = "cuStreamBeginCapture_v2"(stream: CUstream, mode: CUstreamCaptureMode);
    capture_mode = "cuThreadExchangeStreamCaptureMode"(mode: *mut CUstreamCaptureMode);
    stream_end_capture = "cuStreamEndCapture"(stream: CUstream, graph: *mut CUgraph);
    graph_instantiate = "cuGraphInstantiateWithFlags"(exec: *mut CUgraphExec, graph: CUgraph, flags: u64);
    graph_launch = "cuGraphLaunch"(exec: CUgraphExec, stream: CUstream);
    graph_destroy = "cuGraphDestroy"(graph: CUgraph);
    graph_exec_destroy = "cuGraphExecDestroy"(exec: CUgraphExec);
    event_create = "cuEventCreate"(event: *mut CUevent, flags: u32);
    event_destroy = "cuEventDestroy_v2"(event: CUevent);
    event_record = "cuEventRecord"(event: CUevent, stream: CUstream);
    event_query = "cuEventQuery"(event: CUevent);
    event_elapsed = "cuEventElapsedTime"(milliseconds: *mut f32, start: CUevent, end: CUevent);
    module_load = "cuModuleLoadDataEx"(
        module: *mut CUmodule, image: *const c_void, count: u32, options: *mut CUjit_option,
        values: *mut *mut c_void
    );
    module_unload = "cuModuleUnload"(module: CUmodule);
    module_function = "cuModuleGetFunction"(function: *mut CUfunction, module: CUmodule, name: *const c_char);
    occupancy = "cuOccupancyMaxActiveBlocksPerMultiprocessor"(
        blocks: *mut i32, function: CUfunction, threads: i32, shared: usize
    );
    launch = "cuLaunchKernel"(
        function: CUfunction, grid_x: u32, grid_y: u32, grid_z: u32, block_x: u32, block_y: u32, block_z: u32,
        shared: u32, stream: CUstream, params: *mut *mut c_void, extra: *mut *mut c_void
    );
    launch_cooperative = "cuLaunchCooperativeKernel"(
        function: CUfunction, grid_x: u32, grid_y: u32, grid_z: u32, block_x: u32, block_y: u32, block_z: u32,
        shared: u32, stream: CUstream, params: *mut *mut c_void
    );
}
