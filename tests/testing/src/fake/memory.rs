//! Memory of devices and of the host, address ranges, mappings, multicast objects, copies. Each method without a comment
//! is what the driver's function of its name in [`Api`](quadrille_runtime::internals::Api) does.

use super::{Done, FakeState, GONE, INVALID, Object};
use cudarc::driver::sys::{CUmulticastGranularity_flags, CUresult};
use quadrille_runtime::internals::symbol;
use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};

/// The least multiple of physical memory, in bytes.
pub(super) const GRANULARITY: u64 = 2 << 20;
/// The first address that is given out: that of the first virtual GPU's memory.
const FIRST: u64 = 1 << 40;
/// What memory holds that nobody has written.
const GARBAGE: u8 = 0xa5;
/// Mappings are kept by their address with this bit, as ranges begin at the same addresses.
const MAPPING: u64 = 1;

/// Memory of the host that devices reach. Whoever has its address accesses it by atomics of as many bytes.
pub(super) struct HostMemory {
    words: Vec<AtomicU32>,
}

impl HostMemory {
    /// In whole words.
    fn new(bytes: usize) -> HostMemory {
        let garbage = || AtomicU32::new(u32::from_ne_bytes([GARBAGE; 4]));
        HostMemory { words: std::iter::repeat_with(garbage).take(bytes.div_ceil(4)).collect() }
    }

    pub(super) fn bytes(&self) -> usize {
        4 * self.words.len()
    }

    pub(super) fn load(&self) -> Vec<u8> {
        self.words.iter().flat_map(|word| word.load(Ordering::Relaxed).to_ne_bytes()).collect()
    }

    pub(super) fn store(&self, bytes: &[u8]) {
        let (stored, _) = bytes.as_chunks();
        for (word, &stored) in self.words.iter().zip(stored) {
            word.store(u32::from_ne_bytes(stored), Ordering::Relaxed);
        }
    }
}

impl fmt::Debug for HostMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.bytes())
    }
}

impl FakeState {
    /// Bytes that are free in the current context's device, and all that it has.
    pub(super) fn mem_info(&self) -> Done<(u64, u64)> {
        let room = self.setting.room;
        Ok((room.saturating_sub(self.bytes_made(self.device()?)), room))
    }

    pub(super) fn mem_create(&mut self, device: usize, bytes: u64) -> Done<u64> {
        if !bytes.is_multiple_of(GRANULARITY) || bytes == 0 {
            return Err(INVALID);
        }
        if self.bytes_made(device) + bytes > self.setting.room {
            return Err(CUresult::CUDA_ERROR_OUT_OF_MEMORY);
        }
        Ok(self.handle(Object::Memory { device, bytes }))
    }

    pub(super) fn mem_release(&mut self, handle: u64) -> Done {
        let bound = self.objects.values().any(|object| match object {
            Object::Multicast { bound, .. } => bound.iter().any(|&(_, memory, _)| memory == handle),
            Object::Mapping { handle: mapped, .. } => *mapped == handle,
            _ => false,
        });
        if bound {
            self.wrong("memory is released while it is mapped or bound".to_owned());
        }
        let object =
            self.remove(handle, |o| matches!(o, Object::Memory { .. } | Object::Multicast { .. }))?;
        if let Object::Multicast { bound, .. } = object
            && !bound.is_empty()
        {
            self.wrong("a multicast object is released while it binds memory".to_owned());
        }
        Ok(())
    }

    pub(super) fn mem_address_reserve(&mut self, bytes: u64) -> Done<u64> {
        // Multicast ranges lie above all virtual GPUs' memory.
        let above = FIRST * (2 * self.setting.devices as u64 + 1);
        let mut at = if bytes < 1 << 30 { above } else { FIRST };
        for (&base, object) in &self.objects {
            if let Object::Range { bytes: taken } = object
                && at < base + taken
                && base < at + bytes
            {
                at = base + taken;
            }
        }
        self.objects.insert(at, Object::Range { bytes });
        Ok(at)
    }

