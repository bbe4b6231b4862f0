//! Asynchronous copies of a block. A copy reads its source and writes its destination at later turns of the block's
//! warps, which the seed picks; a thread that waits for it makes it happen at once. So code that does not wait works
//! on old or on new data, now this, now that. In a run with a clock, a copy happens at once, and the clock holds who waits
//! for it until it would be there.

use crate::execute::access::LaneFailure;
use crate::execute::address::{access_fault, addresses, shared_offset};
use crate::execute::block::ResidentBlock;
use crate::execute::context::{StepContext, WarpPosition, pred};
use crate::execute::copy_queue::{CopyItem, CopyRange, CopyWork};
use crate::execute::counts::Tally;
use crate::execute::mbarrier::misuse;
use crate::execute::mbarrier_state::Misuse;
use crate::fault::{AccessKind, BadAccess, Fault, Space};
use crate::isa::{Address, Async, AsyncCopy};
use crate::memory::{MachineMemory, MemoryBytes, Reason};
use crate::observe::WarpEvent;
use crate::random::Random;
use crate::registers::{LANES, NO_REG, Reg, Regs, lanes};

/// Of this many turns a copy moves on in one.
const SLOWNESS: u64 = 4;

fn bad(
    memory: &MachineMemory,
    item: &CopyItem,
    kind: AccessKind,
    range: CopyRange,
    bytes: u64,
    reason: Reason,
) -> Fault {
    let near = if range.space == Space::Global { memory.near(range.at) } else { None };
    let place = Some(item.place.clone());
    reason.fault(BadAccess { place, kind, space: range.space, address: range.at, bytes, near })
}

/// Lets copies of the block move on by chance.
pub(crate) fn progress(
    block: &mut ResidentBlock,
    memory: &MachineMemory,
    tally: &mut Tally,
    random: &mut Random,
) -> Result<(), Fault> {
    let mut at = 0;
    while at < block.copies.items.len() {
        if random.below(SLOWNESS) == 0 && step(block, memory, tally, at)? {
            block.copies.items.remove(at);
        } else {
            at += 1;
        }
    }
    Ok(())
}

/// The block has ended: what it copies to global memory arrives there, and nothing else may be left.
pub(crate) fn finish(
    block: &mut ResidentBlock,
    memory: &MachineMemory,
    tally: &mut Tally,
) -> Result<(), Fault> {
    let unread = |item: &&CopyItem| item.bulk && matches!(item.work, CopyWork::Copy { data: None, .. });
    if let Some(item) = block.copies.items.iter().find(unread) {
        let reason = "its block has ended before it has read all bytes, as nobody waited for it";
        return Err(Fault::Copy { place: Box::new(item.place.clone()), reason });
    }
    complete(block, memory, tally)
}

/// Makes all copies of the block happen.
fn complete(block: &mut ResidentBlock, memory: &MachineMemory, tally: &mut Tally) -> Result<(), Fault> {
    while !block.copies.items.is_empty() {
        if step(block, memory, tally, 0)? {
            block.copies.items.remove(0);
        }
    }
    Ok(())
}

/// Does the next part of a copy; says whether it is complete.
fn step(
    block: &mut ResidentBlock,
    memory: &MachineMemory,
    tally: &mut Tally,
    number: usize,
) -> Result<bool, Fault> {
    let (before, rest) = block.copies.items.split_at(number);
    let item = &rest[0];
    let (thread, rank) = (item.thread, block.info.rank);
    let place = item.place.clone();
    let told = |m: Misuse, address| Fault::Mbarrier {
        place: Box::new(place.clone()),
        address,
        reason: m.0,
        value: m.1,
    };
    match &item.work {
        CopyWork::Arrive { mbarrier } => {
            let earlier = |other: &CopyItem| {
                other.thread == thread && !other.bulk && matches!(other.work, CopyWork::Copy { .. })
            };
            if before.iter().any(earlier) {
                return Ok(false);
            }
            block.mbarriers.arrive(&block.shared, *mbarrier, 1, false).map_err(|m| told(m, *mbarrier))?;
        }
        &CopyWork::Copy { from, size, read, data: None, .. } => {
            let mut bytes = vec![0; size as usize];
            if read > 0 {
                let (source, offset, owner) = locate(memory, block, from, read).map_err(|reason| {
                    bad(memory, &block.copies.items[number], AccessKind::Load, from, read, reason)
                })?;
                if source.any_unwritten(offset, read as usize) {
                    let item = &block.copies.items[number];
                    return Err(bad(memory, item, AccessKind::Load, from, read, Reason::Unwritten));
                }
                source.copy_to(offset, &mut bytes[..read as usize]);
                if let Some(owner) = owner {
                    tally.link(rank, owner).copied(AccessKind::Load, read);
                }
            }
            if let CopyWork::Copy { data, .. } = &mut block.copies.items[number].work {
                *data = Some(bytes);
            }
            tally.epoch += 1;
            return Ok(false);
        }
        &CopyWork::Copy { to, size, data: Some(ref bytes), mbarrier, .. } => {
            let (target, offset, owner) = locate(memory, block, to, size)
                .map_err(|reason| bad(memory, item, AccessKind::Store, to, size, reason))?;
            target.copy_from(offset, bytes);
            target.mark_written(offset, bytes.len());
            if let Some(owner) = owner {
                tally.link(rank, owner).copied(AccessKind::Store, size);
                if memory.watches(to.at, size) && tally.watch_hit.is_none() {
                    tally.watch_hit = Some(to.at);
                }
            }
            if let Some(at) = mbarrier {
                block.mbarriers.complete(&block.shared, at, size as i64).map_err(|m| told(m, at))?;
            }
        }
    }
    tally.epoch += 1;
    Ok(true)
}

