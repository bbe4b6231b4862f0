//! Failed calls in the program's terms: statements instead of instructions, counters instead of addresses.

use crate::chain::LOCAL_COPY;
use crate::communicator::{COUNTERS, FIFOS, SCRATCH, window_label};
use crate::driver::CudaError;
use crate::flight::Batch;
use crate::kernel::Loaded;
use crate::launch::{Queued, Signature};
use quadrille_compiler::abi::{CounterKind, CounterLayout, CounterPart, FifoLayout, StatusRecord};
use quadrille_compiler::ids::{Buffer, Place, Rank, ThreadBlock};
use quadrille_vgpu::{AccessKind, BadAccess, Fault, Near, Party, Polled, SourceLine, Waiting, WaitsFor};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// Why calls failed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Failure {
    /// What happened.
    pub cause: Cause,
    /// What each rank called at that point, where they do not all call the same; else empty.
    pub calls: Vec<(Rank, Signature)>,
}

/// What happened.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Cause {
    /// A start signal showed that a peer calls something else. Nothing of that peer has been touched.
    Mismatch {
        /// Where the signal was met.
        at: At,
        /// What that rank called.
        own: Box<Signature>,
        /// The rank whose start signal it is.
        peer: Rank,
        /// What that rank called; `None` if none of its calls has the hash that it sent.
        theirs: Option<Box<Signature>>,
    },
    /// The virtual GPUs stopped without a reason given.
    Stopped,
    /// A kernel gave up for a reason that this version does not know.
    Status {
        /// What it recorded.
        record: StatusRecord,
    },
    /// Nothing can go on: every thread block that has not ended waits.
    Hang {
        /// The waiting blocks, by rank and block.
        waiting: Vec<Wait>,
    },
    /// Two accesses to the same bytes, at least one of them a store, that nothing puts in order; or a store over a
    /// packet whose reader may not be done with it.
    Race {
        /// The earlier one in this run.
        first: Access,
        /// The later one.
        second: Access,
        /// The buffer, if it is one.
        target: Option<Target>,
        /// What the virtual GPUs say.
        fault: Box<Fault>,
    },
    /// The driver reports that a kernel failed, or fails itself.
    Driver {
        /// What it says.
        error: CudaError,
    },
    /// A kernel did what it must not.
    Kernel {
        /// Where, if it was in a kernel.
        at: Option<At>,
        /// The buffer that was accessed, if one was.
        target: Option<Target>,
        /// What the virtual GPUs say.
        fault: Box<Fault>,
    },
}

/// A place in a call.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct At {
    /// Whose kernel.
    pub rank: Rank,
    /// Which thread block of it.
    pub block: ThreadBlock,
    /// What it executes, in the program's terms; `None` outside the program's steps.
    pub statement: Option<String>,
    /// The line of the CUDA text, from 1; `None` if unknown.
    pub line: Option<u32>,
}

/// An access of a kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Access {
    /// Where.
    pub at: At,
    /// Load, store or atomic.
    pub kind: AccessKind,
}

/// A thread block that waits.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Wait {
    /// Where it waits.
    pub at: At,
    /// For what.
    pub waits_for: Awaited,
}

/// What a thread block waits for.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[non_exhaustive]
pub enum Awaited {
    /// A signal of a peer.
    Signal {
        /// Which counter.
        kind: CounterKind,
        /// Who signals: a rank and its block.
        from: Place,
    },
    /// A message or a credit of a peer.
    Fifo {
        /// What is waited for: `message`, `credit`, .., or the lines of `LL` or `LL128`.
        what: &'static str,
        /// The rank at the other end.
        peer: Rank,
        /// The FIFO's number among those of the protocol between the two.
        number: u32,
    },
    /// The other threads of its block.
    BlockSync,
    /// An address in no allocation.
    Address {
        /// The address.
        address: u64,
    },
    /// Memory that is no flag, by the virtual GPU's name for it.
    Memory {
        /// Whose memory.
        rank: Rank,
        /// The allocation's label.
        label: String,
        /// Byte in it.
        offset: i64,
    },
    /// The other threads of its warp.
    Lanes,
}

/// Bytes of a call's buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Target {
    /// Whose buffer.
    pub rank: Rank,
    /// Which.
    pub buffer: Buffer,
    /// The element, from the buffer's begin; negative before it.
    pub element: i64,
    /// Elements of the buffer.
    pub elements: u64,
}

