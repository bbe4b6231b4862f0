//! What each function of the fake driver does.

use super::{Fake, Object, State};
use crate::driver::api::{Api, symbol};
use cudarc::driver::sys::{
    CUcontext, CUdevice, CUdevice_P2PAttribute, CUdevice_attribute, CUdeviceptr, CUevent, CUfunction,
    CUgraph, CUgraphExec, CUjit_option, CUmemAccessDesc, CUmemAllocationGranularity_flags,
    CUmemAllocationProp, CUmemGenericAllocationHandle, CUmodule, CUmulticastGranularity_flags,
    CUmulticastObjectProp, CUresult, CUstream, CUstreamCaptureMode, CUstreamCaptureStatus,
};
use quadrille_vgpu::{Launch, Module};
use std::alloc::Layout;
use std::ffi::{CStr, c_char, c_void};
use std::sync::Arc;

const GRANULARITY: u64 = 2 << 20;
/// The first address that is given out: that of the first virtual GPU's memory.
const FIRST: u64 = 1 << 40;
/// After so many questions in a row what was launched runs, whether or not a device is missing.
const OFTEN: u32 = 1000;
/// What memory holds that nobody has written.
const GARBAGE: u8 = 0xa5;

type Done = Result<(), CUresult>;

const INVALID: CUresult = CUresult::CUDA_ERROR_INVALID_VALUE;
const GONE: CUresult = CUresult::CUDA_ERROR_INVALID_HANDLE;

impl Fake {
    /// Records a call and does it, unless it is to fail.
    fn call(&self, name: &'static str, what: String, body: impl FnOnce(&mut State) -> Done) -> CUresult {
        let mut state = self.state();
        let number = state.calls.len();
        state.calls.push((name, what));
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
}

impl State {
    fn bytes_made(&self, on: usize) -> u64 {
        let of = |object: &Object| match object {
            Object::Memory { device, bytes } if *device == on => *bytes,
            _ => 0,
        };
        self.objects.values().map(of).sum()
    }

    fn remove(&mut self, handle: u64, fits: fn(&Object) -> bool) -> Result<Object, CUresult> {
        match self.objects.remove(&handle) {
            Some(object) if fits(&object) => Ok(object),
            other => {
                self.wrong(format!("something is freed that is not there: {other:?}"));
                Err(GONE)
            }
        }
    }

