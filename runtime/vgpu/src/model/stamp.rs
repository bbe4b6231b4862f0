//! Stamps of accesses: the thread, the kind, the way to the bytes; and the relation of two of them.

use crate::fault::Space;
use crate::memory::AllocationId;

/// A memory that blocks or threads share.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum MemoryId {
    Global(AllocationId),
    /// Of a block, by its number in the model.
    Shared(u32),
}

impl MemoryId {
    pub(crate) fn space(self) -> Space {
        match self {
            MemoryId::Global(_) => Space::Global,
            MemoryId::Shared(_) => Space::Shared,
        }
    }
}

/// A location: its memory and first byte.
pub(crate) type MemoryLocation = (MemoryId, u64);

/// An access to a cell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Stamp {
    /// Number of the moment; 0 stands for nobody, and what is not above [`Clocks::settled`] happened before all else.
    ///
    /// [`Clocks::settled`]: super::clocks::Clocks::settled
    pub(crate) epoch: u32,
    pub(crate) lanes: u32,
    /// Number of the instruction in its module.
    pub(crate) site: u32,
    pub(crate) how: AccessFlags,
    /// The bytes of the cell: a bit each.
    pub(crate) bytes: u8,
    /// The way by which the bytes were reached: see [`Path`].
    pub(crate) path: Path,
}

/// The virtual address and the proxy of an access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Path(pub(crate) u8);

impl Path {
    /// Generic accesses to an allocation's own address.
    pub(crate) const OWN: Path = Path(0);
    const ASYNC: u8 = 1 << 7;
    const MULTICAST: u8 = 1 << 6;

    /// Generic accesses to another address, by its number from 1 up to [`WAYS`](crate::memory::WAYS).
    pub(crate) fn alias(number: u8) -> Path {
        Path(number)
    }

    /// Accesses by a multicast range, by its number from 1 up to [`WAYS`](crate::memory::WAYS).
    pub(crate) fn multicast(number: u8) -> Path {
        Path(number | Path::MULTICAST)
    }

    /// The same address, by asynchronous copies.
    pub(crate) fn asynchronous(self) -> Path {
        Path(self.0 | Path::ASYNC)
    }

    pub(crate) fn is_async(self) -> bool {
        self.0 & Path::ASYNC != 0
    }

    pub(crate) fn is_multicast(self) -> bool {
        self.0 & Path::MULTICAST != 0
    }
}

/// The kind of an access, its scope and size, as bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct AccessFlags(pub(crate) u16);

impl AccessFlags {
    pub(crate) const WRITE: u16 = 1;
    pub(crate) const READ: u16 = 2;
    pub(crate) const STRONG: u16 = 4;
    /// Scope of a strong access: 0 block, 1 GPU, 2 system.
    const SCOPE: u32 = 3;
    /// Logarithm of the element's bytes.
    const SIZE: u32 = 5;
    /// Number of the cell in its element.
    const PART: u32 = 8;

    pub(crate) fn new(kind: u16, strong: bool, scope: u16, bytes: u64) -> AccessFlags {
        let strong = if strong { AccessFlags::STRONG } else { 0 };
        AccessFlags(
            kind | strong
                | scope << AccessFlags::SCOPE
                | (bytes.trailing_zeros() as u16) << AccessFlags::SIZE,
        )
    }

    pub(crate) fn part(self, part: u16) -> AccessFlags {
        AccessFlags(self.0 | part << AccessFlags::PART)
    }

    pub(crate) fn writes(self) -> bool {
        self.0 & AccessFlags::WRITE != 0
    }

    pub(crate) fn reads(self) -> bool {
        self.0 & AccessFlags::READ != 0
    }

    pub(crate) fn strong(self) -> bool {
        self.0 & AccessFlags::STRONG != 0
    }

    pub(crate) fn scope(self) -> u16 {
        self.0 >> AccessFlags::SCOPE & 3
    }

    /// Cells of an element, at least 1.
    pub(super) fn cells(self) -> u16 {
        ((1 << (self.0 >> AccessFlags::SIZE & 7)) / 4).max(1)
    }

    /// Returns true if both elements begin at the same byte and have the same size, given that the cells are the same.
    pub(crate) fn same_element(self, bytes: u8, other: AccessFlags, others: u8) -> bool {
        self.0 >> AccessFlags::SIZE == other.0 >> AccessFlags::SIZE && bytes == others
    }
}

/// In place of an access where there was none.
pub(super) const NOBODY: Stamp =
    Stamp { epoch: 0, lanes: 0, site: 0, how: AccessFlags(0), bytes: 0, path: Path::OWN };

/// The relation of an earlier access to a new one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Relation {
    /// It happened before that and all that is still to come.
    Settled,
    /// It happened before.
    Before,
    /// Neither happened before the other, and that is admitted: two reads, or two strong accesses to one element whose
    /// scopes include each other.
    Apart,
    /// A race.
    Race,
}