/// Finds out what went wrong. Of `batches` all calls were launched, and some ended; `record` is the first status
/// record, with the index of its batch.
pub(crate) fn explain(
    (layout, fifos): (CounterLayout, FifoLayout),
    batches: &[Batch],
    record: Option<(usize, StatusRecord)>,
    fault: Option<Fault>,
) -> Failure {
    let context = Context { layout, fifos, batches };
    let cause = match (record, fault) {
        (Some((batch, record)), _) => context.mismatch(&batches[batch], record),
        (None, Some(Fault::Hang { waiting })) => context.hang(&waiting),
        (None, Some(Fault::Race(race))) => {
            let parties = [&race.first, &race.second];
            context.race(parties, race.near.as_ref(), Fault::Race(race.clone()))
        }
        (None, Some(Fault::SlotReuse(reuse))) => {
            let parties = [&reuse.first, &reuse.second];
            context.race(parties, reuse.near.as_ref(), Fault::SlotReuse(reuse.clone()))
        }
        (None, Some(fault)) => context.kernel(fault),
        (None, None) => Cause::Stopped,
    };
    Failure { cause, calls: context.differing() }
}

struct Context<'a> {
    layout: CounterLayout,
    fifos: FifoLayout,
    batches: &'a [Batch],
}

impl Context<'_> {
    fn calls(&self, rank: Rank) -> impl Iterator<Item = &Queued> {
        self.batches.iter().filter_map(move |batch| batch.calls.get(rank.0 as usize)).flatten()
    }

    /// What the ranks called, at the first position where they do not all call the same.
    fn differing(&self) -> Vec<(Rank, Signature)> {
        for batch in self.batches {
            let most = batch.calls.iter().map(Vec::len).min().unwrap_or(0);
            for number in 0..most {
                let signatures: Vec<_> = batch.calls.iter().map(|calls| calls[number].signature()).collect();
                if signatures.iter().any(|signature| *signature != signatures[0]) {
                    return (0..).map(Rank).zip(signatures).collect();
                }
            }
        }
        Vec::new()
    }

    /// A place in a kernel's text. The innermost line that belongs to a step counts: what a step calls is inlined
    /// into it.
    fn at(&self, rank: usize, block: [u32; 3], source: Option<&SourceLine>) -> At {
        let rank = Rank(rank as u32);
        let mut at = At { rank, block: ThreadBlock(block[0]), statement: None, line: source.map(|s| s.line) };
        let found = source.and_then(|source| {
            let line = |program: &Arc<Loaded>| Some((program.clone(), program.step_line(source)?.line));
            self.calls(rank).find_map(|call| line(&call.program))
        });
        if let Some((program, line)) = found {
            at.statement = program.cuda.what(line).map(str::to_owned);
            at.line = Some(line);
        }
        if at.statement.is_none() {
            // Device code that was called, and it is not known from where.
            let within = |program: &&Loaded| source.is_some_and(|source| program.wrote(source));
            let program = self.calls(rank).map(|call| &*call.program).find(within);
            at.statement = program.and_then(|program| program.only_statement().map(str::to_owned));
        }
        at
    }

    fn mismatch(&self, batch: &Batch, record: StatusRecord) -> Cause {
        let (rank, peer) = (Rank(record.rank), Rank(record.peer));
        let of = |rank: Rank| batch.calls.get(rank.0 as usize).into_iter().flatten();
        // The same position of both ranks where it fits: equal calls have equal hashes.
        let own = of(rank).position(|call| call.hash() == record.wanted);
        let theirs = own.and_then(|number| of(peer).nth(number)).filter(|call| call.hash() == record.seen);
        let theirs = theirs.or_else(|| of(peer).find(|call| call.hash() == record.seen));
        let own = own.and_then(|number| of(rank).nth(number)).or_else(|| of(rank).next());
        let place = Place { rank, block: ThreadBlock(record.block) };
        let step = own.and_then(|call| call.program.cuda.step(place, record.step));
        let at = At {
            rank,
            block: place.block,
            statement: step.map(|step| step.what.clone()),
            line: step.map(|step| step.line),
        };
        match own {
            Some(own) if record.code == StatusRecord::MISMATCH => Cause::Mismatch {
                at,
                own: Box::new(own.signature()),
                peer,
                theirs: theirs.map(|call| Box::new(call.signature())),
            },
            _ => Cause::Status { record },
        }
    }

    /// The buffer that an access was meant for: the nearest allocation's, by the calls of its rank.
    fn target(&self, near: &Near) -> Option<Target> {
        let rank = Rank(near.rank as u32);
        // What users call says more of a buffer than what surrounds the calls.
        let users = |local| self.calls(rank).filter(move |call| (*call.program.name == *LOCAL_COPY) == local);
        users(false).chain(users(true)).find_map(|call| {
            let shape = &call.program.shape;
            let size = call.program.cuda.dtype.bytes() as i64;
            let element = |start: u64| (near.offset - start as i64).div_euclid(size);
            if *near.label == *SCRATCH {
                let elements = call.scratch_bytes() / size as u64;
                return Some(Target { rank, buffer: Buffer::Scratch, element: element(0), elements });
            }
            let (buffer, start) = call.buffers().find_map(|(buffer, view)| {
                let window = view.window().filter(|&window| *near.label == *window_label(window))?;
                Some((buffer, view.start_in(window)?))
            })?;
            let elements = u64::from(shape.units(buffer, rank)) * call.count;
            Some(Target { rank, buffer, element: element(start), elements })
        })
    }
}