    /// Reads memory; what nobody has written is garbage.
    fn read(&self, address: u64, bytes: usize) -> Result<Vec<u8>, CUresult> {
        if let Ok(read) = self.machine.read(address, bytes) {
            return Ok(read);
        }
        let byte = |at: u64| match self.machine.read(at, 1) {
            Ok(byte) => Ok(byte[0]),
            Err(quadrille_vgpu::Fault::Uninitialized(_)) => Ok(GARBAGE),
            Err(_) => Err(INVALID),
        };
        (address..address + bytes as u64).map(byte).collect()
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Done {
        self.machine.write(address, bytes).map_err(|_| INVALID)
    }

    /// The device whose memory is mapped at an address.
    fn owner(&self, address: u64) -> Option<usize> {
        let (_, mapping) = self
            .objects
            .range(..=address | MAPPING)
            .rev()
            .find(|(_, o)| matches!(o, Object::Mapping { .. }))?;
        let Object::Mapping { handle, .. } = mapping else { return None };
        match self.objects.get(handle) {
            Some(Object::Memory { device, .. }) => Some(*device),
            _ => None,
        }
    }

    fn begin(&mut self, function: u64, grid: u32, threads: u32, stream: u64, param: *const u8) -> Done {
        let Some(Object::Function { module, name }) = self.objects.get(&function) else { return Err(GONE) };
        let name = name.clone();
        let Some(Object::Module { device, module: Some(module) }) = self.objects.get(module) else {
            return Err(GONE);
        };
        let (device, module) = (*device, module.clone());
        let Some([bytes]) = module
            .parameters(&name)
            .as_deref()
            .map(<[usize]>::to_vec)
            .as_deref()
            .map(|p| <[usize; 1]>::try_from(p).unwrap_or([0]))
        else {
            return Err(INVALID);
        };
        // SAFETY: the caller gives as many bytes as the kernel's parameter has.
        let param = unsafe { std::slice::from_raw_parts(param, bytes) }.to_vec();
        let launch = Launch {
            rank: device,
            module,
            kernel: name,
            grid: [grid, 1, 1],
            block: [threads, 1, 1],
            shared_bytes: 0,
            params: vec![param],
        };
        if self.device_of(stream)? != device {
            return Err(GONE);
        }
        match self.objects.get_mut(&stream) {
            Some(Object::Stream { captured: Some(launches), .. }) => launches.push(launch),
            _ => self.launch(launch)?,
        }
        Ok(())
    }

    fn wait_for(&mut self, stream: u64) -> Done {
        match self.objects.get(&stream) {
            None if stream == 0 => self.run(),
            Some(Object::Stream { captured: None, .. }) => self.run(),
            Some(Object::Stream { .. }) => Err(CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED),
            _ => Err(GONE),
        }
    }

    /// An event's device, and the launches that it stands behind.
    fn event(&self, event: u64) -> Result<(usize, Option<u64>), CUresult> {
        match self.objects.get(&event) {
            Some(&Object::Event { device, behind }) => Ok((device, behind)),
            _ => Err(GONE),
        }
    }

    /// A stream's device; the default stream is the current context's.
    fn device_of(&self, stream: u64) -> Result<usize, CUresult> {
        match self.objects.get(&stream) {
            None if stream == 0 => self.device(),
            Some(&Object::Stream { device, .. }) => Ok(device),
            _ => Err(GONE),
        }
    }
}

fn number(raw: *const impl Sized) -> u64 {
    raw as u64
}

// SAFETY of all below: each reads and writes what the driver's function of the same name does, through pointers that its
// caller vouches for.
#[expect(clippy::undocumented_unsafe_blocks, reason = "said once above")]
impl Api for Fake {
    fn missing(&self) -> Vec<&'static str> {
        self.state().setting.missing.clone()
    }

    unsafe fn init(&self, _: u32) -> CUresult {
        self.call(symbol::init, String::new(), |_| Ok(()))
    }

    unsafe fn driver_version(&self, version: *mut i32) -> CUresult {
        self.call(symbol::driver_version, String::new(), |s| {
            let said = s.setting.version;
            unsafe { *version = (1000 * said.major + 10 * said.minor) as i32 };
            Ok(())
        })
    }

    unsafe fn device_count(&self, count: *mut i32) -> CUresult {
        self.call(symbol::device_count, String::new(), |s| {
            unsafe { *count = s.setting.devices };
            Ok(())
        })
    }

    unsafe fn device_get(&self, device: *mut CUdevice, ordinal: i32) -> CUresult {
        self.call(symbol::device_get, format!("{ordinal}"), |_| {
            unsafe { *device = ordinal };
            Ok(())
        })
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
        self.call(symbol::device_attribute, format!("{device} {which:?}"), |s| {
            use CUdevice_attribute as A;
            let setting = &s.setting;
            let said = match which {
                A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR => setting.capability.0,
                A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR => setting.capability.1,
                A::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT => setting.resident.1,
                A::CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED => setting.multicast.into(),
                A::CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH => setting.cooperative.into(),
                A::CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED => setting.virtual_memory.into(),
                A::CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED => 1,
                _ => return Err(INVALID),
            };
            unsafe { *value = said };
            Ok(())
        })
    }

    unsafe fn device_total_mem(&self, bytes: *mut usize, device: CUdevice) -> CUresult {
        self.call(symbol::device_total_mem, format!("{device}"), |s| {
            unsafe { *bytes = s.setting.memory as usize };
            Ok(())
        })
    }

    unsafe fn device_can_access_peer(&self, can: *mut i32, device: CUdevice, peer: CUdevice) -> CUresult {
        self.call(symbol::device_can_access_peer, format!("{device} {peer}"), |s| {
            unsafe { *can = (!s.setting.apart.contains(&(device, peer))).into() };
            Ok(())
        })
    }

    unsafe fn device_p2p_attribute(
        &self,
        value: *mut i32,
        which: CUdevice_P2PAttribute,
        device: CUdevice,
        peer: CUdevice,
    ) -> CUresult {
        self.call(symbol::device_p2p_attribute, format!("{device} {peer} {which:?}"), |s| {
            unsafe { *value = s.setting.native_atomics.into() };
            Ok(())
        })
    }

