//! Streams, events, and graphs that streams are captured into.

use super::Context;
use super::api::symbol;
use super::error::{CudaError, check};
use cudarc::driver::sys::{
    CUevent, CUgraph, CUgraphExec, CUresult, CUstream, CUstreamCaptureMode, CUstreamCaptureStatus,
};
use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

/// A stream: ours, or the caller's for the time of a call.
#[derive(Debug)]
pub struct Stream {
    context: Arc<Context>,
    pub(super) raw: CUstream,
    ours: bool,
}

// SAFETY: a stream may be used by any thread; the driver locks it.
unsafe impl Send for Stream {}

// SAFETY: a graph that is ready to be launched may be launched by any thread, one at a time.
unsafe impl Send for DriverGraph {}

/// `CU_STREAM_NON_BLOCKING`: it does not wait for the default stream.
const NON_BLOCKING: u32 = 1;

impl Stream {
    /// A stream of its own that waits for no other.
    ///
    /// # Errors
    /// [`CudaError::Call`] where the driver does not make it.
    pub fn new(context: &Arc<Context>) -> Result<Stream, CudaError> {
        let _current = context.enter()?;
        let mut raw = ptr::null_mut();
        // SAFETY: writes one handle, which is destroyed once, on drop.
        let code = unsafe { context.device.driver.api.stream_create(&mut raw, NON_BLOCKING) };
        check(symbol::stream_create, code, || {
            format!("making a stream on GPU {}", context.device.ordinal())
        })?;
        Ok(Stream { context: context.clone(), raw, ours: true })
    }

    /// A stream of the caller's, of this context.
    ///
    /// # Safety
    /// The stream lives as long as this.
    pub(crate) unsafe fn borrowed(context: &Arc<Context>, raw: CUstream) -> Stream {
        Stream { context: context.clone(), raw, ours: false }
    }

    /// The driver's handle.
    pub fn raw(&self) -> CUstream {
        self.raw
    }

    fn doing(&self, what: &str) -> String {
        format!("{what} on GPU {}", self.context.device.ordinal())
    }

    /// Returns true if it belongs to its context, and not to another device's.
    pub(crate) fn is_of_context(&self) -> Result<bool, CudaError> {
        // The default stream is that of the current context.
        let _current = self.context.enter()?;
        let mut context = ptr::null_mut();
        // SAFETY: writes one handle.
        let code = unsafe { self.context.device.driver.api.stream_context(self.raw, &mut context) };
        check(symbol::stream_context, code, || self.doing("asking for a stream's context"))?;
        Ok(context == self.context.raw)
    }

    /// Returns true if what is put on it goes into a graph instead of running.
    pub fn is_captured(&self) -> Result<bool, CudaError> {
        let _current = self.context.enter()?;
        let mut status = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
        // SAFETY: writes one value.
        let code = unsafe { self.context.device.driver.api.stream_capture_status(self.raw, &mut status) };
        check(symbol::stream_capture_status, code, || self.doing("asking whether a stream is captured"))?;
        Ok(status != CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE)
    }

    /// Fills device memory and waits until that is done.
    pub(crate) fn fill(&self, address: u64, bytes: u64, byte: u8) -> Result<(), CudaError> {
        let _current = self.context.enter()?;
        let api = &self.context.device.driver.api;
        // SAFETY: the memory is mapped for this device, and no kernel uses it.
        let code = unsafe { api.memset(address, byte, bytes as usize, self.raw) };
        check(symbol::memset, code, || self.doing("setting memory"))?;
        self.synchronize()
    }

    /// Copies to device memory and waits until that is done.
    pub(crate) fn write(&self, address: u64, bytes: &[u8]) -> Result<(), CudaError> {
        let _current = self.context.enter()?;
        let api = &self.context.device.driver.api;
        let from = bytes.as_ptr().cast::<c_void>();
        // SAFETY: the memory is mapped for this device and long enough; the bytes live until the copy is done.
        let code = unsafe { api.memcpy_to_device(address, from, bytes.len(), self.raw) };
        check(symbol::memcpy_to_device, code, || self.doing("copying to memory"))?;
        self.synchronize()
    }

    /// Copies from device memory and waits until that is done.
    pub(crate) fn read(&self, address: u64, bytes: u64) -> Result<Vec<u8>, CudaError> {
        let _current = self.context.enter()?;
        let api = &self.context.device.driver.api;
        let mut out = vec![0u8; bytes as usize];
        let to = out.as_mut_ptr().cast::<c_void>();
        // SAFETY: the memory is mapped for this device and long enough; there is room, until the copy is done.
        let code = unsafe { api.memcpy_to_host(to, address, out.len(), self.raw) };
        check(symbol::memcpy_to_host, code, || self.doing("copying from memory"))?;
        self.synchronize()?;
        Ok(out)
    }

    /// Queues a copy within what the device reaches.
    pub(crate) fn copy(&self, to: u64, from: u64, bytes: u64) -> Result<(), CudaError> {
        let _current = self.context.enter()?;
        let api = &self.context.device.driver.api;
        // SAFETY: both are mapped for this device and long enough.
        let code = unsafe { api.memcpy_on_device(to, from, bytes as usize, self.raw) };
        check(symbol::memcpy_on_device, code, || self.doing("copying memory"))
    }

    /// Waits until all that was put on it is done.
    pub fn synchronize(&self) -> Result<(), CudaError> {
        let _current = self.context.enter()?;
        // SAFETY: the stream is alive.
        let code = unsafe { self.context.device.driver.api.stream_synchronize(self.raw) };
        check(symbol::stream_synchronize, code, || self.doing("waiting for a stream"))
    }

