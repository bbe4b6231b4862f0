//! Contexts, streams and their capture, graphs, events. Each method without a comment is what the driver's function of
//! its name in [`Api`](quadrille_runtime::internals::Api) does.

use super::{Done, FakeState, GONE, INVALID, Object};
use cudarc::driver::sys::{CUresult, CUstreamCaptureMode};
use quadrille_runtime::internals::symbol;

/// After so many questions in a row what was launched runs, whether or not a device is missing.
const OFTEN: u32 = 1000;

impl FakeState {
    pub(super) fn ctx_retain(&mut self, on: usize) -> Done<u64> {
        let known = self.objects.iter_mut().find_map(|(&handle, object)| match object {
            Object::Context { device, retained } if *device == on => {
                *retained += 1;
                Some(handle)
            }
            _ => None,
        });
        Ok(known.unwrap_or_else(|| self.handle(Object::Context { device: on, retained: 1 })))
    }

    pub(super) fn ctx_release(&mut self, on: usize) -> Done {
        let found = self.objects.iter_mut().find_map(|(&handle, object)| match object {
            Object::Context { device, retained } if *device == on => {
                *retained -= 1;
                Some((handle, *retained))
            }
            _ => None,
        });
        let Some((handle, retained)) = found else { return Err(GONE) };
        if retained == 0 {
            self.objects.remove(&handle);
            let left = self.objects.values().any(|object| match object {
                Object::Stream { device, .. }
                | Object::Event { device, .. }
                | Object::Module { device, .. }
                | Object::Memory { device, .. } => *device == on,
                _ => false,
            });
            if left {
                self.wrong(format!("the context of device {on} is released before what was made in it"));
            }
        }
        Ok(())
    }

    pub(super) fn stream_create(&mut self) -> Done<u64> {
        let device = self.device()?;
        Ok(self.handle(Object::Stream { device, captured: None }))
    }

    pub(super) fn stream_destroy(&mut self, stream: u64) -> Done {
        self.needs_context(symbol::stream_destroy)?;
        self.remove(stream, |o| matches!(o, Object::Stream { .. })).map(drop)
    }

    pub(super) fn stream_synchronize(&mut self, stream: u64) -> Done {
        self.is_unsafe(symbol::stream_synchronize)?;
        self.wait_for(stream)
    }

    pub(super) fn stream_query(&mut self, stream: u64) -> Done {
        self.device_of(stream)?;
        self.is_unsafe(symbol::stream_query)?;
        self.run()?;
        if self.hung.contains(&stream) { Err(CUresult::CUDA_ERROR_NOT_READY) } else { Ok(()) }
    }

    pub(super) fn stream_context(&self, stream: u64) -> Done<u64> {
        let on = self.device_of(stream)?;
        let context = self.objects.iter().find_map(|(&handle, object)| match object {
            Object::Context { device, .. } if *device == on => Some(handle),
            _ => None,
        });
        Ok(context.unwrap_or(0))
    }

    /// Waits for what a stream was given, as all that is not a launch does here.
    pub(super) fn wait_for(&mut self, stream: u64) -> Done {
        match self.objects.get(&stream) {
            _ if self.hung.contains(&stream) => {
                self.wrong("a kernel is waited for that never ends".to_owned());
                Err(CUresult::CUDA_ERROR_LAUNCH_TIMEOUT)
            }
            None if stream == 0 => self.run(),
            Some(Object::Stream { captured: None, .. }) => self.run(),
            Some(Object::Stream { .. }) => Err(CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED),
            _ => Err(GONE),
        }
    }

    /// A stream's device; the default stream is the current context's.
    pub(super) fn device_of(&self, stream: u64) -> Done<usize> {
        match self.objects.get(&stream) {
            None if stream == 0 => self.device(),
            Some(&Object::Stream { device, .. }) => Ok(device),
            _ => Err(GONE),
        }
    }

    /// Whether launches into a stream are kept for a graph.
    pub(super) fn is_captured(&self, stream: u64) -> Done<bool> {
        self.device_of(stream)?;
        Ok(matches!(self.objects.get(&stream), Some(Object::Stream { captured: Some(_), .. })))
    }

    pub(super) fn stream_begin_capture(&mut self, stream: u64) -> Done {
        match self.objects.get_mut(&stream) {
            Some(Object::Stream { captured, .. }) if captured.is_none() => {
                *captured = Some(Vec::new());
                Ok(())
            }
            _ => Err(INVALID),
        }
    }