impl Context<'_> {
    fn hang(&self, waiting: &[Waiting]) -> Cause {
        // Warps of a block mostly wait for the same; each wait is told once.
        let mut waits = BTreeSet::new();
        for warp in waiting {
            let at = |place: &quadrille_vgpu::Place| self.at(warp.rank, warp.block, place.source.as_ref());
            for what in &warp.for_what {
                match what {
                    WaitsFor::Memory(polled) => waits
                        .extend(polled.iter().map(|p| Wait { at: at(&p.place), waits_for: self.awaited(p) })),
                    WaitsFor::Barrier { place, .. } => {
                        waits.insert(Wait { at: at(place), waits_for: Awaited::BlockSync });
                    }
                    WaitsFor::Lanes { place, .. } => {
                        waits.insert(Wait { at: at(place), waits_for: Awaited::Lanes });
                    }
                }
            }
        }
        // Where threads of a block wait for a peer, the others wait for those threads.
        let for_peers: BTreeSet<_> =
            waits.iter().filter(|wait| wait.is_for_peer()).map(Wait::block).collect();
        let tells = |wait: &Wait| wait.is_for_peer() || !for_peers.contains(&wait.block());
        Cause::Hang { waiting: waits.into_iter().filter(tells).collect() }
    }

    fn awaited(&self, polled: &Polled) -> Awaited {
        let Some(near) = &polled.near else { return Awaited::Address { address: polled.address } };
        if *near.label == *COUNTERS
            && let Ok(offset) = u64::try_from(near.offset)
            && let Some((CounterPart::Flag, kind, from, _)) = self.layout.describe(offset)
        {
            return match kind {
                CounterKind::Message | CounterKind::Credit(_) => {
                    Awaited::Fifo { what: kind.name(), peer: from.rank, number: from.block.0 }
                }
                _ => Awaited::Signal { kind, from },
            };
        }
        if *near.label == *FIFOS
            && let Ok(offset) = u64::try_from(near.offset)
            && let Some((protocol, peer, number)) = self.fifos.describe(offset)
        {
            return Awaited::Fifo { what: protocol.name(), peer, number };
        }
        Awaited::Memory { rank: Rank(near.rank as u32), label: near.label.to_string(), offset: near.offset }
    }

    fn race(&self, parties: [&Party; 2], near: Option<&Near>, fault: Fault) -> Cause {
        let [first, second] = parties.map(|Party { place, kind, .. }| Access {
            at: self.at(place.rank, place.block, place.source.as_ref()),
            kind: *kind,
        });
        let target = near.and_then(|near| self.target(near));
        Cause::Race { first, second, target, fault: Box::new(fault) }
    }

    fn kernel(&self, fault: Fault) -> Cause {
        let access: Option<&BadAccess> = match &fault {
            Fault::OutOfBounds(access)
            | Fault::UseAfterFree(access)
            | Fault::Misaligned(access)
            | Fault::Uninitialized(access)
            | Fault::ReadOnly(access) => Some(access),
            _ => None,
        };
        let place = match &fault {
            Fault::Trap(place)
            | Fault::Divergent { place, .. }
            | Fault::Barrier { place, .. }
            | Fault::Value { place, .. }
            | Fault::CallDepth { place, .. } => Some(&**place),
            _ => access.and_then(|access| access.place.as_ref()),
        };
        let at = place.map(|place| self.at(place.rank, place.block, place.source.as_ref()));
        let target = access.and_then(|access| self.target(access.near.as_ref()?));
        Cause::Kernel { at, target, fault: Box::new(fault) }
    }
}

impl Wait {
    fn is_for_peer(&self) -> bool {
        matches!(self.waits_for, Awaited::Signal { .. } | Awaited::Fifo { .. })
    }

    fn block(&self) -> (Rank, ThreadBlock) {
        (self.at.rank, self.at.block)
    }
}

