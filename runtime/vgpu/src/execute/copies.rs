//! Asynchronous copies of a block. A copy reads its source and writes its destination at later turns of the block's
//! warps, which the seed picks; a thread that waits for it makes it happen at once. So code that does not wait works
//! on old or on new data, now this, now that. In a run with a clock, a copy happens at once, and the clock holds who waits
//! for it until it would be there.

use crate::error::{AccessKind, BadAccess, Fault, Place, Space};
use crate::execute::access::{Failure, lanes};
use crate::execute::block::Block;
use crate::execute::load_store::{access_fault, addresses, shared_offset};
use crate::execute::mbarrier::misuse;
use crate::execute::observe::Event;
use crate::execute::step::Context;
use crate::front::isa::{Address, Async, Function};
use crate::machine::counts::Tally;
use crate::machine::random::Random;
use crate::memory::{Memory, Reason};
use crate::registers::{LANES, NO_REG, Regs};

/// A place in shared memory of the block, or in global memory.
#[derive(Clone, Copy, Debug)]
struct Range {
    space: Space,
    at: u64,
}

#[derive(Clone, Debug)]
enum Work {
    /// `read` bytes are copied, the rest of `size` becomes zeros.
    Copy { to: Range, from: Range, size: u64, read: u64, data: Option<Vec<u8>>, mbarrier: Option<u64> },
    /// An arrival behind the thread's earlier copies.
    Arrive { mbarrier: u64 },
}

#[derive(Clone, Debug)]
struct Item {
    /// Number of the thread in its block.
    thread: u32,
    bulk: bool,
    /// Number of the group among the thread's, once there is one.
    group: Option<u64>,
    work: Work,
    /// The instruction that began it.
    place: Place,
}

/// The copies of a block that are not complete, in the order in which they were begun.
#[derive(Clone, Debug, Default)]
pub(crate) struct Copies {
    items: Vec<Item>,
    /// Groups that each thread has made; bulk groups are counted apart.
    groups: rustc_hash::FxHashMap<(u32, bool), u64>,
}

/// Of this many turns a copy moves on in one.
const SLOWNESS: u64 = 4;

impl Copies {
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}

fn bad(memory: &Memory, item: &Item, kind: AccessKind, range: Range, bytes: u64, reason: Reason) -> Fault {
    let near = if range.space == Space::Global { memory.near(range.at) } else { None };
    let place = Some(item.place.clone());
    reason.fault(BadAccess { place, kind, space: range.space, address: range.at, bytes, near })
}