/// The bytes that a range lies in, its offset in them, and the rank that owns them.
fn locate<'r>(
    memory: &'r MachineMemory,
    block: &'r ResidentBlock,
    range: CopyRange,
    bytes: u64,
) -> Result<(&'r MemoryBytes, usize, Option<usize>), Reason> {
    if range.space == Space::Shared {
        return Ok((&block.shared, range.at as usize, None));
    }
    let id = memory.resolve(range.at, bytes)?;
    let found = memory.get(id);
    Ok((&found.bytes, (range.at - found.bytes.origin(found.base)) as usize, Some(id.0)))
}

/// A lane that executes an instruction.
#[derive(Clone, Copy)]
struct Executing<'i> {
    at: WarpPosition<'i>,
    lane: usize,
    regs: &'i Regs,
}

impl Executing<'_> {
    /// Number of the thread in its block.
    fn thread(&self) -> u32 {
        self.at.warp * LANES as u32 + self.lane as u32
    }

    fn word(&self, r: Reg) -> u64 {
        self.regs.r32[r as usize][self.lane].into()
    }
}

/// Executes the instruction lane by lane.
pub(crate) fn execute(
    cx: &mut StepContext<'_>,
    at: WarpPosition<'_>,
    what: &Async,
    mask: u32,
    regs: &Regs,
) -> Result<(), Fault> {
    for lane in lanes(mask) {
        let by = Executing { at, lane, regs };
        let event = match *what {
            Async::Copy(ref copy) => begin(cx, by, copy)?,
            Async::Commit { bulk } => commit(cx, by, bulk),
            Async::Wait { bulk, read, pending } => wait(cx, by, bulk, read, pending)?,
            Async::Arrive { mbarrier, counted } => arrive(cx, by, mbarrier, counted)?,
        };
        cx.event(at, event)?;
    }
    if cx.timed {
        complete(cx.block, cx.memory, cx.tally)?;
    }
    Ok(())
}

/// Begins a copy.
fn begin(cx: &mut StepContext<'_>, by: Executing<'_>, copy: &AsyncCopy) -> Result<WarpEvent, Fault> {
    let AsyncCopy { bulk, to, from, size, read, ignore, mbarrier } = *copy;
    let size = by.word(size);
    let ignored = ignore.reg != NO_REG && pred(by.regs, ignore) >> by.lane & 1 != 0;
    let read = match read {
        _ if ignored => 0,
        NO_REG => size,
        read => by.word(read),
    };
    let value = |what: &'static str, value: u64| {
        let place = Box::new(cx.place(by.at, by.lane));
        Err(Fault::Value { place, what, value })
    };
    if bulk && !size.is_multiple_of(16) {
        return value("the size of a bulk copy, which must be a multiple of 16,", size);
    }
    if read > size {
        return value("the number of bytes to read, which must not exceed those to write,", read);
    }
    let align = if bulk { 16 } else { size };
    let from = range(cx, by, from, (AccessKind::Load, read, align))?;
    let to = range(cx, by, to, (AccessKind::Store, size, align))?;
    let mbarrier = mbarrier.map(|place| mbarrier_at(cx, by, place)).transpose()?;
    let phase = mbarrier.map(|at| (at, cx.block.mbarriers.phase(at)));
    if size > 0 {
        let work = CopyWork::Copy { to, from, size, read, data: None, mbarrier };
        let place = cx.place(by.at, by.lane);
        cx.block.copies.items.push(CopyItem { thread: by.thread(), bulk, group: None, work, place });
    }
    let (from, to) = ((from.space, from.at), (to.space, to.at));
    Ok(WarpEvent::Copy { lane: by.lane as u32, bulk, from, to, read, bytes: size, mbarrier: phase })
}

