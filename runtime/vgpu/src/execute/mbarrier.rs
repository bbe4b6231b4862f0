//! Mbarriers: barriers in the shared memory of a block, whose phases end when all arrivals that they expect have come
//! and all bytes that are expected have been copied.
//!
//! The objects are opaque: where one lies, memory holds a pattern, and the counts are kept beside it. A pattern that
//! is gone tells that somebody has written over an mbarrier.

use rustc_hash::FxHashMap;

use crate::error::{AccessKind, Fault, Space};
use crate::execute::access::{Failure, lanes};
use crate::execute::load_store::{access_fault, addresses, shared_offset};
use crate::execute::observe::Event;
use crate::execute::step::Context;
use crate::front::isa::{Function, Mbarrier, MbarrierKind};
use crate::machine::hang::{Read, Watcher};
use crate::memory::{Bytes, Reason};
use crate::registers::{Bank, NO_REG, Regs};

/// Low bits of a state: arrivals that were pending; the phase's number stands above.
pub(crate) const PENDING_BITS: u32 = 24;

/// The largest count of arrivals or bytes.
const MAX_COUNT: i64 = (1 << 20) - 1;

/// A pattern that ordinary data does not have.
const PATTERN: u64 = 0x6d62_6172_7269_6572;

#[derive(Clone, Copy, Debug)]
struct State {
    phase: u64,
    expected: i64,
    pending: i64,
    bytes: i64,
}

/// The mbarriers of a block, by their offset in shared memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mbarriers {
    states: FxHashMap<u64, State>,
}

