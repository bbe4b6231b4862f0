//! The memory of all ranks: one flat address space, allocations with guard gaps between them.
//!
//! Rank r owns the addresses from `(r + 1) << 40`. Addresses are never used twice, so that an access to freed memory is
//! always found out. Generic addresses of shared, local and parameter memory lie in windows above all ranks.

use std::sync::Arc;

use crate::error::{AccessKind, BadAccess, Fault, Near, RequestError, Space};

/// Window of an address: 0 is memory of ranks.
pub(crate) const WINDOW_SHIFT: u32 = 56;
pub(crate) const SHARED_WINDOW: u64 = 1 << WINDOW_SHIFT;
pub(crate) const LOCAL_WINDOW: u64 = 2 << WINDOW_SHIFT;
pub(crate) const PARAM_WINDOW: u64 = 3 << WINDOW_SHIFT;

const RANK_SHIFT: u32 = 40;
const GUARD: u64 = 4096;
/// The most ranks that fit below the windows.
pub(crate) const MAX_RANKS: usize = (1 << (WINDOW_SHIFT - RANK_SHIFT)) - 2;

/// Why an access failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    OutOfBounds,
    Freed,
    Misaligned,
    Unwritten,
    ReadOnly,
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
        }
    }
}

/// Which bytes nobody has written yet.
#[derive(Clone, Debug)]
pub(crate) struct Unwritten {
    bits: Vec<u64>,
    left: u64,
}

impl Unwritten {
    fn new(bytes: usize) -> Option<Unwritten> {
        if bytes == 0 {
            return None;
        }
        let mut bits = vec![u64::MAX; bytes.div_ceil(64)];
        if let Some(last) = bits.last_mut()
            && !bytes.is_multiple_of(64)
        {
            *last = (1 << (bytes % 64)) - 1;
        }
        Some(Unwritten { bits, left: bytes as u64 })
    }

    /// Words of the bitmap that a range touches, with the bits inside it.
    fn words(at: usize, len: usize) -> impl Iterator<Item = (usize, u64)> {
        let end = at + len;
        (at / 64..end.div_ceil(64)).map(move |word| {
            let low = at.max(word * 64) - word * 64;
            let high = end.min(word * 64 + 64) - word * 64;
            let upto = if high == 64 { u64::MAX } else { (1 << high) - 1 };
            (word, upto & !((1u64 << low) - 1))
        })
    }

    fn any(&self, at: usize, len: usize) -> bool {
        Unwritten::words(at, len).any(|(word, bits)| self.bits[word] & bits != 0)
    }

    fn clear(&mut self, at: usize, len: usize) {
        for (word, bits) in Unwritten::words(at, len) {
            self.left -= u64::from((self.bits[word] & bits).count_ones());
            self.bits[word] &= !bits;
        }
    }
}

/// Bytes, and which of them have been written.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bytes {
    pub(crate) data: Vec<u8>,
    unwritten: Option<Unwritten>,
}

impl Bytes {
    pub(crate) fn zeroed(bytes: usize) -> Bytes {
        Bytes { data: vec![0; bytes], unwritten: None }
    }

    pub(crate) fn uninitialized(bytes: usize) -> Bytes {
        Bytes { data: vec![0; bytes], unwritten: Unwritten::new(bytes) }
    }

    /// Whether all bytes have been written.
    #[inline(always)]
    pub(crate) fn complete(&self) -> bool {
        self.unwritten.is_none()
    }

    pub(crate) fn any_unwritten(&self, at: usize, len: usize) -> bool {
        self.unwritten.as_ref().is_some_and(|u| u.any(at, len))
    }