impl std::error::Error for Failure {}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.cause {
            Cause::Mismatch { at, own, peer, theirs } => {
                write!(f, "the ranks call different things: rank {} calls {own}", at.rank.0)?;
                match theirs {
                    Some(theirs) => write!(f, ", but rank {} calls {theirs}", peer.0)?,
                    None => write!(f, ", but rank {} something else", peer.0)?,
                }
                write!(f, "\n  found by {at}")?;
            }
            Cause::Driver { error } => write!(f, "calls were running when this failed: {error}")?,
            Cause::Status { record } => {
                let StatusRecord { code, rank, block, step, .. } = record;
                write!(f, "rank {rank}, block {block}, step {step} gave up with unknown code {code}")?;
            }
            Cause::Stopped => f.write_str("the virtual GPUs stopped before the calls had ended")?,
            Cause::Hang { waiting } => {
                f.write_str("nothing can go on: every thread block that has not ended waits")?;
                for wait in waiting.iter().take(SHOWN) {
                    write!(f, "\n  {wait}")?;
                }
                if let Some(more @ 1..) = waiting.len().checked_sub(SHOWN) {
                    write!(f, "\n  and {more} more")?;
                }
            }
            Cause::Race { first, second, target, fault } => {
                match target {
                    Some(target) => write!(f, "a race for {target}")?,
                    None => f.write_str("a race")?,
                }
                write!(f, "\n  {second}\n  {first}, earlier\n  {fault}")?;
            }
            Cause::Kernel { at, target, fault } => {
                match at {
                    Some(at) => write!(f, "a kernel failed at {at}")?,
                    None => f.write_str("the calls failed")?,
                }
                if let Some(target) = target {
                    write!(f, "\n  {}: {target}", broken_rule(fault))?;
                }
                write!(f, "\n  {fault}")?;
            }
        }
        for (i, (rank, call)) in self.calls.iter().enumerate() {
            f.write_str(if i == 0 { "\nnote: the ranks do not all call the same" } else { "" })?;
            write!(f, "\n  rank {} calls {call}", rank.0)?;
        }
        let help = match &self.cause {
            Cause::Driver { .. } => {
                "the GPUs' contexts may be lost with it: end the process, and run the program under \
                 compute-sanitizer, or on virtual GPUs (`--world virtual --race-check`)"
            }
            _ if !self.calls.is_empty() => {
                "call the same collective with the same count, type and windows, in the same order, on every rank"
            }
            Cause::Mismatch { .. } => "make the same calls in the same order on every rank",
            Cause::Status { .. } => "the kernel is of a newer version: compile it with this one",
            Cause::Hang { .. } | Cause::Kernel { .. } | Cause::Race { .. } | Cause::Stopped => {
                "a proved collective does not do this: report it, with the program and `compile --emit schedule,cuda`"
            }
        };
        write!(f, "\nhelp: {help}")
    }
}

/// Most waits that are shown.
const SHOWN: usize = 32;

fn broken_rule(fault: &Fault) -> &'static str {
    match fault {
        Fault::OutOfBounds(_) => "it is outside every buffer",
        Fault::UseAfterFree(_) => "it has been freed",
        Fault::Misaligned(_) => "the access is misaligned",
        Fault::Uninitialized(_) => "it has not been written",
        _ => "it must not be accessed so",
    }
}

/// `rank 1, block 0, at `...` (line 120 of the CUDA text)`
impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {}, block {}", self.rank.0, self.block.0)?;
        match (&self.statement, self.line) {
            (Some(statement), _) => write!(f, ", at `{statement}`"),
            (None, Some(line)) => write!(f, ", at line {line} of the CUDA text"),
            (None, None) => Ok(()),
        }
    }
}

/// `a store by rank 1, block 0, at `...``
impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Access { at, kind } = self;
        write!(f, "a {kind} by {at}")
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, waits for {}", self.at, self.waits_for)
    }
}

impl fmt::Display for Awaited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Awaited::Signal { kind: CounterKind::Start, from } => {
                write!(f, "a start signal from rank {}", from.rank.0)
            }
            Awaited::Signal { kind, from } => {
                write!(f, "a {} signal from rank {}, block {}", kind.name(), from.rank.0, from.block.0)
            }
            Awaited::Fifo { what, peer, number } => {
                write!(f, "a {what} from rank {}, FIFO {number}", peer.0)
            }
            Awaited::BlockSync => f.write_str("the other threads of its block"),
            Awaited::Lanes => f.write_str("the other threads of its warp"),
            Awaited::Memory { rank, label, offset } => {
                write!(f, "byte {offset} of `{label}` of rank {} to change", rank.0)
            }
            Awaited::Address { address } => write!(f, "address {address:#x} to change"),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Target { rank, buffer, element, elements } = self;
        write!(f, "element {element} of `{buffer}` ({elements} elements) of rank {}", rank.0)
    }
}
