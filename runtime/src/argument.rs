//! The arguments of a call: views of windows, or memory that only its own rank reaches.

use crate::communicator::Window;
use cudarc::driver::sys::CUdeviceptr;
use cudarc::driver::{CudaSlice, CudaStream, DevicePtr, DevicePtrMut, SyncOnDrop};
use std::fmt;
use std::marker::PhantomData;

/// A buffer of a call.
#[derive(Clone, Copy, Debug)]
pub enum Argument<'a> {
    /// A view of a symmetric window.
    Window(&'a Window),
    /// Memory that peers do not map.
    Plain(&'a Plain<'a>),
}

impl<'a> From<&'a Window> for Argument<'a> {
    fn from(window: &'a Window) -> Argument<'a> {
        Argument::Window(window)
    }
}

impl<'a> From<&'a Plain<'a>> for Argument<'a> {
    fn from(plain: &'a Plain<'a>) -> Argument<'a> {
        Argument::Plain(plain)
    }
}

/// Memory of one rank that peers do not map, as `cudaMalloc`, a stream-ordered pool or cudarc's slices give it. Kernels whose
/// schedule goes through slots (`transport = staged`, LL, LL128) take it; others refuse it.
pub struct Plain<'a> {
    address: u64,
    bytes: u64,
    /// The driver's number of the GPU whose memory it is, where that is known.
    device: Option<u32>,
    /// Tells cudarc that the stream uses the slice.
    _use: Option<SyncOnDrop<'a>>,
    _borrowed: PhantomData<&'a ()>,
}

impl<'a> Plain<'a> {
    /// A slice that calls on the stream read.
    pub fn input<T>(slice: &'a CudaSlice<T>, stream: &'a CudaStream) -> Plain<'a> {
        let about = about(slice);
        Plain::borrowed(slice.device_ptr(stream), about)
    }

    /// A slice that calls on the stream write, and may read.
    pub fn output<T>(slice: &'a mut CudaSlice<T>, stream: &'a CudaStream) -> Plain<'a> {
        let about = about(slice);
        Plain::borrowed(slice.device_ptr_mut(stream), about)
    }

    fn borrowed((address, used): (CUdeviceptr, SyncOnDrop<'a>), (bytes, device): (u64, u32)) -> Plain<'a> {
        Plain { address, bytes, device: Some(device), _use: Some(used), _borrowed: PhantomData }
    }

    /// Memory by its address on the rank's device.
    ///
    /// # Safety
    /// The bytes are the device's, and live and are nobody else's until the calls that use them have ended.
    pub unsafe fn raw(address: u64, bytes: u64) -> Plain<'a> {
        Plain { address, bytes, device: None, _use: None, _borrowed: PhantomData }
    }

    /// Its bytes.
    pub fn len(&self) -> u64 {
        self.bytes
    }

    /// Returns true if it has none.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    pub(crate) fn address(&self) -> u64 {
        self.address
    }

    pub(crate) fn device(&self) -> Option<u32> {
        self.device
    }

    pub(crate) fn on(self, device: u32) -> Plain<'a> {
        Plain { device: Some(device), ..self }
    }
}

/// A slice's bytes and device.
fn about<T>(slice: &CudaSlice<T>) -> (u64, u32) {
    ((slice.len() * size_of::<T>()) as u64, slice.ordinal() as u32)
}

impl fmt::Debug for Plain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plain").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}