/// Makes a group of the thread's copies so far.
fn commit(cx: &mut StepContext<'_>, by: Executing<'_>, bulk: bool) -> WarpEvent {
    let thread = by.thread();
    let copies = &mut cx.block.copies;
    let group = copies.groups.entry((thread, bulk)).or_default();
    let number = *group;
    *group += 1;
    let mine = |item: &&mut CopyItem| item.thread == thread && item.bulk == bulk && item.group.is_none();
    // A copy that an mbarrier is told of belongs to no group.
    for item in copies.items.iter_mut().filter(mine) {
        if matches!(item.work, CopyWork::Copy { mbarrier: None, .. }) {
            item.group = Some(number);
        }
    }
    WarpEvent::CopyCommit { lane: by.lane as u32, bulk }
}

/// Makes the copies that the thread waits for happen, or their reads.
fn wait(
    cx: &mut StepContext<'_>,
    by: Executing<'_>,
    bulk: bool,
    read: bool,
    pending: u64,
) -> Result<WarpEvent, Fault> {
    let thread = by.thread();
    let made = cx.block.copies.groups.get(&(thread, bulk)).copied().unwrap_or(0);
    let limit = made.saturating_sub(pending);
    let mut at = 0;
    while at < cx.block.copies.items.len() {
        let item = &cx.block.copies.items[at];
        let due = item.thread == thread && item.bulk == bulk && item.group.is_some_and(|g| g < limit);
        let unread = matches!(item.work, CopyWork::Copy { data: None, .. });
        if !due || read && !unread {
            at += 1;
        } else if step(cx.block, cx.memory, cx.tally, at)? {
            cx.block.copies.items.remove(at);
        }
    }
    Ok(WarpEvent::CopyWait { lane: by.lane as u32, bulk, read, groups: limit })
}

/// Arrives at an mbarrier once the thread's earlier copies are complete.
fn arrive(
    cx: &mut StepContext<'_>,
    by: Executing<'_>,
    mbarrier: (Space, Address),
    counted: bool,
) -> Result<WarpEvent, Fault> {
    let address = mbarrier_at(cx, by, mbarrier)?;
    if !counted {
        let block = &mut *cx.block;
        let expected = block.mbarriers.expect_arrival(&block.shared, address);
        expected.map_err(|m| misuse(cx, by.at, by.lane, address, m))?;
    }
    let place = cx.place(by.at, by.lane);
    let work = CopyWork::Arrive { mbarrier: address };
    cx.block.copies.items.push(CopyItem { thread: by.thread(), bulk: false, group: None, work, place });
    let phase = cx.block.mbarriers.phase(address);
    Ok(WarpEvent::MbarrierArrive { lane: by.lane as u32, address, phase, copies: true })
}

/// Checks one side of a copy.
fn range(
    cx: &StepContext<'_>,
    by: Executing<'_>,
    (space, address): (Space, Address),
    (kind, bytes, align): (AccessKind, u64, u64),
) -> Result<CopyRange, Fault> {
    let lane = by.lane;
    let at = addresses(by.regs, address)[lane];
    let fail = |reason| access_fault(cx, by.at, (space, at, bytes), kind, LaneFailure { lane, reason });
    if space == Space::Shared {
        let at = shared_offset(&cx.block.shared, space, at, bytes, align).map_err(fail)?;
        return Ok(CopyRange { space, at });
    }
    if !at.is_multiple_of(align.max(1)) {
        return Err(fail(Reason::Misaligned));
    }
    if bytes > 0 {
        let id = cx.memory.resolve(at, bytes).map_err(fail)?;
        if kind == AccessKind::Store && cx.memory.get(id).read_only {
            return Err(fail(Reason::ReadOnly));
        }
    }
    Ok(CopyRange { space: Space::Global, at })
}

/// The offset of the mbarrier that must be at an address.
fn mbarrier_at(
    cx: &mut StepContext<'_>,
    by: Executing<'_>,
    (space, address): (Space, Address),
) -> Result<u64, Fault> {
    let lane = by.lane;
    let at = addresses(by.regs, address)[lane];
    let fail =
        |reason| access_fault(cx, by.at, (space, at, 8), AccessKind::Atomic, LaneFailure { lane, reason });
    let at = shared_offset(&cx.block.shared, space, at, 8, 8).map_err(fail)?;
    let block = &mut *cx.block;
    block.mbarriers.check(&block.shared, at).map_err(|m| misuse(cx, by.at, lane, at, m))?;
    Ok(at)
}
