//! Memory by the driver's virtual memory management: physical memory on a device, ranges of addresses, mappings of the one
//! in the other, and multicast objects that bind memory of several devices.

use super::api::symbol;
use super::error::{CudaError, check};
use super::{Context, Device, Driver};
use cudarc::driver::sys::{
    CUmemAccess_flags, CUmemAccessDesc, CUmemAllocationGranularity_flags, CUmemAllocationProp,
    CUmemAllocationProp_st__bindgen_ty_1, CUmemAllocationType, CUmemGenericAllocationHandle, CUmemLocation,
    CUmemLocationType, CUmulticastGranularity_flags, CUmulticastObjectProp, CUresult,
};
use std::ffi::c_void;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

fn location(device: &Device) -> CUmemLocation {
    CUmemLocation { type_: CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE, id: device.raw }
}

fn properties(device: &Device) -> CUmemAllocationProp {
    CUmemAllocationProp {
        type_: CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
        requestedHandleTypes: device.handles,
        location: location(device),
        win32HandleMetaData: ptr::null_mut(),
        allocFlags: CUmemAllocationProp_st__bindgen_ty_1 {
            compressionType: 0,
            gpuDirectRDMACapable: 0,
            usage: 0,
            reserved: [0; 4],
        },
    }
}

/// Memory of a device, at no address yet.
#[derive(Debug)]
pub(crate) struct Physical {
    context: Arc<Context>,
    handle: CUmemGenericAllocationHandle,
    bytes: u64,
}

impl Physical {
    /// The number of bytes that sizes on the device are multiples of.
    pub(crate) fn granularity(device: &Device) -> Result<u64, CudaError> {
        let which = CUmemAllocationGranularity_flags::CU_MEM_ALLOC_GRANULARITY_RECOMMENDED;
        let mut granularity = 0;
        // SAFETY: writes one integer; the properties are read.
        let code = unsafe { device.driver.api.mem_granularity(&mut granularity, &properties(device), which) };
        let doing = || format!("asking for the granularity of memory on GPU {}", device.ordinal());
        check(symbol::mem_granularity, code, doing)?;
        Ok(granularity as u64)
    }

    /// `bytes` is a multiple of the granularity; `what` it is for.
    pub(crate) fn new(context: &Arc<Context>, bytes: u64, what: &str) -> Result<Physical, CudaError> {
        let device = context.device();
        let mut handle = 0;
        // SAFETY: writes one handle, which is released once, on drop; the properties are read.
        let code =
            unsafe { device.driver.api.mem_create(&mut handle, bytes as usize, &properties(device), 0) };
        if code == CUresult::CUDA_ERROR_OUT_OF_MEMORY {
            let (device, free) = (device.ordinal(), context.free_memory()?);
            return Err(CudaError::OutOfMemory { device, bytes, free, what: what.to_owned() });
        }
        check(symbol::mem_create, code, || {
            format!("making {bytes} bytes of {what} on GPU {}", device.ordinal())
        })?;
        Ok(Physical { context: context.clone(), handle, bytes })
    }
}

impl Drop for Physical {
    fn drop(&mut self) {
        // SAFETY: the handle is alive; mappings that are left keep the memory itself.
        let _ = unsafe { self.context.device.driver.api.mem_release(self.handle) };
    }
}

/// A range of addresses that nothing else has.
#[derive(Debug)]
pub(crate) struct Range {
    driver: Driver,
    base: u64,
    bytes: u64,
}

impl Range {
    pub(crate) fn new(driver: &Driver, bytes: u64, align: u64) -> Result<Range, CudaError> {
        let mut base = 0;
        // SAFETY: writes one address; the range is freed once, on drop.
        let code = unsafe { driver.api.mem_address_reserve(&mut base, bytes as usize, align as usize, 0, 0) };
        check(symbol::mem_address_reserve, code, || format!("reserving {bytes} bytes of addresses"))?;
        Ok(Range { driver: driver.clone(), base, bytes })
    }

    pub(crate) fn base(&self) -> u64 {
        self.base
    }
}

impl Drop for Range {
    fn drop(&mut self) {
        // SAFETY: the range is ours, and every mapping in it holds it.
        let _ = unsafe { self.driver.api.mem_address_free(self.base, self.bytes as usize) };
    }
}

/// A part of a range that stands for memory, which some devices can access.
#[derive(Debug)]
pub(crate) struct Mapping {
    address: u64,
    bytes: u64,
    range: Arc<Range>,
    /// Kept until it is mapped no more.
    memory: Option<Arc<Physical>>,
}

