//! Mbarriers: barriers in the shared memory of a block, whose phases end when all arrivals that they expect have come
//! and all bytes that are expected have been copied.
//!
//! The objects are opaque: where one lies, memory holds a pattern, and the counts are kept beside it. A pattern that
//! is gone tells that somebody has written over an mbarrier.

use rustc_hash::FxHashMap;

use crate::isa::PENDING_BITS;
use crate::memory::MemoryBytes;

/// The largest count of arrivals or bytes.
const MAX_COUNT: i64 = (1 << 20) - 1;

/// A pattern that ordinary data does not have.
const PATTERN: u64 = 0x6d62_6172_7269_6572;

#[derive(Clone, Copy, Debug)]
pub(super) struct MbarrierState {
    pub(super) phase: u64,
    expected: i64,
    pending: i64,
    bytes: i64,
}

/// The mbarriers of a block, by their offset in shared memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mbarriers {
    pub(super) states: FxHashMap<u64, MbarrierState>,
}

/// The reason why an operation is refused, and the value that is wrong.
pub(crate) type Misuse = (&'static str, i64);

impl Mbarriers {
    /// The state of the mbarrier that memory still holds.
    pub(super) fn get(&mut self, shared: &MemoryBytes, at: u64) -> Result<&mut MbarrierState, Misuse> {
        let intact = shared.to_vec(at as usize, 8) == (PATTERN ^ at).to_le_bytes();
        match self.states.get_mut(&at) {
            None => Err(("no mbarrier has been initialized there", 0)),
            Some(_) if !intact => Err(("somebody has written over the mbarrier", 0)),
            Some(state) => Ok(state),
        }
    }

    pub(super) fn init(&mut self, shared: &MemoryBytes, at: u64, count: i64) -> Result<(), Misuse> {
        if !(1..=MAX_COUNT).contains(&count) {
            return Err(("the count must be from 1 to 2^20 - 1", count));
        }
        if self.get(shared, at).is_ok() {
            return Err(("an mbarrier is there already: it must be invalidated first", count));
        }
        shared.copy_from(at as usize, &(PATTERN ^ at).to_le_bytes());
        shared.mark_written(at as usize, 8);
        self.states.insert(at, MbarrierState { phase: 0, expected: count, pending: count, bytes: 0 });
        Ok(())
    }

    /// Expects more bytes, or fewer.
    pub(crate) fn expect(&mut self, shared: &MemoryBytes, at: u64, bytes: i64) -> Result<(), Misuse> {
        let state = self.get(shared, at)?;
        let sum = state.bytes + bytes;
        if sum.abs() > MAX_COUNT {
            return Err(("the expected bytes must stay within 2^20 - 1", sum));
        }
        state.bytes = sum;
        Ok(())
    }

    /// Counts bytes that have been copied; returns true if that ends the phase.
    pub(crate) fn complete(&mut self, shared: &MemoryBytes, at: u64, bytes: i64) -> Result<bool, Misuse> {
        self.expect(shared, at, -bytes)?;
        Ok(self.get(shared, at)?.advance())
    }

    /// Counts arrivals; returns the state before them, and true if the phase ends.
    pub(crate) fn arrive(
        &mut self,
        shared: &MemoryBytes,
        at: u64,
        count: i64,
        drop: bool,
    ) -> Result<(u64, bool), Misuse> {
        let state = self.get(shared, at)?;
        if count < 1 || count > state.pending {
            return Err(("more arrivals than the phase still expects, or none", count));
        }
        let before = state.phase << PENDING_BITS | state.pending as u64;
        state.pending -= count;
        state.expected -= if drop { count } else { 0 };
        Ok((before, state.advance()))
    }

    /// The number of the phase that an mbarrier is in; 0 where there is none.
    pub(crate) fn phase(&self, at: u64) -> u64 {
        self.states.get(&at).map_or(0, |state| state.phase)
    }

    /// Expects one more arrival in this phase.
    pub(crate) fn expect_arrival(&mut self, shared: &MemoryBytes, at: u64) -> Result<(), Misuse> {
        let state = self.get(shared, at)?;
        if state.pending == MAX_COUNT {
            return Err(("more pending arrivals than 2^20 - 1", state.pending + 1));
        }
        state.pending += 1;
        Ok(())
    }

    /// Checks that an mbarrier is there.
    pub(crate) fn check(&mut self, shared: &MemoryBytes, at: u64) -> Result<(), Misuse> {
        self.get(shared, at).map(|_| ())
    }
}

impl MbarrierState {
    /// Begins the next phase if this one is over.
    fn advance(&mut self) -> bool {
        let over = self.pending == 0 && self.bytes == 0;
        if over {
            self.phase += 1;
            self.pending = self.expected;
        }
        over
    }
}
