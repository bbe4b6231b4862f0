//! Calls in flight: those of each rank and group, told by two events.

use crate::driver::{Context, CudaError, Event, Stream};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;
use std::time::Duration;

/// The calls of a rank in a group.
#[derive(Debug)]
pub(super) struct Flight {
    /// Before the first call since all had ended.
    start: Event,
    /// Behind the last call.
    end: Event,
    /// True if that may still be to come.
    running: bool,
    /// True if the last call is on the rank's own stream.
    own: bool,
    /// Blocks of the largest call since all had ended.
    pub(super) blocks: u64,
}

/// The flight of a group's rank.
pub(super) fn flight<'a>(
    flights: &'a mut BTreeMap<(u64, u32), Flight>,
    key: (u64, u32),
    context: &Arc<Context>,
) -> Result<&'a mut Flight, CudaError> {
    Ok(match flights.entry(key) {
        Entry::Occupied(known) => known.into_mut(),
        Entry::Vacant(new) => {
            let (start, end) = (Event::new(context)?, Event::new(context)?);
            new.insert(Flight { start, end, running: false, own: false, blocks: 0 })
        }
    })
}

impl Flight {
    /// Returns true if a call may run. The device may know more than has been asked of it.
    pub(super) fn is_running(&self) -> Result<bool, CudaError> {
        Ok(self.running && !self.end.is_done()?)
    }

    /// Before a call is put on the stream: one of a communicator at a time.
    pub(super) fn begin(&mut self, stream: &Stream, own: bool) -> Result<(), CudaError> {
        self.running = self.is_running()?;
        if !self.running {
            self.blocks = 0;
            self.start.record(stream)
        } else if self.own && own {
            Ok(())
        } else {
            // Another stream, or one that has the number of one that is there no more.
            stream.wait(&self.end)
        }
    }

    /// Behind a call that was put on the stream.
    pub(super) fn end(&mut self, stream: &Stream, own: bool) -> Result<(), CudaError> {
        self.running = true;
        self.own = own;
        self.end.record(stream)
    }

    /// Notes that its calls have ended, as they have; how long they took, unless that is known.
    pub(super) fn settle(&mut self) -> Result<Option<Duration>, CudaError> {
        if !self.running {
            return Ok(None);
        }
        let took = self.end.since(&self.start)?;
        self.running = false;
        Ok(Some(took))
    }
}