impl Mapping {
    /// Maps all of `memory` at `address`, for the devices.
    pub(crate) fn new(
        range: &Arc<Range>,
        address: u64,
        memory: &Arc<Physical>,
        devices: &[Device],
    ) -> Result<Mapping, CudaError> {
        Mapping::of_handle(range, address, memory.bytes, memory.handle, Some(memory.clone()), devices)
    }

    fn of_handle(
        range: &Arc<Range>,
        address: u64,
        bytes: u64,
        handle: CUmemGenericAllocationHandle,
        memory: Option<Arc<Physical>>,
        devices: &[Device],
    ) -> Result<Mapping, CudaError> {
        let api = &range.driver.api;
        let doing = || format!("mapping {bytes} bytes at address {address:#x}");
        // SAFETY: the addresses are in the range, nothing is mapped there, and the handle is alive.
        let code = unsafe { api.mem_map(address, bytes as usize, 0, handle, 0) };
        check(symbol::mem_map, code, doing)?;
        let mapping = Mapping { address, bytes, range: range.clone(), memory };
        let flags = CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        let access: Vec<_> =
            devices.iter().map(|device| CUmemAccessDesc { location: location(device), flags }).collect();
        // SAFETY: the addresses are mapped; `access` has as many entries as are said.
        let code = unsafe { api.mem_set_access(address, bytes as usize, access.as_ptr(), access.len()) };
        check(symbol::mem_set_access, code, doing)?;
        Ok(mapping)
    }

    pub(crate) fn memory(&self) -> Option<&Arc<Physical>> {
        self.memory.as_ref()
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: it is mapped, and nobody uses it any more.
        let _ = unsafe { self.range.driver.api.mem_unmap(self.address, self.bytes as usize) };
    }
}

/// One address for memory of several devices, which their switch serves. Torn down before the memory is.
#[derive(Debug)]
pub(crate) struct MulticastObject {
    mapping: Option<Mapping>,
    /// The memory of each member that is bound.
    bytes: u64,
    bound: Vec<(Device, Arc<Physical>)>,
    object: Object,
}

/// A multicast object.
#[derive(Debug)]
struct Object {
    driver: Driver,
    handle: CUmemGenericAllocationHandle,
}

impl Drop for Object {
    fn drop(&mut self) {
        // SAFETY: the handle is alive, nothing is bound to it and it is not mapped.
        let _ = unsafe { self.driver.api.mem_release(self.handle) };
    }
}

fn multicast_properties(devices: &[Device], bytes: u64) -> CUmulticastObjectProp {
    CUmulticastObjectProp {
        numDevices: devices.len() as u32,
        size: bytes as usize,
        handleTypes: u64::from(devices.first().map_or(0, |device| device.handles.0)),
        flags: 0,
    }
}

impl MulticastObject {
    /// The number of bytes that bound sizes are multiples of, for so many devices.
    pub(crate) fn granularity(driver: &Driver, devices: &[Device]) -> Result<u64, CudaError> {
        let prop = multicast_properties(devices, 1 << 21);
        let which = CUmulticastGranularity_flags::CU_MULTICAST_GRANULARITY_MINIMUM;
        let mut granularity = 0;
        // SAFETY: writes one integer; the properties are read.
        let code = unsafe { driver.api.multicast_granularity(&mut granularity, &prop, which) };
        let doing = || format!("asking for the granularity of multicast objects for {} GPUs", devices.len());
        check(symbol::multicast_granularity, code, doing)?;
        Ok(granularity as u64)
    }