    pub(super) fn mem_address_free(&mut self, address: u64, bytes: u64) -> Done {
        let mut there = self.objects.range(address..address + bytes);
        if there.any(|(_, o)| matches!(o, Object::Mapping { .. })) {
            self.wrong("addresses are freed while memory is mapped there".to_owned());
        }
        self.remove(address, |o| matches!(o, Object::Range { .. })).map(drop)
    }

    pub(super) fn mem_map(&mut self, address: u64, bytes: u64, handle: u64) -> Done {
        match self.objects.get(&handle) {
            Some(&Object::Memory { bytes: made, .. }) => {
                if made != bytes {
                    return Err(INVALID);
                }
                self.machine.alloc_at(address, bytes, "mapped memory").map_err(|_| INVALID)?;
            }
            Some(Object::Multicast { devices, added, bound, bytes: size }) => {
                if bound.len() != *devices || added.len() != *devices || *size != bytes {
                    return Err(INVALID);
                }
                let mapped_at = |&(_, memory, _): &(usize, u64, u64)| {
                    self.objects.iter().find_map(|(&at, o)| match o {
                        Object::Mapping { handle, .. } if *handle == memory => Some(at & !MAPPING),
                        _ => None,
                    })
                };
                let addresses: Option<Vec<u64>> = bound.iter().map(mapped_at).collect();
                let size = bound.iter().map(|b| b.2).min().unwrap_or(0);
                let addresses = addresses.ok_or(INVALID)?;
                self.machine
                    .multicast_at(address, &addresses, size, "multicast memory")
                    .map_err(|_| INVALID)?;
            }
            _ => return Err(GONE),
        }
        self.objects.insert(address | MAPPING, Object::Mapping { handle, bytes, access: Vec::new() });
        Ok(())
    }

    pub(super) fn mem_unmap(&mut self, address: u64, bytes: u64) -> Done {
        let mapping = self.remove(address | MAPPING, |o| matches!(o, Object::Mapping { .. }))?;
        if !matches!(mapping, Object::Mapping { bytes: mapped, .. } if mapped == bytes) {
            self.wrong("other bytes are unmapped than were mapped".to_owned());
        }
        if self.is_pending() {
            self.wrong("memory is unmapped while kernels run".to_owned());
        }
        if let Object::Mapping { handle, .. } = mapping
            && matches!(self.objects.get(&handle), Some(Object::Multicast { .. }))
        {
            self.machine.end_multicast(address);
            return Ok(());
        }
        self.machine.free(address).map_err(|_| INVALID)
    }

    pub(super) fn mem_set_access(&mut self, address: u64, bytes: u64, devices: Vec<usize>) -> Done {
        match self.objects.get_mut(&(address | MAPPING)) {
            Some(Object::Mapping { access, bytes: mapped, .. }) if *mapped == bytes => {
                *access = devices;
                Ok(())
            }
            _ => Err(INVALID),
        }
    }

    pub(super) fn multicast_granularity(&self, which: CUmulticastGranularity_flags) -> u64 {
        // The recommended one is a good deal larger.
        let times = match which {
            CUmulticastGranularity_flags::CU_MULTICAST_GRANULARITY_MINIMUM => 1,
            CUmulticastGranularity_flags::CU_MULTICAST_GRANULARITY_RECOMMENDED => 16,
        };
        times * self.setting.multicast_granularity
    }

    pub(super) fn multicast_create(&mut self, devices: usize, bytes: u64) -> Done<u64> {
        if !self.setting.multicast {
            return Err(CUresult::CUDA_ERROR_NOT_SUPPORTED);
        }
        if bytes == 0 || !bytes.is_multiple_of(self.setting.multicast_granularity) {
            return Err(INVALID);
        }
        Ok(self.handle(Object::Multicast { devices, bytes, added: Vec::new(), bound: Vec::new() }))
    }

    pub(super) fn multicast_add_device(&mut self, handle: u64, device: usize) -> Done {
        match self.objects.get_mut(&handle) {
            Some(Object::Multicast { added, devices, .. })
                if added.len() < *devices && !added.contains(&device) =>
            {
                added.push(device);
                Ok(())
            }
            Some(Object::Multicast { .. }) => Err(INVALID),
            _ => Err(GONE),
        }
    }

