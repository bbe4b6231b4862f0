//! What can go wrong: in the text of a module, in the host's requests, and while kernels run.

use std::fmt;
use std::sync::Arc;

use crate::machine::hang::Waiting;

/// One thing wrong with a PTX text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("PTX line {line}: {kind}")]
pub struct PtxProblem {
    /// Line of the PTX text, from 1.
    pub line: u32,
    /// What is wrong.
    pub kind: PtxProblemKind,
}

/// Kinds of problems of a PTX text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PtxProblemKind {
    /// The text does not follow the grammar.
    #[error("expected {expected}, found `{found}`")]
    Syntax {
        /// What the grammar asks for here.
        expected: &'static str,
        /// The text that stands there.
        found: Box<str>,
    },
    /// A number that cannot be read or does not fit.
    #[error("`{text}` is not a number that fits here")]
    Number {
        /// The number as written.
        text: Box<str>,
    },
    /// An instruction, or a form of it, that the machine does not execute.
    #[error("instruction `{instruction}` is not supported: {reason}")]
    Unsupported {
        /// The instruction with its qualifiers.
        instruction: Box<str>,
        /// What about it is not supported.
        reason: &'static str,
    },
    /// A directive that the machine does not know.
    #[error("directive `{directive}` is not supported")]
    Directive {
        /// The directive as written.
        directive: Box<str>,
    },
    /// A name that nothing declares.
    #[error("`{name}` is not declared")]
    Undeclared {
        /// The name.
        name: Box<str>,
    },
    /// A name that is declared twice.
    #[error("`{name}` is declared twice")]
    Redeclared {
        /// The name.
        name: Box<str>,
    },
    /// An operand that does not fit its instruction.
    #[error("operand {index} of `{instruction}`: {reason}")]
    Operand {
        /// The instruction with its qualifiers.
        instruction: Box<str>,
        /// Position of the operand, from 1; the destination is the first.
        index: usize,
        /// Why it does not fit.
        reason: &'static str,
    },
    /// More of something than the machine admits.
    #[error("too many {what}: the limit is {limit}")]
    Limit {
        /// What there is too much of.
        what: &'static str,
        /// The most that is admitted.
        limit: u64,
    },
}

/// All problems found in a PTX text, in order of lines; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PtxError {
    /// The problems.
    pub problems: Vec<PtxProblem>,
}

impl fmt::Display for PtxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, problem) in self.problems.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for PtxError {}

/// A line of the source that the PTX was compiled from (`.file`, `.loc`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLine {
    /// File as the compiler was told it.
    pub file: Arc<str>,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1; 0 if unknown.
    pub column: u32,
    /// Where the function of this line was inlined or, in a fault, called from.
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

/// Which instruction of which thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
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

impl fmt::Display for Place {
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

/// What an access does.
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
    /// Whether it has been freed.
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
    pub place: Option<Place>,
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

/// Why a run or a request of the host failed.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// An address that belongs to no allocation.
    #[error("out of bounds: {0}")]
    OutOfBounds(Box<BadAccess>),
    /// An address of an allocation that the host has freed.
    #[error("use after free: {0}")]
    UseAfterFree(Box<BadAccess>),
    /// An address that is no multiple of the access's size.
    #[error("misaligned: {0}")]
    Misaligned(Box<BadAccess>),
    /// A read of bytes that nobody has written.
    #[error("uninitialized: {0}")]
    Uninitialized(Box<BadAccess>),
    /// A write to memory that kernels may only read.
    #[error("read-only: {0}")]
    ReadOnly(Box<BadAccess>),
    /// An address of a multicast range in an instruction other than `multimem`.
    #[error("multicast address: only `multimem` instructions may access it: {0}")]
    Multicast(Box<BadAccess>),
    /// A `multimem` instruction on an address outside all multicast ranges.
    #[error("no multicast address: {0}")]
    NotMulticast(Box<BadAccess>),
    /// An mbarrier used against its rules.
    #[error("mbarrier at shared address {address:#x}: {reason} ({value}); {place}")]
    Mbarrier {
        /// Instruction and thread.
        place: Box<Place>,
        /// Offset in the block's shared memory.
        address: u64,
        /// What is wrong.
        reason: &'static str,
        /// The count or phase that is wrong, or 0.
        value: i64,
    },
    /// An asynchronous copy used against its rules.
    #[error("asynchronous copy: {reason}; begun at {place}")]
    Copy {
        /// The instruction that began the copy, and its thread.
        place: Box<Place>,
        /// What is wrong.
        reason: &'static str,
    },
    /// Two accesses that nothing puts in order.
    #[error("data race on {0}")]
    Race(Box<crate::model::Race>),
    /// A packet that was written again before its reader was done with it.
    #[error("slot reuse of {0}")]
    SlotReuse(Box<crate::model::SlotReuse>),
    /// `trap`.
    #[error("trap: {0}")]
    Trap(Box<Place>),
    /// Threads of one warp wait for each other at different places.
    #[error(
        "threads {waiting:#010x} of a warp wait at `{instruction}` for threads {missing:#010x}, which {reason}; {place}"
    )]
    Divergent {
        /// The waiting thread of the lowest lane, and its instruction.
        place: Box<Place>,
        /// The instruction that waits.
        instruction: &'static str,
        /// Lanes that wait.
        waiting: u32,
        /// Lanes that do not come.
        missing: u32,
        /// Why they do not come.
        reason: &'static str,
    },
    /// A barrier used with two different thread counts, or more arrivals than it expects.
    #[error("barrier {barrier} {reason}: arrived {arrived}, expected {expected}; {place}")]
    Barrier {
        /// Instruction and thread.
        place: Box<Place>,
        /// Number of the barrier.
        barrier: u32,
        /// Threads that have arrived.
        arrived: u32,
        /// Threads that it waits for.
        expected: u32,
        /// What is wrong.
        reason: &'static str,
    },
    /// An operand whose value the instruction does not admit.
    #[error("{what} is {value}; {place}")]
    Value {
        /// Instruction and thread.
        place: Box<Place>,
        /// Which operand, and what it should be.
        what: &'static str,
        /// Its value.
        value: u64,
    },
    /// Nothing can go on any more.
    #[error("hang: every live warp waits\n{}", crate::machine::hang::render(waiting))]
    Hang {
        /// Every live warp.
        waiting: Vec<Waiting>,
    },
    /// More instructions than the host allows.
    #[error("stopped after {limit} instructions (the limit)")]
    InstructionLimit {
        /// The limit, in instructions of warps.
        limit: u64,
    },
    /// Calls nested too deep.
    #[error("calls nested deeper than {limit}, or with too many registers and local bytes; {place}")]
    CallDepth {
        /// Instruction and thread.
        place: Box<Place>,
        /// The limit.
        limit: usize,
    },
    /// A launch or another request of the host that cannot be served.
    #[error(transparent)]
    Request(#[from] RequestError),
}

