//! The boundary: records each call, reads its arguments and writes its result through pointers. What a call does is a
//! method of [`FakeState`], mostly of the same name.

use super::launches::kind;
use super::memory::GRANULARITY;
use super::{Done, FakeDriver, FakeState};
use cudarc::driver::sys::{
    CUcontext, CUdevice, CUdevice_P2PAttribute, CUdevice_attribute, CUdeviceptr, CUevent, CUfunction,
    CUgraph, CUgraphExec, CUjit_option, CUmemAccessDesc, CUmemAllocationGranularity_flags,
    CUmemAllocationProp, CUmemGenericAllocationHandle, CUmodule, CUmulticastGranularity_flags,
    CUmulticastObjectProp, CUresult, CUstream, CUstreamCaptureMode, CUstreamCaptureStatus,
};
use quadrille_runtime::internals::{Api, symbol};
use std::ffi::{CStr, c_char, c_void};

impl FakeDriver {
    /// Records a call, its arguments in words, and does it, unless it is to fail.
    fn call(
        &self,
        name: &'static str,
        what: impl Into<String>,
        body: impl FnOnce(&mut FakeState) -> Done,
    ) -> CUresult {
        let mut state = self.state();
        let number = state.calls.len();
        state.calls.push((name, what.into()));
        // Turning to a context is part of a question.
        let turns = [symbol::ctx_get_current, symbol::ctx_set_current, symbol::capture_mode].contains(&name);
        if name != symbol::event_query && !turns {
            state.asked = 0;
        }
        if let Some((_, code)) = state.failing.filter(|&(failing, _)| failing == number) {
            return code;
        }
        if state.setting.missing.contains(&name) {
            return CUresult::CUDA_ERROR_NOT_FOUND;
        }
        match body(&mut state) {
            Ok(()) => CUresult::CUDA_SUCCESS,
            Err(code) => code,
        }
    }

    /// Like [`FakeDriver::call`], for one that has a result.
    ///
    /// # Safety
    /// A `T` can be written to `to`.
    unsafe fn give<T>(
        &self,
        to: *mut T,
        name: &'static str,
        what: impl Into<String>,
        body: impl FnOnce(&mut FakeState) -> Done<T>,
    ) -> CUresult {
        self.call(name, what, |s| {
            let result = body(s)?;
            // SAFETY: the caller vouches for it.
            unsafe { to.write(result) };
            Ok(())
        })
    }
}

/// The handle or address that a pointer is.
fn number(raw: *const impl Sized) -> u64 {
    raw as u64
}

/// The pointer that stands for a handle or address.
fn pointer<T>(number: u64) -> *mut T {
    number as *mut T
}

/// # Safety
/// There are as many bytes.
unsafe fn copy_of(from: *const c_void, bytes: usize) -> Vec<u8> {
    // SAFETY: the caller vouches for it.
    unsafe { std::slice::from_raw_parts(from.cast::<u8>(), bytes) }.to_vec()
}

/// # Safety
/// It is a string that ends with a 0.
unsafe fn text_of(from: *const c_char) -> String {
    // SAFETY: the caller vouches for it.
    unsafe { CStr::from_ptr(from) }.to_string_lossy().into_owned()
}

