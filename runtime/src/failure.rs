//! Failed calls in the program's terms: statements instead of instructions, counters instead of addresses.

use crate::communicator::{COUNTERS, Group, window_label};
use crate::error::ranks;
use crate::kernel::Loaded;
use crate::launch::{Batch, Queued, Signature};
use crate::world::Shared;
use quadrille_compiler::abi::{CounterKind, CounterLayout, CounterPart, StatusRecord};
use quadrille_compiler::ids::{Buffer, Place, Rank, ThreadBlock};
use quadrille_vgpu::{Fault, Near, SourceLine};
use std::collections::BTreeMap;
use std::fmt;

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
    /// Nothing can go on: every thread block that has not ended waits.
    Hang {
        /// The waiting blocks, by rank and block.
        waiting: Vec<Wait>,
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
    /// The other threads of its block.
    BlockSync,
    /// Memory that is no flag, by the virtual GPU's name for it.
    Memory {
        /// Whose memory.
        rank: Rank,
        /// The allocation's label.
        label: String,
        /// Byte in it.
        offset: i64,
    },
    /// Something else, in the virtual GPU's words.
    Other {
        /// Its words.
        what: String,
    },
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
    shared: &Shared,
    groups: &BTreeMap<u64, Group>,
    batches: &[Batch],
    record: Option<(usize, StatusRecord)>,
    fault: Option<Fault>,
) -> Failure {
    let context = Context { layout: shared.counter_layout(), groups, batches };
    let cause = match (record, fault) {
        (Some((batch, record)), _) => context.mismatch(&batches[batch], record),
        (None, Some(Fault::Hang { waiting })) => context.hang(&waiting),
        (None, fault) => context.kernel(fault),
    };
    Failure { cause, calls: context.differing() }
}

struct Context<'a> {
    layout: CounterLayout,
    groups: &'a BTreeMap<u64, Group>,
    batches: &'a [Batch],
}

impl Context<'_> {
    fn calls(&self, rank: Rank) -> impl Iterator<Item = (&Batch, &Queued)> {
        let of = move |batch: &'_ Batch| batch.calls.get(rank.0 as usize);
        self.batches.iter().flat_map(move |batch| of(batch).into_iter().flatten().map(move |call| (batch, call)))
    }

    /// What the ranks called, at the first position where they do not all call the same.
    fn differing(&self) -> Vec<(Rank, Signature)> {
        for batch in self.batches {
            for number in 0..batch.calls[0].len() {
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
        let mut next = source;
        while let Some(source) = next {
            let mut programs = self.calls(rank).map(|(_, call)| &*call.program);
            let program = programs.find(|program: &&Loaded| *program.file == *source.file);
            if let Some(what) = program.and_then(|program| program.cuda.what(source.line)) {
                at.statement = Some(what.to_owned());
                at.line = Some(source.line);
                break;
            }
            next = source.inlined_at.as_deref();
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
        let at = At { rank, block: ThreadBlock(record.block), statement: None, line: None };
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
        self.calls(rank).find_map(|(_, call)| {
            let shape = &call.program.shape;
            let size = call.program.cuda.dtype.bytes() as i64;
            let (buffer, view) = call.buffers().find(|(_, view)| *near.label == *window_label(view.window))?;
            let elements = u64::from(shape.units(buffer, rank)) * call.count;
            Some(Target { rank, buffer, element: (near.offset - view.start as i64).div_euclid(size), elements })
        })
    }
}