/// A request of the host that cannot be served.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// No such rank.
    #[error("rank {rank} is not one of the machine's {ranks}")]
    Rank {
        /// The rank asked for.
        rank: usize,
        /// Ranks of the machine.
        ranks: usize,
    },
    /// No such kernel in the module.
    #[error("the module has no kernel `{kernel}`; it has {}", known.join(", "))]
    Kernel {
        /// The kernel asked for.
        kernel: String,
        /// Kernels of the module.
        known: Vec<String>,
    },
    /// Grid, block or shared memory outside what the machine admits.
    #[error("launch of `{kernel}`: {what} is {value}, at most {limit} and not 0 is admitted")]
    Shape {
        /// The kernel.
        kernel: String,
        /// Which extent.
        what: &'static str,
        /// Its value.
        value: u64,
        /// The most that is admitted.
        limit: u64,
    },
    /// Parameters that do not fit the kernel's declaration.
    #[error("kernel `{kernel}`: {what} is {given}, declared {declared}")]
    Params {
        /// The kernel.
        kernel: String,
        /// What differs.
        what: &'static str,
        /// As given.
        given: usize,
        /// As declared.
        declared: usize,
    },
    /// An alignment that is no power of two, or a size beyond a rank's memory.
    #[error("allocation `{label}` of {bytes} bytes aligned to {align}: {reason}")]
    Allocation {
        /// Label.
        label: String,
        /// Bytes.
        bytes: u64,
        /// Alignment.
        align: u64,
        /// What is wrong.
        reason: &'static str,
    },
    /// A second address that cannot be had.
    #[error("no alias of address {address:#x}: {reason}")]
    Alias {
        /// The address.
        address: u64,
        /// Why.
        reason: &'static str,
    },
    /// A check where it cannot be had.
    #[error("checks: {reason}")]
    Check {
        /// Why.
        reason: &'static str,
    },
    /// A multicast range that its members do not admit.
    #[error("multicast range `{label}` of {bytes} bytes: {reason}")]
    Multicast {
        /// Label.
        label: String,
        /// Bytes.
        bytes: u64,
        /// What is wrong.
        reason: &'static str,
    },
    /// A clock that cannot be had.
    #[error("clock: {reason}")]
    Clock {
        /// Why.
        reason: &'static str,
    },
    /// An address that does not begin a live allocation.
    #[error("address {address:#x} does not begin a live allocation")]
    Free {
        /// The address.
        address: u64,
    },
    /// No variable of that name.
    #[error("no variable `{name}` of a launched module on rank {rank}")]
    Variable {
        /// Rank.
        rank: usize,
        /// Name.
        name: String,
    },
}

impl Fault {
    /// Where it happened, for faults of one thread.
    pub(crate) fn place_mut(&mut self) -> Option<&mut Place> {
        match self {
            Fault::OutOfBounds(access)
            | Fault::UseAfterFree(access)
            | Fault::Misaligned(access)
            | Fault::Uninitialized(access)
            | Fault::ReadOnly(access)
            | Fault::Multicast(access)
            | Fault::NotMulticast(access) => access.place.as_mut(),
            Fault::Mbarrier { place, .. }
            | Fault::Copy { place, .. }
            | Fault::Trap(place)
            | Fault::Divergent { place, .. }
            | Fault::Barrier { place, .. }
            | Fault::Value { place, .. }
            | Fault::CallDepth { place, .. } => Some(place),
            Fault::Race(race) => Some(&mut race.second.place),
            Fault::SlotReuse(reuse) => Some(&mut reuse.second.place),
            Fault::Hang { .. } | Fault::InstructionLimit { .. } | Fault::Request(_) => None,
        }
    }
}