    /// Gives the mode that was before.
    pub(super) fn capture_mode(&mut self, mode: CUstreamCaptureMode) -> CUstreamCaptureMode {
        use CUstreamCaptureMode as M;
        match std::mem::replace(&mut self.relaxed, mode == M::CU_STREAM_CAPTURE_MODE_RELAXED) {
            true => M::CU_STREAM_CAPTURE_MODE_RELAXED,
            false => M::CU_STREAM_CAPTURE_MODE_GLOBAL,
        }
    }

    pub(super) fn stream_end_capture(&mut self, stream: u64) -> Done<u64> {
        let Some(Object::Stream { captured, .. }) = self.objects.get_mut(&stream) else { return Err(GONE) };
        let Some(launches) = captured.take() else { return Err(INVALID) };
        Ok(self.handle(Object::Graph { launches }))
    }

    pub(super) fn graph_instantiate(&mut self, graph: u64) -> Done<u64> {
        let Some(Object::Graph { launches }) = self.objects.get(&graph) else { return Err(GONE) };
        let launches = launches.clone();
        self.is_unsafe(symbol::graph_instantiate)?;
        Ok(self.handle(Object::GraphExec { launches }))
    }

    pub(super) fn graph_launch(&mut self, exec: u64, stream: u64) -> Done {
        let Some(Object::GraphExec { launches }) = self.objects.get(&exec) else { return Err(GONE) };
        launches.clone().into_iter().try_for_each(|launch| self.begin(launch, stream))
    }

    pub(super) fn graph_destroy(&mut self, graph: u64) -> Done {
        self.remove(graph, |o| matches!(o, Object::Graph { .. })).map(drop)
    }

    pub(super) fn graph_exec_destroy(&mut self, exec: u64) -> Done {
        self.needs_context(symbol::graph_exec_destroy)?;
        self.remove(exec, |o| matches!(o, Object::GraphExec { .. })).map(drop)
    }

    pub(super) fn event_create(&mut self) -> Done<u64> {
        let device = self.device()?;
        Ok(self.handle(Object::Event { device, behind: None }))
    }

    pub(super) fn event_destroy(&mut self, event: u64) -> Done {
        self.needs_context(symbol::event_destroy)?;
        self.remove(event, |o| matches!(o, Object::Event { .. })).map(drop)
    }

    pub(super) fn event_record(&mut self, event: u64, stream: u64) -> Done {
        let (on, _) = self.event(event)?;
        if self.device_of(stream)? != on {
            return Err(GONE);
        }
        if self.is_captured(stream)? {
            self.wrong("an event is recorded on a stream that is captured".to_owned());
        }
        let launched = self.launched[on];
        if let Some(Object::Event { behind, .. }) = self.objects.get_mut(&event) {
            *behind = Some(launched);
        }
        Ok(())
    }

    pub(super) fn event_query(&mut self, event: u64) -> Done {
        let (on, behind) = self.event(event)?;
        self.is_unsafe(symbol::event_query)?;
        if behind.is_none_or(|launches| launches <= self.ended[on]) {
            return Ok(());
        }
        self.asked += 1;
        let ready = self.pending.iter().all(|&launches| launches == self.pending[0]);
        if self.is_pending() && !ready && self.asked < OFTEN {
            return Err(CUresult::CUDA_ERROR_NOT_READY);
        }
        self.run()?;
        if behind.is_some_and(|launches| launches > self.ended[on]) {
            return Err(CUresult::CUDA_ERROR_NOT_READY);
        }
        Ok(())
    }

    /// The same for all events that have come to pass, in milliseconds: virtual GPUs have no clock.
    pub(super) fn event_elapsed(&mut self, start: u64, end: u64) -> Done<f32> {
        self.needs_context(symbol::event_elapsed)?;
        let ((on, begun), (with, ended)) = (self.event(start)?, self.event(end)?);
        let (Some(_), Some(behind), true) = (begun, ended, on == with) else { return Err(GONE) };
        if behind > self.ended[on] {
            return Err(CUresult::CUDA_ERROR_NOT_READY);
        }
        Ok(1.5)
    }

    /// An event's device, and the launches that it stands behind.
    fn event(&self, event: u64) -> Done<(usize, Option<u64>)> {
        match self.objects.get(&event) {
            Some(&Object::Event { device, behind }) => Ok((device, behind)),
            _ => Err(GONE),
        }
    }
}