    pub(crate) fn mark_written(&mut self, at: usize, len: usize) {
        if let Some(unwritten) = &mut self.unwritten {
            unwritten.clear(at, len);
            if unwritten.left == 0 {
                self.unwritten = None;
            }
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Allocation {
    pub(crate) base: u64,
    pub(crate) len: u64,
    pub(crate) bytes: Bytes,
    pub(crate) label: Arc<str>,
    pub(crate) freed: bool,
    pub(crate) read_only: bool,
}

#[derive(Clone, Debug)]
struct RankMemory {
    /// By ascending address.
    allocations: Vec<Allocation>,
    next: u64,
}

/// What went over the link from one rank to the memory of another (or its own).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkStatistics {
    /// Scalar or vector loads, one for each lane.
    pub loads: u64,
    /// Stores, one for each lane.
    pub stores: u64,
    /// Atomics, one for each lane.
    pub atomics: u64,
    /// Bytes loaded; atomics count here and in `bytes_stored`.
    pub bytes_loaded: u64,
    /// Bytes stored.
    pub bytes_stored: u64,
}

/// All memory that kernels of different blocks can share.
#[derive(Clone, Debug)]
pub(crate) struct Memory {
    ranks: Vec<RankMemory>,
    /// Counts every change of a value in memory, of any kind, and whatever else can end a wait.
    pub(crate) epoch: u64,
    pub(crate) watched: Vec<(u64, u64)>,
    /// First watched address that was written since the last look.
    pub(crate) watch_hit: Option<u64>,
    links: Vec<LinkStatistics>,
}

/// Rank and number of an allocation.
pub(crate) type AllocationId = (usize, usize);

impl Memory {
    pub(crate) fn new(ranks: usize) -> Memory {
        let rank = |r: usize| RankMemory { allocations: Vec::new(), next: (r as u64 + 1) << RANK_SHIFT };
        Memory {
            ranks: (0..ranks).map(rank).collect(),
            epoch: 0,
            watched: Vec::new(),
            watch_hit: None,
            links: vec![LinkStatistics::default(); ranks * ranks],
        }
    }

    pub(crate) fn links(&self) -> &[LinkStatistics] {
        &self.links
    }

    pub(crate) fn clear_links(&mut self) {
        self.links.fill(LinkStatistics::default());
    }

    pub(crate) fn allocate(
        &mut self,
        rank: usize,
        bytes: Bytes,
        align: u64,
        label: &str,
        read_only: bool,
    ) -> Result<u64, RequestError> {
        let ranks = self.ranks.len();
        let len = bytes.data.len() as u64;
        let Some(memory) = self.ranks.get_mut(rank) else { return Err(RequestError::Rank { rank, ranks }) };
        let refuse = |reason| RequestError::Allocation { label: label.into(), bytes: len, align, reason };
        if !align.is_power_of_two() || align > 1 << 30 {
            return Err(refuse("the alignment must be a power of two up to 1 GiB"));
        }
        // An odd multiple: no more aligned than asked for, so that code that relies on more is found out.
        let base = (memory.next + GUARD).next_multiple_of(align);
        let base = if (base / align).is_multiple_of(2) { base + align } else { base };
        let end = base + len;
        if end >> RANK_SHIFT != rank as u64 + 1 {
            return Err(refuse("the rank's address space is used up"));
        }
        memory.next = end;
        memory.allocations.push(Allocation {
            base,
            len,
            bytes,
            label: label.into(),
            freed: false,
            read_only,
        });
        Ok(base)
    }

    pub(crate) fn check_size(label: &str, bytes: u64, align: u64) -> Result<usize, RequestError> {
        match usize::try_from(bytes) {
            Ok(len) if bytes < 1 << (RANK_SHIFT - 2) => Ok(len),
            _ => {
                let reason = "a rank's memory is smaller";
                Err(RequestError::Allocation { label: label.into(), bytes, align, reason })
            }
        }
    }

    pub(crate) fn free(&mut self, address: u64) -> Result<(), RequestError> {
        match self.locate(address) {
            Some(id) if self.get(id).base == address && !self.get(id).freed => {
                let allocation = self.get_mut(id);
                allocation.freed = true;
                allocation.bytes = Bytes::default();
                Ok(())
            }
            _ => Err(RequestError::Free { address }),
        }
    }

    pub(crate) fn get(&self, (rank, number): AllocationId) -> &Allocation {
        &self.ranks[rank].allocations[number]
    }

    pub(crate) fn get_mut(&mut self, (rank, number): AllocationId) -> &mut Allocation {
        &mut self.ranks[rank].allocations[number]
    }

    /// The allocation, live or freed, whose bytes (or whose first address, if it is empty) the address is.
    #[inline]
    pub(crate) fn locate(&self, address: u64) -> Option<AllocationId> {
        let rank = (address >> RANK_SHIFT).wrapping_sub(1) as usize;
        let allocations = &self.ranks.get(rank)?.allocations;
        let number = allocations.partition_point(|a| a.base <= address).checked_sub(1)?;
        let found = &allocations[number];
        (address - found.base < found.len.max(1)).then_some((rank, number))
    }

    /// The live allocation that holds all bytes of the range.
    #[inline]
    pub(crate) fn resolve(&self, address: u64, bytes: u64) -> Result<AllocationId, Reason> {
        let id = self.locate(address).ok_or(Reason::OutOfBounds)?;
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
        let rank = (address >> RANK_SHIFT).wrapping_sub(1) as usize;
        let allocations = &self.ranks.get(rank)?.allocations;
        let after = allocations.partition_point(|a| a.base <= address);
        let before = after.checked_sub(1).map(|i| &allocations[i]);
        let distance = |a: &Allocation| {
            if address < a.base { a.base - address } else { (address - a.base).saturating_sub(a.len) }
        };
        let nearest = match (before, allocations.get(after)) {
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
        let at = (address - found.base) as usize;
        if found.bytes.any_unwritten(at, len) {
            return Err(bad(Reason::Unwritten));
        }
        Ok(found.bytes.data[at..at + len].to_vec())
    }

    /// Host write.
    pub(crate) fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), Fault> {
        let id = self
            .resolve(address, bytes.len() as u64)
            .map_err(|reason| self.bad_access(AccessKind::Store, address, bytes.len() as u64, reason))?;
        let found = self.get_mut(id);
        let at = (address - found.base) as usize;
        found.bytes.data[at..at + bytes.len()].copy_from_slice(bytes);
        found.bytes.mark_written(at, bytes.len());
        self.epoch += 1;
        Ok(())
    }

    #[inline]
    pub(crate) fn link(&mut self, from: usize, to: usize) -> &mut LinkStatistics {
        &mut self.links[from * self.ranks.len() + to]
    }

    /// Notes a store to `bytes` bytes from `address` on.
    #[inline]
    pub(crate) fn note_store(&mut self, address: u64, bytes: u64) {
        if self.watch_hit.is_none()
            && self.watched.iter().any(|&(from, to)| address < to && address.saturating_add(bytes) > from)
        {
            self.watch_hit = Some(address);
        }
    }
}
