//! A plan whose names are resolved: what each thread block does, with which chunks and counters.

use super::document::Document;
use super::lane::Lane;
use crate::diagnostic::{Diagnostic, Loc};
use crate::program::dtype::RedOp;
use crate::program::ids::{BlockId, Buffer, Rank};
use std::ops::Range;

/// A file whose names are resolved.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) document: Document,
    /// Chunks of a unit, after groups of thread blocks have split them.
    pub(super) unit_chunks: u32,
    /// Parts of each chunk of the file, which are the chunks here.
    pub(super) parts: u32,
    /// Chunks of scratch that are used plainly.
    pub(super) scratch: u32,
    /// Bytes of a pipeline's unit.
    pub(super) unit: Option<u64>,
    /// How the file says that it combines, and where.
    pub(super) combines: Option<(RedOp, Loc)>,
    pub(super) acts: Vec<Act>,
    /// The acts of each block, with the block.
    pub(super) blocks: Vec<(BlockId, Range<usize>)>,
    pub(super) counters: Vec<Counter>,
}

impl Plan {
    /// The findings, with what their chunks are in the file.
    pub(super) fn named(&self, findings: Vec<Diagnostic>) -> Vec<Diagnostic> {
        let parts = self.parts;
        let name = |found: Diagnostic| {
            match parts {
            1 => found,
            _ => found.note(format!(
                "groups of thread blocks split each chunk of the plan into {parts} parts: chunk c here is part c % {parts} of \
                 the plan's chunk c / {parts}"
            )),
        }
        };
        findings.into_iter().map(name).collect()
    }
}

/// The action of a thread block at one point.
#[derive(Debug)]
pub(super) struct Act {
    /// The index of its block in [`Plan::blocks`].
    pub(super) block: usize,
    pub(super) loc: Loc,
    pub(super) text: String,
    pub(super) what: What,
}

#[derive(Debug)]
pub(super) enum What {
    /// All threads of the block wait for each other.
    Sync,
    /// Raises counters, each by one thread.
    Post(Vec<Tick>),
    /// Waits until counters have been raised once more, each by one thread.
    Await(Vec<Tick>),
    /// Waits, by one thread, until what has been put by port on these channels has been moved.
    Flush { channels: Vec<u32>, thread: Option<u32> },
    /// Moves chunks.
    Move(Vec<Chunk>),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Tick {
    pub(super) counter: u32,
    /// It orders nothing.
    pub(super) relaxed: bool,
    /// The thread; all of the block's where it is a barrier.
    pub(super) thread: Option<u32>,
    /// After all that the block has moved by port.
    pub(super) port: bool,
}

/// One chunk's move.
#[derive(Debug)]
pub(super) struct Chunk {
    pub(super) sources: Vec<End>,
    pub(super) dests: Vec<End>,
    /// Through the switch where it can be.
    pub(super) switch: bool,
    /// By accesses of the switch: strong ones at system scope, which relaxed signals keep in order.
    pub(super) strong: bool,
    /// The channels by port that carry it, by their places in the block's list.
    pub(super) ports: Vec<u32>,
    pub(super) lane: Lane,
    pub(super) loc: Loc,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum End {
    Plain(At),
    Packet(At),
}

/// A chunk as files name it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct At {
    pub(super) rank: Rank,
    pub(super) buffer: Buffer,
    pub(super) chunk: u32,
}

/// The things that are counted.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) enum Counter {
    /// The n-th channel from one GPU to another.
    Channel {
        port: bool,
        from: u32,
        to: u32,
        nth: u32,
    },
    Semaphore {
        gpu: u32,
        id: u32,
        initial: u32,
    },
    /// Arrivals at the barrier; of one block, which `by` waits for.
    Barrier {
        gpu: u32,
        id: u32,
        of: u32,
        by: u32,
    },
}

impl Counter {
    /// The value at first.
    pub(super) fn initial(&self) -> u32 {
        match self {
            Counter::Semaphore { initial, .. } => *initial,
            _ => 0,
        }
    }

    pub(super) fn name(&self) -> String {
        match self {
            Counter::Channel { port, from, to, nth } => {
                let sort = if *port { "port" } else { "memory" };
                format!("{sort} channel {nth} from gpu {from} to gpu {to}")
            }
            Counter::Semaphore { gpu, id, .. } => format!("semaphore {id} of gpu {gpu}"),
            Counter::Barrier { gpu, id, of, .. } => format!("tb {of} at barrier {id} of gpu {gpu}"),
        }
    }
}