    /// Returns true if all that was put on it is done.
    pub(crate) fn is_idle(&self) -> Result<bool, CudaError> {
        let _current = self.context.enter()?;
        // SAFETY: the stream is alive.
        match unsafe { self.context.device.driver.api.stream_query(self.raw) } {
            CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            code => check(symbol::stream_query, code, || self.doing("asking whether a stream is idle"))
                .map(|()| true),
        }
    }

    /// Makes all work that is put on it from now on wait for the event.
    pub(crate) fn wait(&self, event: &Event) -> Result<(), CudaError> {
        let _current = self.context.enter()?;
        // SAFETY: both are alive.
        let code = unsafe { self.context.device.driver.api.stream_wait_event(self.raw, event.raw, 0) };
        check(symbol::stream_wait_event, code, || self.doing("ordering streams"))
    }

    /// Begins to capture into a graph.
    pub fn begin_capture(&self) -> Result<(), CudaError> {
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        // SAFETY: the stream is alive.
        let code = unsafe { self.context.device.driver.api.stream_begin_capture(self.raw, mode) };
        check(symbol::stream_begin_capture, code, || self.doing("beginning to capture a stream"))
    }

    /// Returns the captured work, ready to be launched.
    pub fn end_capture(&self) -> Result<DriverGraph, CudaError> {
        // Others may still be captured while this is instantiated.
        let _current = self.context.enter()?;
        let api = &self.context.device.driver.api;
        let doing = || self.doing("capturing a stream");
        let mut graph: CUgraph = ptr::null_mut();
        // SAFETY: writes one handle, which is destroyed below.
        check(symbol::stream_end_capture, unsafe { api.stream_end_capture(self.raw, &mut graph) }, doing)?;
        let mut raw = ptr::null_mut();
        // SAFETY: the graph is alive; writes one handle, which is destroyed once, on drop.
        let code = unsafe { api.graph_instantiate(&mut raw, graph, 0) };
        // SAFETY: the graph is alive and not used after this; what was instantiated does not need it.
        let _ = unsafe { api.graph_destroy(graph) };
        check(symbol::graph_instantiate, code, doing)?;
        Ok(DriverGraph { context: self.context.clone(), raw })
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if self.ours {
            let _current = self.context.enter();
            // SAFETY: it is ours; what is still on it runs to its end.
            let _ = unsafe { self.context.device.driver.api.stream_destroy(self.raw) };
        }
    }
}

/// A captured stream that can be launched again and again.
#[derive(Debug)]
pub struct DriverGraph {
    context: Arc<Context>,
    raw: CUgraphExec,
}

impl DriverGraph {
    /// Launches it on a stream.
    ///
    /// # Errors
    /// [`CudaError::Call`] where the driver does not launch it.
    pub fn launch(&self, stream: &Stream) -> Result<(), CudaError> {
        let _current = self.context.enter()?;
        // SAFETY: both are alive.
        let code = unsafe { self.context.device.driver.api.graph_launch(self.raw, stream.raw) };
        check(symbol::graph_launch, code, || stream.doing("launching a graph"))
    }
}

impl Drop for DriverGraph {
    fn drop(&mut self) {
        let _current = self.context.enter();
        // SAFETY: it is ours; a launch that still runs goes on.
        let _ = unsafe { self.context.device.driver.api.graph_exec_destroy(self.raw) };
    }
}

/// A point in a stream.
#[derive(Debug)]
pub(crate) struct Event {
    context: Arc<Context>,
    raw: CUevent,
}

// SAFETY: an event may be used by any thread; the driver locks it.
unsafe impl Send for Event {}

impl Event {
    /// One that also keeps the time.
    pub(crate) fn new(context: &Arc<Context>) -> Result<Event, CudaError> {
        let _current = context.enter()?;
        let mut raw = ptr::null_mut();
        // SAFETY: writes one handle, which is destroyed once, on drop.
        let code = unsafe { context.device.driver.api.event_create(&mut raw, 0) };
        check(symbol::event_create, code, || format!("making an event on GPU {}", context.device.ordinal()))?;
        Ok(Event { context: context.clone(), raw })
    }

    /// From now on it stands for all that was put on the stream so far.
    pub(crate) fn record(&self, stream: &Stream) -> Result<(), CudaError> {
        let _current = self.context.enter()?;
        // SAFETY: both are alive and of one context.
        let code = unsafe { self.context.device.driver.api.event_record(self.raw, stream.raw) };
        check(symbol::event_record, code, || stream.doing("recording an event"))
    }

    /// Returns true if that work is done, or if the event stands for none.
    pub(crate) fn is_done(&self) -> Result<bool, CudaError> {
        let _current = self.context.enter()?;
        // SAFETY: the event is alive.
        match unsafe { self.context.device.driver.api.event_query(self.raw) } {
            CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            code => {
                let device = self.context.device.ordinal();
                check(symbol::event_query, code, || {
                    format!("asking whether calls on GPU {device} have ended")
                })?;
                Ok(true)
            }
        }
    }

    /// The device's time from an earlier event to this one, both done.
    pub(crate) fn since(&self, earlier: &Event) -> Result<Duration, CudaError> {
        let _current = self.context.enter()?;
        let mut milliseconds = 0.0;
        // SAFETY: writes one number; both are alive.
        let code =
            unsafe { self.context.device.driver.api.event_elapsed(&mut milliseconds, earlier.raw, self.raw) };
        check(symbol::event_elapsed, code, || "measuring the time between events".to_owned())?;
        Ok(Duration::from_secs_f64(f64::from(milliseconds.max(0.0)) / 1e3))
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        let _current = self.context.enter();
        // SAFETY: it is ours.
        let _ = unsafe { self.context.device.driver.api.event_destroy(self.raw) };
    }
}