// SAFETY of all below: each reads and writes what the driver's function of the same name does, through pointers that its
// caller vouches for.
#[expect(clippy::undocumented_unsafe_blocks, reason = "said once above")]
impl Api for FakeDriver {
    fn missing(&self) -> Vec<&'static str> {
        self.state().setting.missing.clone()
    }

    unsafe fn init(&self, _: u32) -> CUresult {
        self.call(symbol::init, "", |_| Ok(()))
    }

    unsafe fn driver_version(&self, version: *mut i32) -> CUresult {
        let said =
            |s: &mut FakeState| Ok((1000 * s.setting.version.major + 10 * s.setting.version.minor) as i32);
        unsafe { self.give(version, symbol::driver_version, "", said) }
    }

    unsafe fn device_count(&self, count: *mut i32) -> CUresult {
        unsafe { self.give(count, symbol::device_count, "", |s| Ok(s.setting.devices)) }
    }

    unsafe fn device_get(&self, device: *mut CUdevice, ordinal: i32) -> CUresult {
        unsafe { self.give(device, symbol::device_get, format!("{ordinal}"), |_| Ok(ordinal)) }
    }

    unsafe fn device_name(&self, name: *mut c_char, len: i32, device: CUdevice) -> CUresult {
        self.call(symbol::device_name, format!("{device}"), |s| {
            let text = s.setting.name.as_bytes();
            assert!(text.len() < len as usize);
            unsafe { std::ptr::copy_nonoverlapping(text.as_ptr().cast(), name, text.len()) };
            Ok(())
        })
    }

    unsafe fn device_attribute(
        &self,
        value: *mut i32,
        which: CUdevice_attribute,
        device: CUdevice,
    ) -> CUresult {
        let what = format!("{device} {which:?}");
        unsafe { self.give(value, symbol::device_attribute, what, |s| s.setting.attribute(which)) }
    }

    unsafe fn device_total_mem(&self, bytes: *mut usize, device: CUdevice) -> CUresult {
        let what = format!("{device}");
        unsafe { self.give(bytes, symbol::device_total_mem, what, |s| Ok(s.setting.memory as usize)) }
    }

    unsafe fn device_can_access_peer(&self, can: *mut i32, device: CUdevice, peer: CUdevice) -> CUresult {
        let can_access = |s: &mut FakeState| Ok((!s.setting.apart.contains(&(device, peer))).into());
        unsafe { self.give(can, symbol::device_can_access_peer, format!("{device} {peer}"), can_access) }
    }

    unsafe fn device_p2p_attribute(
        &self,
        value: *mut i32,
        which: CUdevice_P2PAttribute,
        device: CUdevice,
        peer: CUdevice,
    ) -> CUresult {
        let what = format!("{device} {peer} {which:?}");
        unsafe {
            self.give(value, symbol::device_p2p_attribute, what, |s| Ok(s.setting.native_atomics.into()))
        }
    }

    unsafe fn ctx_retain(&self, ctx: *mut CUcontext, device: CUdevice) -> CUresult {
        let retain = |s: &mut FakeState| s.ctx_retain(device as usize).map(pointer);
        unsafe { self.give(ctx, symbol::ctx_retain, format!("{device}"), retain) }
    }

    unsafe fn ctx_release(&self, device: CUdevice) -> CUresult {
        self.call(symbol::ctx_release, format!("{device}"), |s| s.ctx_release(device as usize))
    }

    unsafe fn ctx_set_current(&self, ctx: CUcontext) -> CUresult {
        self.call(symbol::ctx_set_current, "", |s| {
            s.current = number(ctx);
            Ok(())
        })
    }

    unsafe fn ctx_get_current(&self, ctx: *mut CUcontext) -> CUresult {
        unsafe { self.give(ctx, symbol::ctx_get_current, "", |s| Ok(pointer(s.current))) }
    }

    unsafe fn mem_info(&self, free: *mut usize, total: *mut usize) -> CUresult {
        self.call(symbol::mem_info, "", |s| {
            let (left, all) = s.mem_info()?;
            unsafe { (*free, *total) = (left as usize, all as usize) };
            Ok(())
        })
    }

    unsafe fn mem_granularity(
        &self,
        granularity: *mut usize,
        _: *const CUmemAllocationProp,
        _: CUmemAllocationGranularity_flags,
    ) -> CUresult {
        unsafe { self.give(granularity, symbol::mem_granularity, "", |_| Ok(GRANULARITY as usize)) }
    }

    unsafe fn mem_create(
        &self,
        handle: *mut CUmemGenericAllocationHandle,
        bytes: usize,
        prop: *const CUmemAllocationProp,
        _: u64,
    ) -> CUresult {
        let device = unsafe { (*prop).location.id } as usize;
        let what = format!("{bytes} bytes on {device}");
        unsafe { self.give(handle, symbol::mem_create, what, |s| s.mem_create(device, bytes as u64)) }
    }

    unsafe fn mem_release(&self, handle: CUmemGenericAllocationHandle) -> CUresult {
        self.call(symbol::mem_release, "", |s| s.mem_release(handle))
    }

    unsafe fn mem_address_reserve(
        &self,
        address: *mut CUdeviceptr,
        bytes: usize,
        _: usize,
        _: CUdeviceptr,
        _: u64,
    ) -> CUresult {
        let reserve = |s: &mut FakeState| s.mem_address_reserve(bytes as u64);
        unsafe { self.give(address, symbol::mem_address_reserve, format!("{bytes} bytes"), reserve) }
    }

    unsafe fn mem_address_free(&self, address: CUdeviceptr, bytes: usize) -> CUresult {
        self.call(symbol::mem_address_free, format!("{bytes} bytes"), |s| {
            s.mem_address_free(address, bytes as u64)
        })
    }

    unsafe fn mem_map(
        &self,
        address: CUdeviceptr,
        bytes: usize,
        _: usize,
        handle: CUmemGenericAllocationHandle,
        _: u64,
    ) -> CUresult {
        self.call(symbol::mem_map, format!("{bytes} bytes at {address:#x}"), |s| {
            s.mem_map(address, bytes as u64, handle)
        })
    }

    unsafe fn mem_unmap(&self, address: CUdeviceptr, bytes: usize) -> CUresult {
        self.call(symbol::mem_unmap, format!("{bytes} bytes at {address:#x}"), |s| {
            s.mem_unmap(address, bytes as u64)
        })
    }

    unsafe fn mem_set_access(
        &self,
        address: CUdeviceptr,
        bytes: usize,
        who: *const CUmemAccessDesc,
        count: usize,
    ) -> CUresult {
        let who = unsafe { std::slice::from_raw_parts(who, count) };
        let devices: Vec<usize> = who.iter().map(|desc| desc.location.id as usize).collect();
        self.call(symbol::mem_set_access, format!("{address:#x} for {devices:?}"), |s| {
            s.mem_set_access(address, bytes as u64, devices)
        })
    }

    unsafe fn multicast_granularity(
        &self,
        granularity: *mut usize,
        _: *const CUmulticastObjectProp,
        which: CUmulticastGranularity_flags,
    ) -> CUresult {
        let said = |s: &mut FakeState| Ok(s.multicast_granularity(which) as usize);
        unsafe { self.give(granularity, symbol::multicast_granularity, format!("{which:?}"), said) }
    }

    unsafe fn multicast_create(
        &self,
        handle: *mut CUmemGenericAllocationHandle,
        prop: *const CUmulticastObjectProp,
    ) -> CUresult {
        let (devices, bytes) = unsafe { ((*prop).numDevices as usize, (*prop).size) };
        let what = format!("{bytes} bytes for {devices}");
        let create = |s: &mut FakeState| s.multicast_create(devices, bytes as u64);
        unsafe { self.give(handle, symbol::multicast_create, what, create) }
    }

    unsafe fn multicast_add_device(
        &self,
        handle: CUmemGenericAllocationHandle,
        device: CUdevice,
    ) -> CUresult {
        self.call(symbol::multicast_add_device, format!("{device}"), |s| {
            s.multicast_add_device(handle, device as usize)
        })
    }

    unsafe fn multicast_bind_mem(
        &self,
        handle: CUmemGenericAllocationHandle,
        at: usize,
        memory: CUmemGenericAllocationHandle,
        from: usize,
        bytes: usize,
        _: u64,
    ) -> CUresult {
        self.call(symbol::multicast_bind_mem, format!("{bytes} bytes"), |s| {
            s.multicast_bind_mem(handle, at as u64, memory, from as u64, bytes as u64)
        })
    }

    unsafe fn multicast_unbind(
        &self,
        handle: CUmemGenericAllocationHandle,
        device: CUdevice,
        _: usize,
        bytes: usize,
    ) -> CUresult {
        self.call(symbol::multicast_unbind, format!("{device}"), |s| {
            s.multicast_unbind(handle, device as usize, bytes as u64)
        })
    }

    unsafe fn host_alloc(&self, host: *mut *mut c_void, bytes: usize, _: u32) -> CUresult {
        let alloc = |s: &mut FakeState| s.host_alloc(bytes).map(pointer);
        unsafe { self.give(host, symbol::host_alloc, format!("{bytes} bytes"), alloc) }
    }

    unsafe fn host_free(&self, host: *mut c_void) -> CUresult {
        self.call(symbol::host_free, "", |s| s.host_free(number(host)))
    }

    unsafe fn host_device_pointer(&self, address: *mut CUdeviceptr, host: *mut c_void, _: u32) -> CUresult {
        let find = |s: &mut FakeState| s.host_device_pointer(number(host));
        unsafe { self.give(address, symbol::host_device_pointer, "", find) }
    }

    unsafe fn memcpy_to_device(
        &self,
        to: CUdeviceptr,
        from: *const c_void,
        bytes: usize,
        stream: CUstream,
    ) -> CUresult {
        self.call(symbol::memcpy_to_device, format!("{bytes} bytes to {to:#x}"), |s| {
            s.wait_for(number(stream))?;
            s.write(to, &unsafe { copy_of(from, bytes) })
        })
    }

    unsafe fn memcpy_to_host(
        &self,
        to: *mut c_void,
        from: CUdeviceptr,
        bytes: usize,
        stream: CUstream,
    ) -> CUresult {
        self.call(symbol::memcpy_to_host, format!("{bytes} bytes from {from:#x}"), |s| {
            s.wait_for(number(stream))?;
            let read = s.read(from, bytes)?;
            unsafe { std::ptr::copy_nonoverlapping(read.as_ptr(), to.cast::<u8>(), bytes) };
            Ok(())
        })
    }

    unsafe fn memcpy_on_device(
        &self,
        to: CUdeviceptr,
        from: CUdeviceptr,
        bytes: usize,
        stream: CUstream,
    ) -> CUresult {
        self.call(symbol::memcpy_on_device, format!("{bytes} bytes from {from:#x} to {to:#x}"), |s| {
            s.memcpy_on_device(to, from, bytes, number(stream))
        })
    }

    unsafe fn memset(&self, to: CUdeviceptr, byte: u8, bytes: usize, stream: CUstream) -> CUresult {
        self.call(symbol::memset, format!("{bytes} bytes at {to:#x}"), |s| {
            s.memset(to, byte, bytes, number(stream))
        })
    }

    unsafe fn stream_create(&self, stream: *mut CUstream, _: u32) -> CUresult {
        unsafe { self.give(stream, symbol::stream_create, "", |s| s.stream_create().map(pointer)) }
    }

    unsafe fn stream_destroy(&self, stream: CUstream) -> CUresult {
        self.call(symbol::stream_destroy, "", |s| s.stream_destroy(number(stream)))
    }

    unsafe fn stream_synchronize(&self, stream: CUstream) -> CUresult {
        self.call(symbol::stream_synchronize, "", |s| s.stream_synchronize(number(stream)))
    }

    unsafe fn stream_query(&self, stream: CUstream) -> CUresult {
        self.call(symbol::stream_query, "", |s| s.stream_query(number(stream)))
    }

    unsafe fn stream_wait_event(&self, _: CUstream, _: CUevent, _: u32) -> CUresult {
        // Launches of a device run one after another anyway.
        self.call(symbol::stream_wait_event, "", |_| Ok(()))
    }

    unsafe fn stream_capture_status(&self, stream: CUstream, status: *mut CUstreamCaptureStatus) -> CUresult {
        let ask = |s: &mut FakeState| {
            Ok(match s.is_captured(number(stream))? {
                true => CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE,
                false => CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE,
            })
        };
        unsafe { self.give(status, symbol::stream_capture_status, "", ask) }
    }

    unsafe fn stream_context(&self, stream: CUstream, ctx: *mut CUcontext) -> CUresult {
        let find = |s: &mut FakeState| s.stream_context(number(stream)).map(pointer);
        unsafe { self.give(ctx, symbol::stream_context, "", find) }
    }

    unsafe fn stream_begin_capture(&self, stream: CUstream, _: CUstreamCaptureMode) -> CUresult {
        self.call(symbol::stream_begin_capture, "", |s| s.stream_begin_capture(number(stream)))
    }

    unsafe fn capture_mode(&self, mode: *mut CUstreamCaptureMode) -> CUresult {
        unsafe { self.give(mode, symbol::capture_mode, "", |s| Ok(s.capture_mode(*mode))) }
    }

    unsafe fn stream_end_capture(&self, stream: CUstream, graph: *mut CUgraph) -> CUresult {
        let end = |s: &mut FakeState| s.stream_end_capture(number(stream)).map(pointer);
        unsafe { self.give(graph, symbol::stream_end_capture, "", end) }
    }

    unsafe fn graph_instantiate(&self, exec: *mut CUgraphExec, graph: CUgraph, _: u64) -> CUresult {
        let instantiate = |s: &mut FakeState| s.graph_instantiate(number(graph)).map(pointer);
        unsafe { self.give(exec, symbol::graph_instantiate, "", instantiate) }
    }

    unsafe fn graph_launch(&self, exec: CUgraphExec, stream: CUstream) -> CUresult {
        self.call(symbol::graph_launch, "", |s| s.graph_launch(number(exec), number(stream)))
    }

    unsafe fn graph_destroy(&self, graph: CUgraph) -> CUresult {
        self.call(symbol::graph_destroy, "", |s| s.graph_destroy(number(graph)))
    }

    unsafe fn graph_exec_destroy(&self, exec: CUgraphExec) -> CUresult {
        self.call(symbol::graph_exec_destroy, "", |s| s.graph_exec_destroy(number(exec)))
    }

    unsafe fn event_create(&self, event: *mut CUevent, _: u32) -> CUresult {
        unsafe { self.give(event, symbol::event_create, "", |s| s.event_create().map(pointer)) }
    }

    unsafe fn event_destroy(&self, event: CUevent) -> CUresult {
        self.call(symbol::event_destroy, "", |s| s.event_destroy(number(event)))
    }

    unsafe fn event_record(&self, event: CUevent, stream: CUstream) -> CUresult {
        self.call(symbol::event_record, "", |s| s.event_record(number(event), number(stream)))
    }

    unsafe fn event_query(&self, event: CUevent) -> CUresult {
        self.call(symbol::event_query, "", |s| s.event_query(number(event)))
    }

    unsafe fn event_elapsed(&self, milliseconds: *mut f32, start: CUevent, end: CUevent) -> CUresult {
        let elapsed = |s: &mut FakeState| s.event_elapsed(number(start), number(end));
        unsafe { self.give(milliseconds, symbol::event_elapsed, "", elapsed) }
    }

    unsafe fn module_load(
        &self,
        module: *mut CUmodule,
        image: *const c_void,
        _: u32,
        _: *mut CUjit_option,
        _: *mut *mut c_void,
    ) -> CUresult {
        let image = unsafe { text_of(image.cast()) };
        let load = |s: &mut FakeState| s.module_load(&image).map(pointer);
        unsafe { self.give(module, symbol::module_load, kind(&image), load) }
    }

    unsafe fn module_unload(&self, module: CUmodule) -> CUresult {
        self.call(symbol::module_unload, "", |s| s.module_unload(number(module)))
    }

    unsafe fn module_function(
        &self,
        function: *mut CUfunction,
        module: CUmodule,
        name: *const c_char,
    ) -> CUresult {
        let name = unsafe { text_of(name) };
        let find = |s: &mut FakeState| Ok(pointer(s.module_function(number(module), &name)));
        unsafe { self.give(function, symbol::module_function, &*name, find) }
    }

    unsafe fn occupancy(&self, blocks: *mut i32, _: CUfunction, _: i32, _: usize) -> CUresult {
        unsafe { self.give(blocks, symbol::occupancy, "", |s| Ok(s.setting.resident.0)) }
    }

    unsafe fn launch(
        &self,
        function: CUfunction,
        grid: u32,
        _: u32,
        _: u32,
        threads: u32,
        _: u32,
        _: u32,
        _: u32,
        stream: CUstream,
        params: *mut *mut c_void,
        _: *mut *mut c_void,
    ) -> CUresult {
        self.call(symbol::launch, format!("{grid} x {threads}"), |s| {
            let kernel = s.kernel(number(function))?;
            let param = unsafe { copy_of(*params, kernel.bytes) };
            s.launch(kernel, grid, threads, param, number(stream))
        })
    }

    unsafe fn launch_cooperative(
        &self,
        function: CUfunction,
        grid: u32,
        _: u32,
        _: u32,
        threads: u32,
        _: u32,
        _: u32,
        _: u32,
        stream: CUstream,
        params: *mut *mut c_void,
    ) -> CUresult {
        self.call(symbol::launch_cooperative, format!("{grid} x {threads}"), |s| {
            s.fits(grid)?;
            let kernel = s.kernel(number(function))?;
            let param = unsafe { copy_of(*params, kernel.bytes) };
            s.launch(kernel, grid, threads, param, number(stream))
        })
    }
}