    unsafe fn ctx_retain(&self, ctx: *mut CUcontext, device: CUdevice) -> CUresult {
        self.call(symbol::ctx_retain, format!("{device}"), |s| {
            let on = device as usize;
            let known = s.objects.iter_mut().find_map(|(&handle, object)| match object {
                Object::Context { device, retained } if *device == on => {
                    *retained += 1;
                    Some(handle)
                }
                _ => None,
            });
            let handle = match known {
                Some(handle) => handle,
                None => s.handle(Object::Context { device: on, retained: 1 }),
            };
            unsafe { *ctx = handle as CUcontext };
            Ok(())
        })
    }

    unsafe fn ctx_release(&self, device: CUdevice) -> CUresult {
        self.call(symbol::ctx_release, format!("{device}"), |s| {
            let on = device as usize;
            let found = s.objects.iter_mut().find_map(|(&handle, object)| match object {
                Object::Context { device, retained } if *device == on => {
                    *retained -= 1;
                    Some((handle, *retained))
                }
                _ => None,
            });
            let Some((handle, retained)) = found else { return Err(GONE) };
            if retained == 0 {
                s.objects.remove(&handle);
                let left = s.objects.values().any(|object| match object {
                    Object::Stream { device, .. }
                    | Object::Event { device, .. }
                    | Object::Module { device, .. }
                    | Object::Memory { device, .. } => *device == on,
                    _ => false,
                });
                if left {
                    s.wrong(format!("the context of device {on} is released before what was made in it"));
                }
            }
            Ok(())
        })
    }

    unsafe fn ctx_set_current(&self, ctx: CUcontext) -> CUresult {
        self.call(symbol::ctx_set_current, String::new(), |s| {
            s.current = number(ctx);
            Ok(())
        })
    }

    unsafe fn ctx_get_current(&self, ctx: *mut CUcontext) -> CUresult {
        self.call(symbol::ctx_get_current, String::new(), |s| {
            unsafe { *ctx = s.current as CUcontext };
            Ok(())
        })
    }

    unsafe fn mem_info(&self, free: *mut usize, total: *mut usize) -> CUresult {
        self.call(symbol::mem_info, String::new(), |s| {
            let room = s.setting.room - s.bytes_made(s.device()?).min(s.setting.room);
            unsafe { (*free, *total) = (room as usize, s.setting.room as usize) };
            Ok(())
        })
    }

    unsafe fn mem_granularity(
        &self,
        granularity: *mut usize,
        _: *const CUmemAllocationProp,
        _: CUmemAllocationGranularity_flags,
    ) -> CUresult {
        self.call(symbol::mem_granularity, String::new(), |_| {
            unsafe { *granularity = GRANULARITY as usize };
            Ok(())
        })
    }

    unsafe fn mem_create(
        &self,
        handle: *mut CUmemGenericAllocationHandle,
        bytes: usize,
        prop: *const CUmemAllocationProp,
        _: u64,
    ) -> CUresult {
        let device = unsafe { (*prop).location.id } as usize;
        self.call(symbol::mem_create, format!("{bytes} bytes on {device}"), |s| {
            let bytes = bytes as u64;
            if !bytes.is_multiple_of(GRANULARITY) || bytes == 0 {
                return Err(INVALID);
            }
            if s.bytes_made(device) + bytes > s.setting.room {
                return Err(CUresult::CUDA_ERROR_OUT_OF_MEMORY);
            }
            unsafe { *handle = s.handle(Object::Memory { device, bytes }) };
            Ok(())
        })
    }

    unsafe fn mem_release(&self, handle: CUmemGenericAllocationHandle) -> CUresult {
        self.call(symbol::mem_release, String::new(), |s| {
            let bound = s.objects.values().any(|object| match object {
                Object::Multicast { bound, .. } => bound.iter().any(|&(_, memory, _)| memory == handle),
                Object::Mapping { handle: mapped, .. } => *mapped == handle,
                _ => false,
            });
            if bound {
                s.wrong("memory is released while it is mapped or bound".to_owned());
            }
            let object =
                s.remove(handle, |o| matches!(o, Object::Memory { .. } | Object::Multicast { .. }))?;
            if let Object::Multicast { bound, .. } = object
                && !bound.is_empty()
            {
                s.wrong("a multicast object is released while it binds memory".to_owned());
            }
            Ok(())
        })
    }

