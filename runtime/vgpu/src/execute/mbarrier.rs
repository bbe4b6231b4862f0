//! Instructions on mbarriers.

use crate::execute::access::LaneFailure;
use crate::execute::address::{access_fault, addresses, shared_offset};
use crate::execute::context::{StepContext, WarpPosition};
use crate::execute::mbarrier_state::Misuse;
use crate::execute::repetition::{RepetitionWatcher, WatchedRead};
use crate::fault::{AccessKind, Fault, Space};
use crate::isa::{Mbarrier, MbarrierKind, PENDING_BITS};
use crate::memory::Reason;
use crate::observe::WarpEvent;
use crate::registers::{Bank, NO_REG, Regs, lanes};

pub(crate) fn misuse(
    cx: &StepContext<'_>,
    at: WarpPosition<'_>,
    lane: usize,
    address: u64,
    m: Misuse,
) -> Fault {
    Fault::Mbarrier { place: Box::new(cx.place(at, lane)), address, reason: m.0, value: m.1 }
}

/// Executes the instruction lane by lane.
pub(crate) fn execute(
    cx: &mut StepContext<'_>,
    at: WarpPosition<'_>,
    number: u32,
    m: &Mbarrier,
    mask: u32,
    regs: &mut Regs,
    watcher: &mut RepetitionWatcher,
) -> Result<(), Fault> {
    let to = addresses(regs, m.address);
    for lane in lanes(mask) {
        let kind =
            if matches!(m.kind, MbarrierKind::Wait { .. }) { AccessKind::Load } else { AccessKind::Atomic };
        let bad = |cx: &StepContext<'_>, reason: Reason| {
            access_fault(cx, at, (m.space, to[lane], 8), kind, LaneFailure { lane, reason })
        };
        let found = shared_offset(&cx.block.shared, m.space, to[lane], 8, 8);
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
                        event = Some(WarpEvent::MbarrierArrive {
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
                    let found = WarpEvent::MbarrierOver { lane: lane as u32, address: offset, phase };
                    event = over.then_some(found);
                    wide = Some(u64::from(over));
                    Ok(())
                })
            }
        };
        result.map_err(|m| misuse(cx, at, lane, offset, m))?;
        if matches!(m.kind, MbarrierKind::Wait { .. }) {
            regs.put_pred(m.d, 1 << lane, if wide == Some(1) { u32::MAX } else { 0 });
            if cx.suspect {
                let (lane, space) = (lane as u32, Space::Shared);
                watcher.note(WatchedRead {
                    function: number,
                    pc: at.pc,
                    lane,
                    space,
                    address: offset,
                    bytes: 8,
                });
            }
        } else {
            cx.tally.epoch += 1;
            if let Some(state) = wide.filter(|_| m.d != NO_REG) {
                regs.write(Bank::B64, m.d, lane, state);
            }
        }
        if let Some(event) = event {
            cx.event(at, event)?;
        }
    }
    Ok(())
}