    /// Binds the same bytes of each of `members`, memory of different devices: create, add every device, and only then
    /// bind (which would wait for devices that have not been added), map, give access.
    pub(crate) fn new(driver: &Driver, members: &[Arc<Physical>]) -> Result<MulticastObject, CudaError> {
        let api = &driver.api;
        let bytes = members.iter().map(|member| member.bytes).min().unwrap_or(0);
        let devices: Vec<Device> = members.iter().map(|member| member.context.device().clone()).collect();
        let doing = || format!("making a multicast object of {bytes} bytes for {} GPUs", devices.len());
        let mut prop = multicast_properties(&devices, bytes);
        let which = CUmulticastGranularity_flags::CU_MULTICAST_GRANULARITY_RECOMMENDED;
        let mut granularity = 0;
        // SAFETY: writes one integer; the properties are read.
        let code = unsafe { api.multicast_granularity(&mut granularity, &prop, which) };
        check(symbol::multicast_granularity, code, doing)?;
        prop.size = bytes.next_multiple_of(granularity.max(1) as u64) as usize;
        let mut handle = 0;
        // SAFETY: writes one handle, which is released once, on drop; the properties are read.
        let code = unsafe { api.multicast_create(&mut handle, &prop) };
        check(symbol::multicast_create, code, doing)?;
        let object = Object { driver: driver.clone(), handle };
        for device in &devices {
            // SAFETY: the object is alive, and the device has not been added.
            let code = unsafe { api.multicast_add_device(handle, device.raw) };
            check(symbol::multicast_add_device, code, doing)?;
        }
        let mut multicast = MulticastObject { mapping: None, bytes, bound: Vec::new(), object };
        for (device, member) in devices.iter().zip(members) {
            let size = bytes as usize;
            // SAFETY: all devices have been added; the member has as many bytes, and lives as long as it is bound.
            let code = unsafe { api.multicast_bind_mem(handle, 0, member.handle, 0, size, 0) };
            check(symbol::multicast_bind_mem, code, doing)?;
            multicast.bound.push((device.clone(), member.clone()));
        }
        let range = Arc::new(Range::new(driver, prop.size as u64, granularity as u64)?);
        let address = range.base();
        let mapping = Mapping::of_handle(&range, address, prop.size as u64, handle, None, &devices)?;
        multicast.mapping = Some(mapping);
        Ok(multicast)
    }

    /// The address that stands for all members' bytes; only `multimem` instructions may access it.
    pub(crate) fn address(&self) -> u64 {
        self.mapping.as_ref().map_or(0, |mapping| mapping.address)
    }

    /// Returns true if it binds this memory.
    pub(crate) fn binds(&self, memory: &Arc<Physical>) -> bool {
        self.bound.iter().any(|(_, bound)| Arc::ptr_eq(bound, memory))
    }
}

impl Drop for MulticastObject {
    fn drop(&mut self) {
        self.mapping = None;
        for (device, _member) in self.bound.drain(..) {
            let (api, bytes) = (&self.object.driver.api, self.bytes as usize);
            // SAFETY: the member is bound at offset 0 with as many bytes, and mapped no more.
            let _ = unsafe { api.multicast_unbind(self.object.handle, device.raw, 0, bytes) };
        }
    }
}

/// Memory of the host that kernels of every device reach.
#[derive(Debug)]
pub(crate) struct Pinned {
    context: Arc<Context>,
    host: NonNull<c_void>,
    device: u64,
    words: usize,
}

// SAFETY: the memory may be accessed by any thread; it is accessed by atomics only.
unsafe impl Send for Pinned {}
// SAFETY: as above.
unsafe impl Sync for Pinned {}

/// `CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP`
const PORTABLE_AND_MAPPED: u32 = 1 | 2;

impl Pinned {
    /// Zeros.
    pub(crate) fn new(context: &Arc<Context>, words: usize, what: &str) -> Result<Pinned, CudaError> {
        let api = &context.device.driver.api;
        let doing = || format!("making {what} in the host's memory");
        let _current = context.enter()?;
        let mut host = ptr::null_mut();
        // SAFETY: writes one pointer, which is freed once, on drop.
        let code = unsafe { api.host_alloc(&mut host, 4 * words, PORTABLE_AND_MAPPED) };
        check(symbol::host_alloc, code, doing)?;
        let Some(host) = NonNull::new(host) else {
            return Err(CudaError::Call { doing: doing(), call: symbol::host_alloc, code });
        };
        let mut pinned = Pinned { context: context.clone(), host, device: 0, words };
        // SAFETY: the memory is ours, has 4 bytes a word, and nobody else knows it yet.
        unsafe { host.cast::<u32>().write_bytes(0, words) };
        // SAFETY: writes one address; the memory was mapped for devices.
        let code = unsafe { api.host_device_pointer(&mut pinned.device, host.as_ptr(), 0) };
        check(symbol::host_device_pointer, code, doing)?;
        Ok(pinned)
    }

    /// The address on the devices.
    pub(crate) fn address(&self) -> u64 {
        self.device
    }

    /// The words that host and devices share.
    pub(crate) fn words(&self) -> &[AtomicU32] {
        // SAFETY: as many words were allocated and set; devices and host access them in units of words.
        unsafe { std::slice::from_raw_parts(self.host.cast::<AtomicU32>().as_ptr(), self.words) }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        let _current = self.context.enter();
        // SAFETY: the memory is ours, and no kernel that knows it runs any more.
        let _ = unsafe { self.context.device.driver.api.host_free(self.host.as_ptr()) };
    }
}