    unsafe fn mem_address_reserve(
        &self,
        address: *mut CUdeviceptr,
        bytes: usize,
        _: usize,
        _: CUdeviceptr,
        _: u64,
    ) -> CUresult {
        self.call(symbol::mem_address_reserve, format!("{bytes} bytes"), |s| {
            // Multicast ranges lie above all virtual GPUs' memory.
            let above = FIRST * (2 * s.setting.devices as u64 + 1);
            let mut at = if bytes < 1 << 30 { above } else { FIRST };
            for (&base, object) in &s.objects {
                if let Object::Range { bytes: taken } = object
                    && at < base + taken
                    && base < at + bytes as u64
                {
                    at = base + taken;
                }
            }
            s.objects.insert(at, Object::Range { bytes: bytes as u64 });
            unsafe { *address = at };
            Ok(())
        })
    }

    unsafe fn mem_address_free(&self, address: CUdeviceptr, bytes: usize) -> CUresult {
        self.call(symbol::mem_address_free, format!("{bytes} bytes"), |s| {
            let mapped = s.objects.range(address..address + bytes as u64);
            if mapped.filter(|(_, o)| matches!(o, Object::Mapping { .. })).count() > 0 {
                s.wrong("addresses are freed while memory is mapped there".to_owned());
            }
            s.remove(address, |o| matches!(o, Object::Range { .. })).map(drop)
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
            let bytes = bytes as u64;
            match s.objects.get(&handle) {
                Some(&Object::Memory { bytes: made, .. }) => {
                    if made != bytes {
                        return Err(INVALID);
                    }
                    s.machine.alloc_at(address, bytes, "mapped memory").map_err(|_| INVALID)?;
                }
                Some(Object::Multicast { devices, added, bound, bytes: size }) => {
                    if bound.len() != *devices || added.len() != *devices || *size != bytes {
                        return Err(INVALID);
                    }
                    let addresses: Option<Vec<u64>> = bound
                        .iter()
                        .map(|&(_, memory, _)| {
                            s.objects.iter().find_map(|(&at, o)| match o {
                                Object::Mapping { handle, .. } if *handle == memory => Some(at & !MAPPING),
                                _ => None,
                            })
                        })
                        .collect();
                    let size = bound.iter().map(|b| b.2).min().unwrap_or(0);
                    let Some(addresses) = addresses else { return Err(INVALID) };
                    s.machine
                        .multicast_at(address, &addresses, size, "multicast memory")
                        .map_err(|_| INVALID)?;
                }
                _ => return Err(GONE),
            }
            s.objects.insert(address | MAPPING, Object::Mapping { handle, bytes, access: Vec::new() });
            Ok(())
        })
    }

    unsafe fn mem_unmap(&self, address: CUdeviceptr, bytes: usize) -> CUresult {
        self.call(symbol::mem_unmap, format!("{bytes} bytes at {address:#x}"), |s| {
            let mapping = s.remove(address | MAPPING, |o| matches!(o, Object::Mapping { .. }))?;
            if !matches!(mapping, Object::Mapping { bytes: mapped, .. } if mapped == bytes as u64) {
                s.wrong("other bytes are unmapped than were mapped".to_owned());
            }
            if s.is_pending() {
                s.wrong("memory is unmapped while kernels run".to_owned());
            }
            if let Object::Mapping { handle, .. } = mapping
                && matches!(s.objects.get(&handle), Some(Object::Multicast { .. }))
            {
                s.machine.end_multicast(address);
                return Ok(());
            }
            s.machine.free(address).map_err(|_| INVALID)
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
            match s.objects.get_mut(&(address | MAPPING)) {
                Some(Object::Mapping { access, bytes: mapped, .. }) if *mapped == bytes as u64 => {
                    *access = devices;
                    Ok(())
                }
                _ => Err(INVALID),
            }
        })
    }