    pub(super) fn multicast_bind_mem(
        &mut self,
        handle: u64,
        at: u64,
        memory: u64,
        from: u64,
        bytes: u64,
    ) -> Done {
        let least = self.setting.multicast_granularity;
        let whole = [at, from, bytes].iter().all(|n| n.is_multiple_of(least)) && bytes > 0;
        let Some(&Object::Memory { device, bytes: made }) = self.objects.get(&memory) else {
            return Err(GONE);
        };
        let Some(Object::Multicast { devices, added, bound, bytes: size }) = self.objects.get_mut(&handle)
        else {
            return Err(GONE);
        };
        if !whole || from + bytes > made || at + bytes > *size || !added.contains(&device) {
            return Err(INVALID);
        }
        let early = added.len() < *devices;
        bound.push((device, memory, bytes));
        if early {
            self.wrong("memory is bound before every device has been added: that waits for ever".to_owned());
        }
        Ok(())
    }

    pub(super) fn multicast_unbind(&mut self, handle: u64, device: usize, bytes: u64) -> Done {
        let Some(Object::Multicast { bound, .. }) = self.objects.get_mut(&handle) else { return Err(GONE) };
        let before = bound.len();
        bound.retain(|&(on, _, size)| (on, size) != (device, bytes));
        if bound.len() == before {
            self.wrong("other bytes are unbound than were bound".to_owned());
            return Err(INVALID);
        }
        Ok(())
    }

    /// Gives the address that the host has.
    pub(super) fn host_alloc(&mut self, bytes: usize) -> Done<u64> {
        self.needs_context(symbol::host_alloc)?;
        self.is_unsafe(symbol::host_alloc)?;
        let memory = HostMemory::new(bytes);
        let device = self.machine.alloc_zeroed(0, memory.bytes() as u64, 64, "host memory");
        let device = device.map_err(|_| INVALID)?;
        let host = memory.words.as_ptr() as u64;
        self.objects.insert(host, Object::Host { memory, device });
        Ok(host)
    }

    pub(super) fn host_free(&mut self, host: u64) -> Done {
        self.needs_context(symbol::host_free)?;
        if self.is_pending() {
            self.wrong("host memory is freed while kernels run".to_owned());
        }
        if let Object::Host { device, .. } = self.remove(host, |o| matches!(o, Object::Host { .. }))? {
            self.machine.free(device).map_err(|_| INVALID)?;
        }
        Ok(())
    }

    pub(super) fn host_device_pointer(&self, host: u64) -> Done<u64> {
        match self.objects.get(&host) {
            Some(Object::Host { device, .. }) => Ok(*device),
            _ => Err(INVALID),
        }
    }

    pub(super) fn memcpy_on_device(&mut self, to: u64, from: u64, bytes: usize, stream: u64) -> Done {
        self.wait_for(stream)?;
        let lost = self.setting.lost.map(|(device, peer)| [Some(device as usize), Some(peer as usize)]);
        if lost == Some([self.owner(from), self.owner(to)]) {
            return Ok(());
        }
        let read = self.read(from, bytes)?;
        self.write(to, &read)
    }

    pub(super) fn memset(&mut self, to: u64, byte: u8, bytes: usize, stream: u64) -> Done {
        self.wait_for(stream)?;
        self.write(to, &vec![byte; bytes])
    }

    /// Reads memory of devices; what nobody has written is garbage.
    pub(super) fn read(&self, address: u64, bytes: usize) -> Done<Vec<u8>> {
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

    /// Writes memory of devices.
    pub(super) fn write(&mut self, address: u64, bytes: &[u8]) -> Done {
        self.machine.write(address, bytes).map_err(|_| INVALID)
    }

    /// Bytes of physical memory that a device has given.
    fn bytes_made(&self, on: usize) -> u64 {
        let of = |object: &Object| match object {
            Object::Memory { device, bytes } if *device == on => *bytes,
            _ => 0,
        };
        self.objects.values().map(of).sum()
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
}
