//! The memory of all ranks: one flat address space, allocations with guard gaps between them.
//!
//! Rank r owns the addresses from `(r + 1) << 40`. Addresses are never used twice, so that an access to freed memory is
//! always found out. Generic addresses of shared, local and parameter memory lie in windows above all ranks.

mod bytes;

use std::sync::Arc;

pub(crate) use bytes::{MemoryBytes, after, before};

use crate::fault::{AccessKind, BadAccess, Fault, Near, RequestError, Space};
use crate::isa::WINDOW_SHIFT;

/// Multicast ranges lie here.
const MULTICAST_WINDOW: u64 = 4 << WINDOW_SHIFT;

/// The most aliases of an allocation, and the most multicast ranges that it has a part in.
pub(crate) const WAYS: u8 = 63;

const RANK_SHIFT: u32 = 40;
const GUARD: u64 = 4096;
/// The most ranks that fit below the windows.
pub(crate) const MAX_RANKS: usize = (1 << (WINDOW_SHIFT - RANK_SHIFT)) - 2;

/// The reason why an access failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    OutOfBounds,
    Freed,
    Misaligned,
    Unwritten,
    ReadOnly,
    /// The address of a multicast range.
    Multicast,
    /// No such address, where one is needed.
    NotMulticast,
}

impl Reason {
    pub(crate) fn fault(self, access: BadAccess) -> Fault {
        let access = Box::new(access);
        match self {
            Reason::OutOfBounds => Fault::OutOfBounds(access),
            Reason::Freed => Fault::UseAfterFree(access),
            Reason::Misaligned => Fault::Misaligned(access),
            Reason::Unwritten => Fault::Uninitialized(access),
            Reason::ReadOnly => Fault::ReadOnly(access),
            Reason::Multicast => Fault::Multicast(access),
            Reason::NotMulticast => Fault::NotMulticast(access),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Allocation {
    pub(crate) base: u64,
    pub(crate) len: u64,
    /// Shared by an allocation and its aliases.
    pub(crate) bytes: Arc<MemoryBytes>,
    pub(crate) label: Arc<str>,
    pub(crate) freed: bool,
    pub(crate) read_only: bool,
    /// Of a second address: the allocation that it is another way to, and which of its aliases it is, from 1.
    pub(crate) alias: Option<(AllocationId, u8)>,
}

impl Allocation {
    /// Sets the values from the first byte on.
    pub(crate) fn put(&self, values: &[u8]) {
        self.bytes.copy_from(self.offset(self.base), values);
    }

    /// Offset of an address in the allocation's bytes.
    fn offset(&self, address: u64) -> usize {
        (address - self.bytes.origin(self.base)) as usize
    }
}

#[derive(Debug)]
struct RankMemory {
    /// In the order of their making.
    allocations: Vec<Allocation>,
    /// First addresses, ascending, and beside each which allocation begins there: of several, the last one made.
    bases: Vec<u64>,
    numbers: Vec<u32>,
    next: u64,
}

impl RankMemory {
    fn push(&mut self, allocation: Allocation) {
        let number = self.allocations.len() as u32;
        let from = self.bases.partition_point(|&base| base < allocation.base);
        let to = self.bases.partition_point(|&base| base < allocation.base + allocation.len.max(1));
        // Whatever began there has been freed.
        self.bases.splice(from..to, [allocation.base]);
        self.numbers.splice(from..to, [number]);
        self.next = self.next.max(allocation.base + allocation.len);
        self.allocations.push(allocation);
    }

    /// The allocation that begins at or before the address.
    #[inline]
    fn before(&self, address: u64) -> Option<usize> {
        let at = self.bases.partition_point(|&base| base <= address).checked_sub(1)?;
        Some(self.numbers[at] as usize)
    }

    /// The first one that begins behind the address.
    fn after(&self, address: u64) -> Option<usize> {
        let at = self.bases.partition_point(|&base| base <= address);
        self.numbers.get(at).map(|&number| number as usize)
    }
}

/// All memory that kernels of different blocks can share. While kernels run, only the values in it change.
#[derive(Debug)]
pub(crate) struct MachineMemory {
    ranks: Vec<RankMemory>,
    /// Ranges whose stores end a run.
    pub(crate) watched: Vec<(u64, u64)>,
    /// Several threads run kernels.
    shared: bool,
    multicasts: Vec<MulticastRange>,
}

/// Addresses that stand for the same bytes of several allocations.
#[derive(Debug)]
struct MulticastRange {
    base: u64,
    len: u64,
    label: Arc<str>,
    /// The bytes that the first address stands for, by rank.
    members: Vec<Member>,
}

/// The bytes that an address of a multicast range stands for on one rank.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member {
    pub(crate) address: u64,
    /// Number of the range among those over its allocation, from 1.
    pub(crate) way: u8,
}

impl MulticastRange {
    fn holds(&self, address: u64, bytes: u64) -> bool {
        address >= self.base && address - self.base <= self.len && bytes <= self.len - (address - self.base)
    }
}

/// Rank and number of an allocation.
pub(crate) type AllocationId = (usize, usize);

impl MachineMemory {
    pub(crate) fn new(ranks: usize, shared: bool) -> MachineMemory {
        let rank = |r: usize| RankMemory {
            allocations: Vec::new(),
            bases: Vec::new(),
            numbers: Vec::new(),
            next: (r as u64 + 1) << RANK_SHIFT,
        };
        MachineMemory {
            ranks: (0..ranks).map(rank).collect(),
            watched: Vec::new(),
            shared,
            multicasts: Vec::new(),
        }
    }

    pub(crate) fn allocate(
        &mut self,
        rank: usize,
        label: &str,
        len: u64,
        align: u64,
        zeroed: bool,
        read_only: bool,
    ) -> Result<u64, RequestError> {
        let ranks = self.ranks.len();
        let Some(memory) = self.ranks.get_mut(rank) else { return Err(RequestError::Rank { rank, ranks }) };
        let refuse = |reason| RequestError::Allocation { label: label.into(), bytes: len, align, reason };
        if !align.is_power_of_two() || align > 1 << 30 {
            return Err(refuse("the alignment must be a power of two up to 1 GiB"));
        }
        let Some(bytes) = usize::try_from(len).ok().filter(|_| len < 1 << (RANK_SHIFT - 2)) else {
            return Err(refuse("a rank's memory is smaller"));
        };
        // An odd multiple: no more aligned than asked for, so that code that relies on more is found out.
        let base = (memory.next + GUARD).next_multiple_of(align);
        let base = if (base / align).is_multiple_of(2) { base + align } else { base };
        let end = base + len;
        if end >> RANK_SHIFT != rank as u64 + 1 {
            return Err(refuse("the rank's address space is used up"));
        }
        let Some(bytes) = MemoryBytes::placed(base, bytes, zeroed, self.shared) else {
            return Err(refuse("this machine has no room for it"));
        };
        memory.push(Allocation {
            base,
            len,
            bytes: bytes.into(),
            label: label.into(),
            freed: false,
            read_only,
            alias: None,
        });
        Ok(base)
    }

    /// As [`MachineMemory::allocate`], at an address of the caller's choice, where nothing lives. What the machine places itself goes
    /// to the upper half of the rank's addresses from then on.
    pub(crate) fn place(&mut self, address: u64, label: &str, len: u64) -> Result<(), RequestError> {
        let refuse = |reason| RequestError::Allocation { label: label.into(), bytes: len, align: 1, reason };
        let rank = (address >> RANK_SHIFT).wrapping_sub(1) as usize;
        let shared = self.shared;
        let end = address.checked_add(len).filter(|end| (end - 1) >> RANK_SHIFT == rank as u64 + 1);
        let (Some(memory), Some(end), true) = (self.ranks.get_mut(rank), end, len > 0) else {
            return Err(refuse("it is empty, or no rank has these addresses"));
        };
        let live = |number: usize| !memory.allocations[number].freed;
        let before = memory.before(address).filter(|&number| live(number));
        let overlaps = before.is_some_and(|number| {
            let found = &memory.allocations[number];
            address < found.base + found.len
        });
        if overlaps
            || memory
                .after(address)
                .is_some_and(|number| live(number) && memory.allocations[number].base < end)
        {
            return Err(refuse("something else is there"));
        }
        let bytes =
            usize::try_from(len).ok().and_then(|len| MemoryBytes::placed(address, len, false, shared));
        let Some(bytes) = bytes else {
            return Err(refuse("this machine has no room for it"));
        };
        memory.next = memory.next.max(((rank as u64 + 1) << RANK_SHIFT) + (1 << (RANK_SHIFT - 1)));
        memory.push(Allocation {
            base: address,
            len,
            bytes: bytes.into(),
            label: label.into(),
            freed: false,
            read_only: false,
            alias: None,
        });
        Ok(())
    }

    /// Maps an allocation at one more address of its rank, which is aligned as the first one is.
    pub(crate) fn alias(&mut self, address: u64) -> Result<u64, RequestError> {
        let id = self.locate(address).map(|id| self.own(id).0);
        let Some(id) = id.filter(|&id| !self.get(id).freed) else {
            return Err(RequestError::Alias { address, reason: "no live allocation is there" });
        };
        let of_it = |a: &&Allocation| a.alias.is_some_and(|(own, _)| own == id);
        let known = self.ranks[id.0].allocations.iter().filter(of_it).count();
        let Some(number) = u8::try_from(known + 1).ok().filter(|&n| n <= WAYS) else {
            return Err(RequestError::Alias { address, reason: "it has 63 aliases already" });
        };
        let Allocation { base, len, bytes, label, read_only, .. } = self.get(id);
        let (base, len, read_only) = (*base, *len, *read_only);
        let (bytes, label) = (bytes.clone(), label.clone());
        let memory = &mut self.ranks[id.0];
        let period = 2 << base.trailing_zeros();
        let begin = (memory.next + GUARD).next_multiple_of(period) + base % period;
        if (begin + len) >> RANK_SHIFT != id.0 as u64 + 1 {
            return Err(RequestError::Alias { address, reason: "the rank's address space is used up" });
        }
        let alias = Some((id, number));
        memory.push(Allocation { base: begin, len, bytes, label, freed: false, read_only, alias });
        Ok(begin)
    }

    /// The allocation that an allocation or alias is, and the number of the alias, 0 of the allocation itself.
    pub(crate) fn own(&self, id: AllocationId) -> (AllocationId, u8) {
        self.get(id).alias.unwrap_or((id, 0))
    }

    pub(crate) fn free(&mut self, address: u64) -> Result<(), RequestError> {
        match self.locate(address) {
            Some(id) if self.get(id).base == address && !self.get(id).freed => {
                let (own, number) = self.own(id);
                for (n, allocation) in self.ranks[id.0].allocations.iter_mut().enumerate() {
                    let of_it = number == 0 && allocation.alias.is_some_and(|(other, _)| other == own);
                    if n == id.1 || of_it {
                        allocation.freed = true;
                        allocation.bytes = Arc::default();
                    }
                }
                Ok(())
            }
            _ => Err(RequestError::Free { address }),
        }
    }

    pub(crate) fn get(&self, (rank, number): AllocationId) -> &Allocation {
        &self.ranks[rank].allocations[number]
    }

    /// The allocation, live or freed, whose bytes (or whose first address, if it is empty) the address is.
    #[inline]
    pub(crate) fn locate(&self, address: u64) -> Option<AllocationId> {
        let rank = (address >> RANK_SHIFT).wrapping_sub(1) as usize;
        let memory = self.ranks.get(rank)?;
        let number = memory.before(address)?;
        let found = &memory.allocations[number];
        (address - found.base < found.len.max(1)).then_some((rank, number))
    }

    /// Makes a range that stands for `bytes` bytes from each of the addresses on, if need be at an address of the caller's
    /// choice.
    pub(crate) fn multicast(
        &mut self,
        members: &[u64],
        bytes: u64,
        label: &str,
        at: Option<u64>,
    ) -> Result<u64, RequestError> {
        let refuse = |reason| Err(RequestError::Multicast { label: label.into(), bytes, reason });
        let mut ranks = Vec::new();
        for &address in members {
            let id = match self.resolve(address, bytes) {
                Ok(id) if !self.get(id).read_only => id,
                _ => return refuse("a member does not lie in a live allocation that can be written"),
            };
            let over = |member: &&Member| {
                self.locate(member.address).is_some_and(|other| self.own(other).0 == self.own(id).0)
            };
            let known = self
                .multicasts
                .iter()
                .flat_map(|m| &m.members)
                .filter(over)
                .map(|m| m.way)
                .max()
                .unwrap_or(0);
            if known == WAYS {
                return refuse("the allocation of a member has a part in 63 ranges already");
            }
            ranks.push((id.0, Member { address, way: known + 1 }));
        }
        ranks.sort_unstable_by_key(|(rank, _)| *rank);
        if ranks.is_empty() || ranks.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            return refuse("it has one member of each rank, and at least one");
        }
        // The largest access has 16 bytes.
        if members.iter().any(|member| member % 16 != 0) {
            return refuse("a member is not aligned to 16 bytes");
        }
        let own = self.multicasts.iter().filter(|m| m.base > MULTICAST_WINDOW);
        let end = own.map(|m| m.base + m.len).max().unwrap_or(MULTICAST_WINDOW);
        let base = at.unwrap_or((end + GUARD).next_multiple_of(256));
        if bytes == 0 || bytes > 1 << RANK_SHIFT || base + bytes >= MULTICAST_WINDOW + (1 << WINDOW_SHIFT) {
            return refuse("it is empty, or the address space is used up");
        }
        let taken = |m: &MulticastRange| base < m.base + m.len && m.base < base + bytes;
        let of_ranks = (base >> RANK_SHIFT) <= self.ranks.len() as u64;
        if of_ranks || self.multicasts.iter().any(taken) {
            return refuse("something else is there");
        }
        let members = ranks.into_iter().map(|(_, member)| member).collect();
        self.multicasts.push(MulticastRange { base, len: bytes, label: label.into(), members });
        Ok(base)
    }

    /// Ends a range.
    pub(crate) fn end_multicast(&mut self, base: u64) {
        self.multicasts.retain(|multicast| multicast.base != base);
    }

    /// The members of a multicast range at an address, by rank; with the range's first address and its bytes.
    pub(crate) fn members(&self, address: u64, bytes: u64) -> Result<(Vec<Member>, (u64, u64)), Reason> {
        match self.multicasts.iter().find(|m| m.holds(address, bytes)) {
            Some(found) => {
                let at = |m: &Member| Member { address: m.address + (address - found.base), ..*m };
                Ok((found.members.iter().map(at).collect(), (found.base, found.len)))
            }
            None if address >> WINDOW_SHIFT == MULTICAST_WINDOW >> WINDOW_SHIFT => Err(Reason::OutOfBounds),
            None => Err(Reason::NotMulticast),
        }
    }

    /// The live allocation that holds all bytes of the range.
    #[inline]
    pub(crate) fn resolve(&self, address: u64, bytes: u64) -> Result<AllocationId, Reason> {
        let Some(id) = self.locate(address) else {
            let multicast = self.multicasts.iter().any(|m| m.holds(address, 0));
            return Err(if multicast { Reason::Multicast } else { Reason::OutOfBounds });
        };
        let found = self.get(id);
        if found.freed {
            Err(Reason::Freed)
        } else if bytes > found.len - (address - found.base) {
            Err(Reason::OutOfBounds)
        } else {
            Ok(id)
        }
    }

    /// The allocation at the address, or the one nearest to it on its rank.
    pub(crate) fn near(&self, address: u64) -> Option<Near> {
        if let Some(found) = self.multicasts.iter().find(|m| m.holds(address, 0)) {
            return Some(Near {
                rank: self.locate(found.members[0].address)?.0,
                label: found.label.clone(),
                offset: (address - found.base) as i64,
                len: found.len,
                freed: false,
            });
        }
        let rank = (address >> RANK_SHIFT).wrapping_sub(1) as usize;
        let memory = self.ranks.get(rank)?;
        let [before, after] = [memory.before(address), memory.after(address)]
            .map(|found| found.map(|n| &memory.allocations[n]));
        let distance = |a: &Allocation| {
            if address < a.base { a.base - address } else { (address - a.base).saturating_sub(a.len) }
        };
        let nearest = match (before, after) {
            (Some(b), Some(a)) if distance(a) < distance(b) => a,
            (Some(b), _) => b,
            (None, a) => a?,
        };
        Some(Near {
            rank,
            label: nearest.label.clone(),
            offset: address.wrapping_sub(nearest.base) as i64,
            len: nearest.len,
            freed: nearest.freed,
        })
    }

    pub(crate) fn bad_access(&self, kind: AccessKind, address: u64, bytes: u64, reason: Reason) -> Fault {
        let near = self.near(address);
        reason.fault(BadAccess { place: None, kind, space: Space::Global, address, bytes, near })
    }

    /// Host read; `None` for the error's place.
    pub(crate) fn read(&self, address: u64, len: usize) -> Result<Vec<u8>, Fault> {
        let bad = |reason| self.bad_access(AccessKind::Load, address, len as u64, reason);
        let found = self.get(self.resolve(address, len as u64).map_err(bad)?);
        let at = found.offset(address);
        if found.bytes.any_unwritten(at, len) {
            return Err(bad(Reason::Unwritten));
        }
        Ok(found.bytes.to_vec(at, len))
    }

    /// Host write.
    pub(crate) fn write(&self, address: u64, bytes: &[u8]) -> Result<(), Fault> {
        let bad = |reason| self.bad_access(AccessKind::Store, address, bytes.len() as u64, reason);
        let found = self.get(self.resolve(address, bytes.len() as u64).map_err(bad)?);
        let at = found.offset(address);
        found.bytes.copy_from(at, bytes);
        found.bytes.mark_written(at, bytes.len());
        Ok(())
    }

    /// Returns true if a store to these bytes ends the run.
    #[inline]
    pub(crate) fn watches(&self, address: u64, bytes: u64) -> bool {
        self.watched.iter().any(|&(from, to)| address < to && address.saturating_add(bytes) > from)
    }
}