    unsafe fn multicast_granularity(
        &self,
        granularity: *mut usize,
        _: *const CUmulticastObjectProp,
        which: CUmulticastGranularity_flags,
    ) -> CUresult {
        self.call(symbol::multicast_granularity, format!("{which:?}"), |s| {
            // The recommended one is a good deal larger.
            let times = match which {
                CUmulticastGranularity_flags::CU_MULTICAST_GRANULARITY_MINIMUM => 1,
                CUmulticastGranularity_flags::CU_MULTICAST_GRANULARITY_RECOMMENDED => 16,
            };
            unsafe { *granularity = (times * s.setting.multicast_granularity) as usize };
            Ok(())
        })
    }

    unsafe fn multicast_create(
        &self,
        handle: *mut CUmemGenericAllocationHandle,
        prop: *const CUmulticastObjectProp,
    ) -> CUresult {
        let (devices, bytes) = unsafe { ((*prop).numDevices as usize, (*prop).size) };
        self.call(symbol::multicast_create, format!("{bytes} bytes for {devices}"), |s| {
            let bytes = bytes as u64;
            if !s.setting.multicast {
                return Err(CUresult::CUDA_ERROR_NOT_SUPPORTED);
            }
            if bytes == 0 || !bytes.is_multiple_of(s.setting.multicast_granularity) {
                return Err(INVALID);
            }
            let object = Object::Multicast { devices, bytes, added: Vec::new(), bound: Vec::new() };
            unsafe { *handle = s.handle(object) };
            Ok(())
        })
    }

    unsafe fn multicast_add_device(
        &self,
        handle: CUmemGenericAllocationHandle,
        device: CUdevice,
    ) -> CUresult {
        self.call(symbol::multicast_add_device, format!("{device}"), |s| match s.objects.get_mut(&handle) {
            Some(Object::Multicast { added, devices, .. })
                if added.len() < *devices && !added.contains(&(device as usize)) =>
            {
                added.push(device as usize);
                Ok(())
            }
            Some(Object::Multicast { .. }) => Err(INVALID),
            _ => Err(GONE),
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
            let least = s.setting.multicast_granularity;
            let whole = [at, from, bytes].iter().all(|n| (*n as u64).is_multiple_of(least)) && bytes > 0;
            let Some(&Object::Memory { device, bytes: made }) = s.objects.get(&memory) else {
                return Err(GONE);
            };
            let Some(Object::Multicast { devices, added, bound, bytes: size }) = s.objects.get_mut(&handle)
            else {
                return Err(GONE);
            };
            if !whole
                || (from + bytes) as u64 > made
                || (at + bytes) as u64 > *size
                || !added.contains(&device)
            {
                return Err(INVALID);
            }
            let early = added.len() < *devices;
            bound.push((device, memory, bytes as u64));
            if early {
                s.wrong("memory is bound before every device has been added: that waits for ever".to_owned());
            }
            Ok(())
        })
    }

    unsafe fn multicast_unbind(
        &self,
        handle: CUmemGenericAllocationHandle,
        device: CUdevice,
        _: usize,
        bytes: usize,
    ) -> CUresult {
        self.call(symbol::multicast_unbind, format!("{device}"), |s| match s.objects.get_mut(&handle) {
            Some(Object::Multicast { bound, .. }) => {
                let before = bound.len();
                bound.retain(|&(on, _, size)| (on, size) != (device as usize, bytes as u64));
                if bound.len() == before {
                    s.wrong("other bytes are unbound than were bound".to_owned());
                    return Err(INVALID);
                }
                Ok(())
            }
            _ => Err(GONE),
        })
    }

    unsafe fn host_alloc(&self, host: *mut *mut c_void, bytes: usize, _: u32) -> CUresult {
        self.call(symbol::host_alloc, format!("{bytes} bytes"), |s| {
            s.needs_context(symbol::host_alloc)?;
            s.is_unsafe(symbol::host_alloc)?;
            let device = s.machine.alloc_zeroed(0, bytes as u64, 64, "host memory").map_err(|_| INVALID)?;
            let layout = Layout::from_size_align(bytes, 64).map_err(|_| INVALID)?;
            let memory = unsafe { std::alloc::alloc(layout) };
            s.objects.insert(memory as u64, Object::Host { bytes, device });
            unsafe { *host = memory.cast() };
            Ok(())
        })
    }

