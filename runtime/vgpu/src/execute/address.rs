//! Addresses of memory instructions, and the faults of accesses.

use crate::execute::access::LaneFailure;
use crate::execute::context::{StepContext, WarpPosition};
use crate::fault::{AccessKind, BadAccess, Fault, Space};
use crate::isa::{Address, LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW, WINDOW_SHIFT};
use crate::memory::{MemoryBytes, Reason};
use crate::registers::{LANES, Lanes, Regs};

/// The addresses of all lanes.
#[inline(always)]
pub(crate) fn addresses(regs: &Regs, address: Address) -> Lanes<u64> {
    let offset = i64::from(address.offset) as u64;
    let mut out = [0; LANES];
    if address.wide {
        let base = regs.get::<u64>(address.base);
        for i in 0..LANES {
            out[i] = base[i].wrapping_add(offset);
        }
    } else {
        let base = regs.get::<u32>(address.base);
        for i in 0..LANES {
            out[i] = u64::from(base[i]).wrapping_add(offset);
        }
    }
    out
}

/// The fault of an access of some bytes at an address of a space.
#[cold]
pub(crate) fn access_fault(
    cx: &StepContext<'_>,
    at: WarpPosition<'_>,
    (space, address, bytes): (Space, u64, u64),
    kind: AccessKind,
    failure: LaneFailure,
) -> Fault {
    let space = if matches!(space, Space::Generic | Space::Const) { Space::Global } else { space };
    let near = if space == Space::Global { cx.memory.near(address) } else { None };
    let place = Some(cx.place(at, failure.lane));
    failure.reason.fault(BadAccess { place, kind, space, address, bytes, near })
}

/// The offset in the block's shared memory of an address that must lie there.
pub(crate) fn shared_offset(
    shared: &MemoryBytes,
    space: Space,
    address: u64,
    bytes: u64,
    align: u64,
) -> Result<u64, Reason> {
    let at = match space {
        Space::Generic if address >> WINDOW_SHIFT != 1 => return Err(Reason::OutOfBounds),
        Space::Generic => address - SHARED_WINDOW,
        _ => address,
    };
    if at.checked_add(bytes).is_none_or(|end| end > shared.len() as u64) {
        Err(Reason::OutOfBounds)
    } else if at % align.max(1) != 0 {
        Err(Reason::Misaligned)
    } else {
        Ok(at)
    }
}

/// The space that an address of `space` lies in, and the window to subtract from it.
#[inline(always)]
pub(crate) fn resolve_space(space: Space, address: u64) -> (Space, u64) {
    if space != Space::Generic {
        return (space, 0);
    }
    match address >> WINDOW_SHIFT {
        1 => (Space::Shared, SHARED_WINDOW),
        2 => (Space::Local, LOCAL_WINDOW),
        3 => (Space::Param, PARAM_WINDOW),
        _ => (Space::Generic, 0),
    }
}