/// Why an operation is refused.
type Misuse = (&'static str, i64);

impl Mbarriers {
    /// The state of the mbarrier that memory still holds.
    fn get(&mut self, shared: &Bytes, at: u64) -> Result<&mut State, Misuse> {
        let intact = shared.to_vec(at as usize, 8) == (PATTERN ^ at).to_le_bytes();
        match self.states.get_mut(&at) {
            None => Err(("no mbarrier has been initialized there", 0)),
            Some(_) if !intact => Err(("somebody has written over the mbarrier", 0)),
            Some(state) => Ok(state),
        }
    }

    fn init(&mut self, shared: &Bytes, at: u64, count: i64) -> Result<(), Misuse> {
        if !(1..=MAX_COUNT).contains(&count) {
            return Err(("the count must be from 1 to 2^20 - 1", count));
        }
        if self.get(shared, at).is_ok() {
            return Err(("an mbarrier is there already: it must be invalidated first", count));
        }
        shared.copy_from(at as usize, &(PATTERN ^ at).to_le_bytes());
        shared.mark_written(at as usize, 8);
        self.states.insert(at, State { phase: 0, expected: count, pending: count, bytes: 0 });
        Ok(())
    }

    /// Expects more bytes, or fewer.
    pub(crate) fn expect(&mut self, shared: &Bytes, at: u64, bytes: i64) -> Result<(), Misuse> {
        let state = self.get(shared, at)?;
        let sum = state.bytes + bytes;
        if sum.abs() > MAX_COUNT {
            return Err(("the expected bytes must stay within 2^20 - 1", sum));
        }
        state.bytes = sum;
        Ok(())
    }

    /// Bytes have been copied; says whether that ends the phase.
    pub(crate) fn complete(&mut self, shared: &Bytes, at: u64, bytes: i64) -> Result<bool, Misuse> {
        self.expect(shared, at, -bytes)?;
        Ok(self.get(shared, at)?.advance())
    }

    /// Arrivals; gives the state of before and whether the phase ends.
    pub(crate) fn arrive(
        &mut self,
        shared: &Bytes,
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

    /// One more arrival is expected in this phase.
    pub(crate) fn expect_arrival(&mut self, shared: &Bytes, at: u64) -> Result<(), Misuse> {
        let state = self.get(shared, at)?;
        if state.pending == MAX_COUNT {
            return Err(("more pending arrivals than 2^20 - 1", state.pending + 1));
        }
        state.pending += 1;
        Ok(())
    }

    /// Whether there is one to be told of copies.
    pub(crate) fn check(&mut self, shared: &Bytes, at: u64) -> Result<(), Misuse> {
        self.get(shared, at).map(|_| ())
    }
}

impl State {
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

pub(crate) fn misuse(
    cx: &Context<'_>,
    site: (&Function, u32, u32),
    lane: usize,
    at: u64,
    m: Misuse,
) -> Fault {
    let (function, pc, index) = site;
    Fault::Mbarrier {
        place: Box::new(cx.place(function, pc, index, lane)),
        address: at,
        reason: m.0,
        value: m.1,
    }
}

/// Executes the instruction lane by lane. `site` is the function, the program counter and the warp.
pub(crate) fn execute(
    cx: &mut Context<'_>,
    site: (&Function, u32, u32),
    number: u32,
    m: &Mbarrier,
    mask: u32,
    regs: &mut Regs,
    watcher: &mut Watcher,
) -> Result<(), Fault> {
    let (function, pc, index) = site;
    let at = addresses(regs, m.address);
    for lane in lanes(mask) {
        let kind =
            if matches!(m.kind, MbarrierKind::Wait { .. }) { AccessKind::Load } else { AccessKind::Atomic };
        let bad = |cx: &Context<'_>, reason: Reason| {
            access_fault(cx, site, (m.space, at[lane], 8), kind, Failure { lane, reason })
        };
        let found = shared_offset(&cx.block.shared, m.space, at[lane], 8, 8);
        let offset = found.map_err(|reason| bad(cx, reason))?;
        let a = |bank: Bank| if m.a == NO_REG { 1 } else { regs.read(bank, m.a, lane) };
        let block = &mut *cx.block;
        let (shared, mbarriers) = (&block.shared, &mut block.mbarriers);
        let phase = mbarriers.phase(offset);
        let mut event = None;
        let mut wide = None;
        let result = match m.kind {
            MbarrierKind::Init => mbarriers.init(shared, offset, a(Bank::B32) as i64),
            MbarrierKind::Inval => mbarriers.get(shared, offset).map(|_| ()).map(|()| {
                mbarriers.states.remove(&offset);
            }),
            MbarrierKind::ExpectTx => mbarriers.expect(shared, offset, a(Bank::B32) as i64),
            MbarrierKind::CompleteTx => mbarriers.complete(shared, offset, a(Bank::B32) as i64).map(drop),
            MbarrierKind::Arrive { drop, expect, no_complete } => {
                let operand = a(Bank::B32) as i64;
                let first = if expect { mbarriers.expect(shared, offset, operand) } else { Ok(()) };
                let count = if expect { 1 } else { operand };
                first.and_then(|()| mbarriers.arrive(shared, offset, count, drop)).and_then(
                    |(state, completes)| {
                        event = Some(Event::MbarrierArrive {
                            lane: lane as u32,
                            address: offset,
                            phase,
                            copies: false,
                        });
                        wide = Some(state);
                        if no_complete && completes {
                            Err(("an arrival that must not complete the phase completes it", count))
                        } else {
                            Ok(())
                        }
                    },
                )
            }
            MbarrierKind::Wait { parity } => {
                let token = a(if parity { Bank::B32 } else { Bank::B64 });
                mbarriers.get(shared, offset).and_then(|state| {
                    let over = if parity {
                        state.phase & 1 != token & 1
                    } else {
                        let phase = token >> PENDING_BITS;
                        if phase != state.phase && phase + 1 != state.phase {
                            return Err(("the state is older than the phase before this one", phase as i64));
                        }
                        phase < state.phase
                    };
                    let phase = if parity { state.phase } else { (token >> PENDING_BITS) + 1 };
                    let found = Event::MbarrierOver { lane: lane as u32, address: offset, phase };
                    event = over.then_some(found);
                    wide = Some(u64::from(over));
                    Ok(())
                })
            }
        };
        result.map_err(|m| misuse(cx, site, lane, offset, m))?;
        if matches!(m.kind, MbarrierKind::Wait { .. }) {
            regs.put_pred(m.d, 1 << lane, if wide == Some(1) { u32::MAX } else { 0 });
            if cx.suspect {
                let (lane, space) = (lane as u32, Space::Shared);
                watcher.note(Read { function: number, pc, lane, space, address: offset, bytes: 8 });
            }
        } else {
            cx.tally.epoch += 1;
            if let Some(state) = wide.filter(|_| m.d != NO_REG) {
                regs.write(Bank::B64, m.d, lane, state);
            }
        }
        if let Some(event) = event {
            cx.event(function, pc, index, event)?;
        }
    }
    Ok(())
}