    unsafe fn host_free(&self, host: *mut c_void) -> CUresult {
        self.call(symbol::host_free, String::new(), |s| {
            s.needs_context(symbol::host_free)?;
            if s.is_pending() {
                s.wrong("host memory is freed while kernels run".to_owned());
            }
            if let Object::Host { bytes, device } =
                s.remove(number(host), |o| matches!(o, Object::Host { .. }))?
            {
                s.machine.free(device).map_err(|_| INVALID)?;
                let layout = Layout::from_size_align(bytes, 64).map_err(|_| INVALID)?;
                unsafe { std::alloc::dealloc(host.cast(), layout) };
            }
            Ok(())
        })
    }

    unsafe fn host_device_pointer(&self, address: *mut CUdeviceptr, host: *mut c_void, _: u32) -> CUresult {
        self.call(symbol::host_device_pointer, String::new(), |s| match s.objects.get(&number(host)) {
            Some(Object::Host { device, .. }) => {
                unsafe { *address = *device };
                Ok(())
            }
            _ => Err(INVALID),
        })
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
            let from = unsafe { std::slice::from_raw_parts(from.cast::<u8>(), bytes) };
            s.write(to, from)
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
            s.wait_for(number(stream))?;
            let lost = s.setting.lost.map(|(device, peer)| [Some(device as usize), Some(peer as usize)]);
            if lost == Some([s.owner(from), s.owner(to)]) {
                return Ok(());
            }
            let read = s.read(from, bytes)?;
            s.write(to, &read)
        })
    }

    unsafe fn memset(&self, to: CUdeviceptr, byte: u8, bytes: usize, stream: CUstream) -> CUresult {
        self.call(symbol::memset, format!("{bytes} bytes at {to:#x}"), |s| {
            s.wait_for(number(stream))?;
            s.write(to, &vec![byte; bytes])
        })
    }

    unsafe fn stream_create(&self, stream: *mut CUstream, _: u32) -> CUresult {
        self.call(symbol::stream_create, String::new(), |s| {
            let device = s.device()?;
            unsafe { *stream = s.handle(Object::Stream { device, captured: None }) as CUstream };
            Ok(())
        })
    }

    unsafe fn stream_destroy(&self, stream: CUstream) -> CUresult {
        self.call(symbol::stream_destroy, String::new(), |s| {
            s.needs_context(symbol::stream_destroy)?;
            s.remove(number(stream), |o| matches!(o, Object::Stream { .. })).map(drop)
        })
    }

    unsafe fn stream_synchronize(&self, stream: CUstream) -> CUresult {
        self.call(symbol::stream_synchronize, String::new(), |s| {
            s.is_unsafe(symbol::stream_synchronize)?;
            s.wait_for(number(stream))
        })
    }

    unsafe fn stream_wait_event(&self, _: CUstream, _: CUevent, _: u32) -> CUresult {
        // Launches of a device run one after another anyway.
        self.call(symbol::stream_wait_event, String::new(), |_| Ok(()))
    }

    unsafe fn stream_capture_status(&self, stream: CUstream, status: *mut CUstreamCaptureStatus) -> CUresult {
        self.call(symbol::stream_capture_status, String::new(), |s| {
            s.device_of(number(stream))?;
            let captured = match s.objects.get(&number(stream)) {
                Some(Object::Stream { captured, .. }) => captured.is_some(),
                _ => false,
            };
            unsafe {
                *status = match captured {
                    true => CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE,
                    false => CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE,
                };
            }
            Ok(())
        })
    }

    unsafe fn stream_context(&self, stream: CUstream, ctx: *mut CUcontext) -> CUresult {
        self.call(symbol::stream_context, String::new(), |s| {
            let on = s.device_of(number(stream))?;
            let context = s.objects.iter().find_map(|(&handle, object)| match object {
                Object::Context { device, .. } if *device == on => Some(handle),
                _ => None,
            });
            unsafe { *ctx = context.unwrap_or(0) as CUcontext };
            Ok(())
        })
    }

    unsafe fn stream_begin_capture(&self, stream: CUstream, _: CUstreamCaptureMode) -> CUresult {
        self.call(symbol::stream_begin_capture, String::new(), |s| match s.objects.get_mut(&number(stream)) {
            Some(Object::Stream { captured, .. }) if captured.is_none() => {
                *captured = Some(Vec::new());
                Ok(())
            }
            _ => Err(INVALID),
        })
    }

    unsafe fn capture_mode(&self, mode: *mut CUstreamCaptureMode) -> CUresult {
        self.call(symbol::capture_mode, String::new(), |s| {
            use CUstreamCaptureMode as M;
            let (relaxed, before) = (
                unsafe { *mode } == M::CU_STREAM_CAPTURE_MODE_RELAXED,
                match s.relaxed {
                    true => M::CU_STREAM_CAPTURE_MODE_RELAXED,
                    false => M::CU_STREAM_CAPTURE_MODE_GLOBAL,
                },
            );
            s.relaxed = relaxed;
            unsafe { *mode = before };
            Ok(())
        })
    }

    unsafe fn stream_end_capture(&self, stream: CUstream, graph: *mut CUgraph) -> CUresult {
        self.call(symbol::stream_end_capture, String::new(), |s| {
            let Some(Object::Stream { captured, .. }) = s.objects.get_mut(&number(stream)) else {
                return Err(GONE);
            };
            let Some(launches) = captured.take() else { return Err(INVALID) };
            unsafe { *graph = s.handle(Object::Graph { launches }) as CUgraph };
            Ok(())
        })
    }

    unsafe fn graph_instantiate(&self, exec: *mut CUgraphExec, graph: CUgraph, _: u64) -> CUresult {
        self.call(symbol::graph_instantiate, String::new(), |s| {
            let Some(Object::Graph { launches }) = s.objects.get(&number(graph)) else { return Err(GONE) };
            let launches = launches.clone();
            s.is_unsafe(symbol::graph_instantiate)?;
            unsafe { *exec = s.handle(Object::GraphExec { launches }) as CUgraphExec };
            Ok(())
        })
    }

    unsafe fn graph_launch(&self, exec: CUgraphExec, _: CUstream) -> CUresult {
        self.call(symbol::graph_launch, String::new(), |s| {
            let Some(Object::GraphExec { launches }) = s.objects.get(&number(exec)) else { return Err(GONE) };
            launches.clone().into_iter().try_for_each(|launch| s.launch(launch))
        })
    }

    unsafe fn graph_destroy(&self, graph: CUgraph) -> CUresult {
        self.call(symbol::graph_destroy, String::new(), |s| {
            s.remove(number(graph), |o| matches!(o, Object::Graph { .. })).map(drop)
        })
    }

    unsafe fn graph_exec_destroy(&self, exec: CUgraphExec) -> CUresult {
        self.call(symbol::graph_exec_destroy, String::new(), |s| {
            s.needs_context(symbol::graph_exec_destroy)?;
            s.remove(number(exec), |o| matches!(o, Object::GraphExec { .. })).map(drop)
        })
    }

    unsafe fn event_create(&self, event: *mut CUevent, _: u32) -> CUresult {
        self.call(symbol::event_create, String::new(), |s| {
            let device = s.device()?;
            unsafe { *event = s.handle(Object::Event { device, behind: None }) as CUevent };
            Ok(())
        })
    }

    unsafe fn event_destroy(&self, event: CUevent) -> CUresult {
        self.call(symbol::event_destroy, String::new(), |s| {
            s.needs_context(symbol::event_destroy)?;
            s.remove(number(event), |o| matches!(o, Object::Event { .. })).map(drop)
        })
    }

    unsafe fn event_record(&self, event: CUevent, stream: CUstream) -> CUresult {
        self.call(symbol::event_record, String::new(), |s| {
            let (on, _) = s.event(number(event))?;
            if s.device_of(number(stream))? != on {
                return Err(GONE);
            }
            if matches!(s.objects.get(&number(stream)), Some(Object::Stream { captured: Some(_), .. })) {
                s.wrong("an event is recorded on a stream that is captured".to_owned());
            }
            let launched = s.launched[on];
            if let Some(Object::Event { behind, .. }) = s.objects.get_mut(&number(event)) {
                *behind = Some(launched);
            }
            Ok(())
        })
    }

    unsafe fn event_query(&self, event: CUevent) -> CUresult {
        self.call(symbol::event_query, String::new(), |s| {
            let (on, behind) = s.event(number(event))?;
            s.is_unsafe(symbol::event_query)?;
            if behind.is_none_or(|launches| launches <= s.ended[on]) {
                return Ok(());
            }
            s.asked += 1;
            let ready = s.pending.iter().all(|&launches| launches == s.pending[0]);
            if s.is_pending() && !ready && s.asked < OFTEN {
                return Err(CUresult::CUDA_ERROR_NOT_READY);
            }
            s.run()
        })
    }

    unsafe fn event_elapsed(&self, milliseconds: *mut f32, start: CUevent, end: CUevent) -> CUresult {
        self.call(symbol::event_elapsed, String::new(), |s| {
            s.needs_context(symbol::event_elapsed)?;
            let ((on, begun), (with, ended)) = (s.event(number(start))?, s.event(number(end))?);
            let (Some(_), Some(behind), true) = (begun, ended, on == with) else { return Err(GONE) };
            if behind > s.ended[on] {
                return Err(CUresult::CUDA_ERROR_NOT_READY);
            }
            unsafe { *milliseconds = 1.5 };
            Ok(())
        })
    }

    unsafe fn module_load(
        &self,
        module: *mut CUmodule,
        image: *const c_void,
        _: u32,
        _: *mut CUjit_option,
        _: *mut *mut c_void,
    ) -> CUresult {
        let text = unsafe { CStr::from_ptr(image.cast()) }.to_string_lossy().into_owned();
        let kind = if text.starts_with("\u{7f}ELF") { "a cubin".to_owned() } else { version_of(&text) };
        self.call(symbol::module_load, kind, |s| {
            let device = s.needs_context(symbol::module_load)?;
            s.is_unsafe(symbol::module_load)?;
            let parsed = match text.starts_with("\u{7f}ELF") {
                true => None,
                false => Some(Arc::new(Module::parse(&text).map_err(|_| CUresult::CUDA_ERROR_INVALID_PTX)?)),
            };
            unsafe { *module = s.handle(Object::Module { device, module: parsed }) as CUmodule };
            Ok(())
        })
    }

    unsafe fn module_unload(&self, module: CUmodule) -> CUresult {
        self.call(symbol::module_unload, String::new(), |s| {
            s.needs_context(symbol::module_unload)?;
            let handle = number(module);
            s.objects.retain(|_, o| !matches!(o, Object::Function { module, .. } if *module == handle));
            s.remove(handle, |o| matches!(o, Object::Module { .. })).map(drop)
        })
    }

    unsafe fn module_function(
        &self,
        function: *mut CUfunction,
        module: CUmodule,
        name: *const c_char,
    ) -> CUresult {
        let name = unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned();
        self.call(symbol::module_function, name.clone(), |s| {
            let object = Object::Function { module: number(module), name };
            unsafe { *function = s.handle(object) as CUfunction };
            Ok(())
        })
    }

    unsafe fn occupancy(&self, blocks: *mut i32, _: CUfunction, _: i32, _: usize) -> CUresult {
        self.call(symbol::occupancy, String::new(), |s| {
            unsafe { *blocks = s.setting.resident.0 };
            Ok(())
        })
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
        let param = unsafe { *params }.cast::<u8>();
        self.call(symbol::launch, format!("{grid} x {threads}"), |s| {
            s.begin(number(function), grid, threads, number(stream), param)
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
        let param = unsafe { *params }.cast::<u8>();
        self.call(symbol::launch_cooperative, format!("{grid} x {threads}"), |s| {
            let (blocks, multiprocessors) = s.setting.resident;
            if i64::from(grid) > i64::from(blocks) * i64::from(multiprocessors) {
                return Err(CUresult::CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
            }
            s.begin(number(function), grid, threads, number(stream), param)
        })
    }
}

/// Mappings are kept by their address with this bit, as ranges begin at the same addresses.
const MAPPING: u64 = 1;

fn version_of(ptx: &str) -> String {
    let version = ptx.lines().find_map(|line| line.strip_prefix(".version ")).unwrap_or("?");
    format!("PTX {version}")
}
