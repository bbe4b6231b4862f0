//! Places and accesses that faults name.

use std::fmt;
use std::sync::Arc;

/// A line of the source that the PTX was compiled from (`.file`, `.loc`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLine {
    /// File as the compiler was told it.
    pub file: Arc<str>,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1; 0 if unknown.
    pub column: u32,
    /// The line at which the function of this line was inlined or, in a fault, called.
    pub inlined_at: Option<Box<SourceLine>>,
}

impl SourceLine {
    fn outermost(&mut self) -> &mut SourceLine {
        match self.inlined_at {
            Some(ref mut next) => next.outermost(),
            None => self,
        }
    }

    /// This line and those that it is inlined in.
    pub(crate) fn depth(&self) -> usize {
        std::iter::successors(Some(self), |line| line.inlined_at.as_deref()).count()
    }

    /// Appends the lines of the calls that led here, innermost first, as if the functions had been inlined.
    pub(crate) fn called_from(&mut self, callers: Vec<SourceLine>) {
        let mut last = self;
        for caller in callers {
            last = last.outermost().inlined_at.insert(Box::new(caller));
        }
    }
}

impl fmt::Display for SourceLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)?;
        match &self.inlined_at {
            Some(outer) => write!(f, ", inlined at {outer}"),
            None => Ok(()),
        }
    }
}

/// An instruction of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultPlace {
    /// Rank whose kernel runs.
    pub rank: usize,
    /// Kernel.
    pub kernel: Arc<str>,
    /// Block coordinates x, y, z.
    pub block: [u32; 3],
    /// Thread coordinates x, y, z.
    pub thread: [u32; 3],
    /// Line of the PTX text.
    pub ptx_line: u32,
    /// Line of the source, where the PTX has line information.
    pub source: Option<SourceLine>,
}

impl fmt::Display for FaultPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ([bx, by, bz], [tx, ty, tz]) = (self.block, self.thread);
        write!(
            f,
            "rank {}, kernel {}, block ({bx}, {by}, {bz}), thread ({tx}, {ty}, {tz})",
            self.rank, self.kernel
        )?;
        write!(f, ", PTX line {}", self.ptx_line)?;
        match &self.source {
            Some(source) => write!(f, " ({source})"),
            None => Ok(()),
        }
    }
}

/// The kind of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessKind {
    /// A read.
    Load,
    /// A write.
    Store,
    /// A read-modify-write.
    Atomic,
}

impl fmt::Display for AccessKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AccessKind::Load => "load",
            AccessKind::Store => "store",
            AccessKind::Atomic => "atomic",
        })
    }
}

/// State spaces of PTX, as far as an access can name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Space {
    /// Decided by the address.
    Generic,
    /// Memory of the ranks.
    Global,
    /// Memory of the block.
    Shared,
    /// Memory of the thread.
    Local,
    /// Constant variables of the module.
    Const,
    /// Parameters.
    Param,
}

impl fmt::Display for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Space::Generic => "generic",
            Space::Global => "global",
            Space::Shared => "shared",
            Space::Local => "local",
            Space::Const => "const",
            Space::Param => "param",
        })
    }
}

/// The allocation at or nearest to an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Near {
    /// Rank that owns the allocation.
    pub rank: usize,
    /// Label that the host gave.
    pub label: Arc<str>,
    /// Address minus the allocation's first address.
    pub offset: i64,
    /// Bytes of the allocation.
    pub len: u64,
    /// It has been freed.
    pub freed: bool,
}

impl fmt::Display for Near {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let freed = if self.freed { "freed " } else { "" };
        write!(
            f,
            "byte {} of {freed}`{}` of rank {} ({} bytes)",
            self.offset, self.label, self.rank, self.len
        )
    }
}

/// An access that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadAccess {
    /// Instruction and thread; `None` for an access by the host.
    pub place: Option<FaultPlace>,
    /// Load, store or atomic.
    pub kind: AccessKind,
    /// State space after resolving generic addresses.
    pub space: Space,
    /// First address, in that space.
    pub address: u64,
    /// Bytes accessed.
    pub bytes: u64,
    /// Nearest allocation, for memory of ranks.
    pub near: Option<Near>,
}

impl fmt::Display for BadAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} bytes at {} address {:#x}", self.kind, self.bytes, self.space, self.address)?;
        if let Some(near) = &self.near {
            write!(f, ", {near}")?;
        }
        match &self.place {
            Some(place) => write!(f, "; {place}"),
            None => f.write_str("; by the host"),
        }
    }
}