/// Lets copies of the block move on by chance.
pub(crate) fn progress(
    block: &mut Block,
    memory: &Memory,
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
pub(crate) fn finish(block: &mut Block, memory: &Memory, tally: &mut Tally) -> Result<(), Fault> {
    let unread = |item: &&Item| item.bulk && matches!(item.work, Work::Copy { data: None, .. });
    if let Some(item) = block.copies.items.iter().find(unread) {
        let reason = "its block has ended before it has read all bytes, as nobody waited for it";
        return Err(Fault::Copy { place: Box::new(item.place.clone()), reason });
    }
    complete(block, memory, tally)
}

/// Makes all copies of the block happen.
fn complete(block: &mut Block, memory: &Memory, tally: &mut Tally) -> Result<(), Fault> {
    while !block.copies.items.is_empty() {
        if step(block, memory, tally, 0)? {
            block.copies.items.remove(0);
        }
    }
    Ok(())
}

/// Does the next part of a copy; says whether it is complete.
fn step(block: &mut Block, memory: &Memory, tally: &mut Tally, number: usize) -> Result<bool, Fault> {
    let (before, rest) = block.copies.items.split_at(number);
    let item = &rest[0];
    let (thread, rank) = (item.thread, block.rank);
    let place = item.place.clone();
    let told = |m: (&'static str, i64), address| Fault::Mbarrier {
        place: Box::new(place.clone()),
        address,
        reason: m.0,
        value: m.1,
    };
    match &item.work {
        Work::Arrive { mbarrier } => {
            let earlier = |other: &Item| {
                other.thread == thread && !other.bulk && matches!(other.work, Work::Copy { .. })
            };
            if before.iter().any(earlier) {
                return Ok(false);
            }
            block.mbarriers.arrive(&block.shared, *mbarrier, 1, false).map_err(|m| told(m, *mbarrier))?;
        }
        &Work::Copy { from, size, read, data: None, .. } => {
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
            if let Work::Copy { data, .. } = &mut block.copies.items[number].work {
                *data = Some(bytes);
            }
            tally.epoch += 1;
            return Ok(false);
        }
        &Work::Copy { to, size, data: Some(ref bytes), mbarrier, .. } => {
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
    memory: &'r Memory,
    block: &'r Block,
    range: Range,
    bytes: u64,
) -> Result<(&'r crate::memory::Bytes, usize, Option<usize>), Reason> {
    if range.space == Space::Shared {
        return Ok((&block.shared, range.at as usize, None));
    }
    let id = memory.resolve(range.at, bytes)?;
    let found = memory.get(id);
    Ok((&found.bytes, (range.at - found.bytes.origin(found.base)) as usize, Some(id.0)))
}

/// Executes the instruction lane by lane. `site` is the function, the program counter and the warp.
pub(crate) fn execute(
    cx: &mut Context<'_>,
    site: (&Function, u32, u32),
    what: &Async,
    mask: u32,
    regs: &Regs,
) -> Result<(), Fault> {
    let (function, pc, index) = site;
    for lane in lanes(mask) {
        let thread = index * LANES as u32 + lane as u32;
        match *what {
            Async::Copy { bulk, to, from, size, read, ignore, mbarrier } => {
                let size = u64::from(regs.r32[size as usize][lane]);
                let ignored =
                    ignore.reg != NO_REG && crate::execute::step::pred(regs, ignore) >> lane & 1 != 0;
                let read = match read {
                    _ if ignored => 0,
                    NO_REG => size,
                    read => u64::from(regs.r32[read as usize][lane]),
                };
                let value = |what: &'static str, value: u64| Fault::Value {
                    place: Box::new(cx.place(function, pc, index, lane)),
                    what,
                    value,
                };
                if bulk && size % 16 != 0 {
                    return Err(value("the size of a bulk copy, which must be a multiple of 16,", size));
                }
                if read > size {
                    return Err(value(
                        "the number of bytes to read, which must not exceed those to write,",
                        read,
                    ));
                }
                let align = if bulk { 16 } else { size };
                let from = range(cx, site, lane, regs, from, (AccessKind::Load, read, align))?;
                let to = range(cx, site, lane, regs, to, (AccessKind::Store, size, align))?;
                let mbarrier = match mbarrier {
                    Some(place) => Some(mbarrier_at(cx, site, lane, regs, place)?),
                    None => None,
                };
                let phase = |at| cx.block.mbarriers.phase(at);
                let event = Event::Copy {
                    lane: lane as u32,
                    bulk,
                    from: (from.space, from.at),
                    to: (to.space, to.at),
                    read,
                    bytes: size,
                    mbarrier: mbarrier.map(|at| (at, phase(at))),
                };
                if size > 0 {
                    let work = Work::Copy { to, from, size, read, data: None, mbarrier };
                    let place = cx.place(function, pc, index, lane);
                    cx.block.copies.items.push(Item { thread, bulk, group: None, work, place });
                }
                cx.event(function, pc, index, event)?;
            }
            Async::Commit { bulk } => {
                let group = cx.block.copies.groups.entry((thread, bulk)).or_default();
                let number = *group;
                *group += 1;
                let mine =
                    |item: &&mut Item| item.thread == thread && item.bulk == bulk && item.group.is_none();
                // A copy that an mbarrier is told of belongs to no group.
                for item in cx.block.copies.items.iter_mut().filter(mine) {
                    if matches!(item.work, Work::Copy { mbarrier: None, .. }) {
                        item.group = Some(number);
                    }
                }
                cx.event(function, pc, index, Event::CopyCommit { lane: lane as u32, bulk })?;
            }
            Async::Wait { bulk, read, pending } => {
                let made = cx.block.copies.groups.get(&(thread, bulk)).copied().unwrap_or(0);
                let limit = made.saturating_sub(pending);
                let mut at = 0;
                while at < cx.block.copies.items.len() {
                    let item = &cx.block.copies.items[at];
                    let due =
                        item.thread == thread && item.bulk == bulk && item.group.is_some_and(|g| g < limit);
                    let unread = matches!(item.work, Work::Copy { data: None, .. });
                    if !due || read && !unread {
                        at += 1;
                    } else if step(cx.block, cx.memory, cx.tally, at)? {
                        cx.block.copies.items.remove(at);
                    }
                }
                let event = Event::CopyWait { lane: lane as u32, bulk, read, groups: limit };
                cx.event(function, pc, index, event)?;
            }
            Async::Arrive { mbarrier, counted } => {
                let at = mbarrier_at(cx, site, lane, regs, mbarrier)?;
                if !counted {
                    let block = &mut *cx.block;
                    let expected = block.mbarriers.expect_arrival(&block.shared, at);
                    expected.map_err(|m| misuse(cx, site, lane, at, m))?;
                }
                let place = cx.place(function, pc, index, lane);
                let work = Work::Arrive { mbarrier: at };
                cx.block.copies.items.push(Item { thread, bulk: false, group: None, work, place });
                let phase = cx.block.mbarriers.phase(at);
                let event = Event::MbarrierArrive { lane: lane as u32, address: at, phase, copies: true };
                cx.event(function, pc, index, event)?;
            }
        }
    }
    if cx.timed {
        complete(cx.block, cx.memory, cx.tally)?;
    }
    Ok(())
}

/// Checks one side of a copy.
fn range(
    cx: &Context<'_>,
    site: (&Function, u32, u32),
    lane: usize,
    regs: &Regs,
    (space, address): (Space, Address),
    (kind, bytes, align): (AccessKind, u64, u64),
) -> Result<Range, Fault> {
    let at = addresses(regs, address)[lane];
    let fail = |reason| access_fault(cx, site, (space, at, bytes), kind, Failure { lane, reason });
    if space == Space::Shared {
        let at = shared_offset(&cx.block.shared, space, at, bytes, align).map_err(fail)?;
        return Ok(Range { space, at });
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
    Ok(Range { space: Space::Global, at })
}

fn mbarrier_at(
    cx: &mut Context<'_>,
    site: (&Function, u32, u32),
    lane: usize,
    regs: &Regs,
    (space, address): (Space, Address),
) -> Result<u64, Fault> {
    let at = addresses(regs, address)[lane];
    let fail = |reason| access_fault(cx, site, (space, at, 8), AccessKind::Atomic, Failure { lane, reason });
    let at = shared_offset(&cx.block.shared, space, at, 8, 8).map_err(fail)?;
    let block = &mut *cx.block;
    let found = block.mbarriers.check(&block.shared, at);
    found.map_err(|m| misuse(cx, site, lane, at, m))?;
    Ok(at)
}
