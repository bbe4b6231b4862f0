//! The schedule: the steps of every thread block of every rank, with all synchronization.
//!
//! Text form (`Display`; [`Schedule::parse`] reads it back):
//!
//! ```text
//! schedule ring: all_reduce, 2 ranks, 2 chunks, in place, block cap 32
//! r0.b0
//!   signal start r1.b0
//!   wait start r1.b0 >= 1
//!   reduce data[0][0] + data[1][0] -> data[0][0]    #0
//!   sync
//!   signal data r1.b0
//!   wait data r1.b0 >= 1
//!   copy data[0][0] -> data[1][0]    #1
//!   expect start r1.b0 += 1
//!   expect data r1.b0 += 1
//! ```
//!
//! A schedule that moves through FIFO slots, with `8 slots, tile 32768` in its first line:
//!
//! ```text
//! r0.b0
//!   wait credit r1.b0 >= -7
//!   copy data[0][0] -> slot r1.b0[0]    of #0
//!   sync
//!   signal message r1.b0
//! r1.b0
//!   wait message r0.b0 >= 1
//!   reduce data[1][0] + slot r0.b0[0] -> data[1][0]    #0
//!   sync
//!   signal credit r0.b0
//! ```
//!
//! Meaning: the blocks of all ranks run at once. Each block goes through its steps in order, and all its threads take
//! part in a step. A counter is the tuple (kind, writing block, waiting block); values count from the call's begin.
//! `signal` names the waiting blocks, `wait` the writing ones. The waits of one step are polled side by side and end with
//! a block-wide barrier; each signal of one step is stored by one thread. `sync` is a block-wide barrier. An `expect`
//! line says by how much the block raises its expectation of a counter when the call ends. `#3` names the program's operation that the step
//! carries out. `of #3` marks a step that only brings one of its sources, or takes its result away. A move between chunks
//! of scratch alone says `at 2`: the position in their unit of the chunks that lie there.
//!
//! With a tile, every block goes through its steps once for each tile. Chunks are moved tile by tile, signals are given
//! for each tile, and values waited for count from the tile's begin. Only starts are signalled and waited for once, before
//! the first tile. All blocks have as many tiles as the largest chunk; beyond a chunk's end a tile is empty.
//!
//! With instances there are as many copies of all blocks, each with counters and FIFOs of its own. A chunk is split into
//! equal parts, rounded up to 16 bytes, one for each instance. So no two instances touch the same bytes, and a proof of
//! one is a proof of all.
//!
//! `multimem data[..][3]` is chunk 3 of every rank, reached through the switch. As the only source the chunks arrive
//! combined; as the only destination each of them is stored to.
//!
//! `slot r1.b0[2]` is a *message*: as a destination, number 2 of this tile from this block to r1.b0; as a source, from r1.b0
//! to this block. It lies in a slot of the connection's FIFO, in the reading rank's memory. `LL r1.b0[2]` and
//! `LL128 r1.b0[2]` carry their flags with the data, and readers wait for them word by word; a `message` signal announces a
//! plain one. The slot of message n of a tile is free when the reader has signalled n + 1 credits less the number of slots.
//! So a value below 1 stands for a message of an earlier tile or call.
//!
//! Invariants, each with the check that enforces it:
//! 1. Blocks, chunks and counters exist. Slices of one move are equally long. Block 0 signals start counters, once. Every
//!    counter signalled is waited for, and every wait is for a value that is signalled (`form`).
//! 2. The moves compute the program, in any order that the waits allow (`translation`).
//! 3. Every wait ends, whatever the speeds of the blocks (`deadlock`).
//! 4. Two accesses to one location, one of them a store, are ordered (`data-race`). Only `wait` and `sync` order threads of
//!    one block, except that moves through lines of one protocol give the same part of a chunk to the same thread. A slot
//!    is stored to only when its last message has been read (`slot-reuse`).
//! 5. A peer's buffer is touched only between that peer's start, with an equal call, and its exit (`entry-exit`).
//! 6. At the end both sides of each counter have advanced by the same number, and no start signal is outstanding
//!    (`invariant`).
//! 7. A rank has at most as many blocks as can be resident (`residency`).

mod counter;
pub mod domain;
mod parse;
mod text;

pub use counter::{CounterKind, FIFOS, SLOTS};
pub use parse::ParseError;

use crate::options::Protocol;
use crate::program::OpId;
use crate::program::ids::{BlockId, Buffer, Rank, Slice, ThreadBlock};
use crate::program::kind::Shape;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// A schedule: the steps of every thread block of every rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// The collective's name.
    pub name: String,
    /// Kind, world size, chunks, placement.
    pub shape: Shape,
    /// The most blocks a rank may have. It decides where counters lie.
    pub block_cap: u32,
    /// The tile: bytes of a chunk that are moved at a time; `None` for the whole chunk.
    pub tile: Option<u64>,
    /// The slots of each connection's FIFO.
    pub slots: u32,
    /// The instances: copies of all blocks, each of which moves its part of every chunk.
    pub instances: u32,
    /// The thread blocks of each rank: `blocks[rank][block]`.
    pub blocks: Vec<Vec<Block>>,
}

/// A thread block of one rank: its steps.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Block {
    /// Its steps, in order.
    pub steps: Vec<Step>,
    /// The counters that it waits for, each with the amount by which the block raises its expectation when the call ends.
    pub expects: Vec<(Counter, u32)>,
}

/// A step of a thread block: an action, and the operation that it serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The action.
    pub action: Action,
    /// The operation of the program that a move serves, where known.
    pub origin: Option<OpId>,
    /// True for a move that brings a source of the operation, or takes its result away, and does not carry it out.
    pub transfer: bool,
}

impl Step {
    /// Makes a step that serves no operation.
    pub fn plain(action: Action) -> Step {
        Step { action, origin: None, transfer: false }
    }
}

/// The action of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Waits until every counter has reached its value; then all threads go on.
    Wait(Vec<Arrival>),
    /// Raises every counter by one.
    Signal(Vec<Counter>),
    /// Combines the sources in order (a copy if there is one) and stores the result to every destination.
    Move {
        /// The operands read.
        sources: Vec<Operand>,
        /// The operands stored.
        dests: Vec<Operand>,
        /// The position of the first chunk in its unit, which decides its size.
        position: u32,
    },
    /// Makes all threads of the block wait for each other.
    BlockSync,
}

/// Returns the operand that tells the size of a move: the first one that lies neither in scratch nor in a slot.
pub fn sizing(sources: &[Operand], dests: &[Operand]) -> Option<Slice> {
    let slices = sources.iter().chain(dests).filter_map(|operand| operand.slices().next());
    slices.into_iter().find(|slice| slice.buffer != Buffer::Scratch)
}

/// An operand of a move.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Operand {
    /// A slice of a rank's buffer.
    Memory(Slice),
    /// The message of one chunk.
    Message(FifoMessage),
    /// The same chunks of every rank's buffer, through the switch.
    Multicast(Multicast),
}

/// The same chunks of every rank's buffer, reached through the switch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Multicast {
    /// The buffer.
    pub buffer: Buffer,
    /// First chunk.
    pub start: u32,
    /// Number of chunks, at least 1.
    pub len: u32,
    /// World size.
    pub ranks: u32,
}

impl Multicast {
    /// Returns each rank's slice, in the order of the ranks.
    pub fn slices(&self) -> impl Iterator<Item = Slice> + use<> {
        let Multicast { buffer, start, len, ranks } = *self;
        (0..ranks).map(move |rank| Slice { buffer, rank: Rank(rank), start, len })
    }
}

impl Operand {
    /// Returns the slice, if it is one of a single rank.
    pub fn memory(&self) -> Option<&Slice> {
        match self {
            Operand::Memory(slice) => Some(slice),
            Operand::Message(_) | Operand::Multicast(_) => None,
        }
    }

    /// Returns the message, if it is one.
    pub fn message(&self) -> Option<&FifoMessage> {
        match self {
            Operand::Message(message) => Some(message),
            Operand::Memory(_) | Operand::Multicast(_) => None,
        }
    }

    /// Returns the slices that it stands for, rank by rank; none for a message.
    pub fn slices(&self) -> impl Iterator<Item = Slice> + use<> {
        let (slice, ranks) = match self {
            Operand::Memory(slice) => (*slice, slice.rank.0..slice.rank.0 + 1),
            Operand::Multicast(Multicast { buffer, start, len, ranks }) => {
                (Slice { buffer: *buffer, rank: Rank(0), start: *start, len: *len }, 0..*ranks)
            }
            Operand::Message(_) => (Slice { buffer: Buffer::Scratch, rank: Rank(0), start: 0, len: 1 }, 0..0),
        };
        ranks.map(move |rank| Slice { rank: Rank(rank), ..slice })
    }

    /// Returns the number of chunks moved.
    pub fn len(&self) -> u32 {
        match self {
            Operand::Memory(slice) => slice.len,
            Operand::Multicast(multicast) => multicast.len,
            Operand::Message(_) => 1,
        }
    }

    /// Returns false: an operand has at least one chunk.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns true if the two share memory within one tile.
    pub fn overlaps(&self, other: &Operand) -> bool {
        match (self, other) {
            (Operand::Message(a), Operand::Message(b)) => a == b,
            _ => self.slices().any(|a| other.slices().any(|b| a.overlaps(&b))),
        }
    }
}

/// A message: one chunk, or one tile of it, on its way through a FIFO slot.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FifoMessage {
    /// The connection, whose FIFO it goes through.
    pub connection: Connection,
    /// Its number in this tile, from 0.
    pub number: u32,
}

/// A connection: a FIFO from one thread block to another. Its slots lie in the memory of the reading rank.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Connection {
    /// The protocol, which decides how messages are laid out and announced.
    pub protocol: Protocol,
    /// The block that stores.
    pub writer: BlockId,
    /// The block that reads.
    pub reader: BlockId,
}

impl Connection {
    /// Returns the counter of the messages that have been read.
    pub fn credit(&self) -> Counter {
        Counter { kind: CounterKind::Credit(self.protocol), writer: self.reader, waiter: self.writer }
    }

    /// Returns the counter of the messages that have been stored; `None` where messages carry flags.
    pub fn announced(&self) -> Option<Counter> {
        let counter = Counter { kind: CounterKind::Message, writer: self.writer, waiter: self.reader };
        (self.protocol == Protocol::Simple).then_some(counter)
    }
}

impl Counter {
    /// Returns the connection whose messages or credits it counts.
    pub fn connection(&self) -> Option<Connection> {
        let Counter { kind, writer, waiter } = *self;
        match kind {
            CounterKind::Start | CounterKind::Data => None,
            CounterKind::Message => Some(Connection { protocol: Protocol::Simple, writer, reader: waiter }),
            CounterKind::Credit(protocol) => Some(Connection { protocol, writer: waiter, reader: writer }),
        }
    }
}

/// An arrival: a counter and the value that a block waits for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Arrival {
    /// The counter.
    pub counter: Counter,
    /// The value it must reach, counted from the tile's begin; at least 1, except for credits.
    pub value: i32,
}

/// A counter, which one thread block raises and another waits for. It lies in the waiter's memory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Counter {
    /// The events that it counts.
    pub kind: CounterKind,
    /// The block that signals.
    pub writer: BlockId,
    /// The block that waits.
    pub waiter: BlockId,
}

impl Schedule {
    /// Returns every block with its id, rank by rank.
    pub fn places(&self) -> impl Iterator<Item = (BlockId, &Block)> {
        self.blocks.iter().zip(0..).flat_map(|(blocks, rank)| {
            blocks
                .iter()
                .zip(0..)
                .map(move |(block, b)| (BlockId { rank: Rank(rank), block: ThreadBlock(b) }, block))
        })
    }

    /// Returns the block with the id `place`, if it exists.
    pub fn block(&self, place: BlockId) -> Option<&Block> {
        self.blocks.get(place.rank.0 as usize)?.get(place.block.0 as usize)
    }

    /// Counts the schedule's blocks, steps and connections.
    pub fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for connection in Fifos::of(self).0.keys() {
            totals.connections[connection.protocol as usize] += 1;
        }
        for (_, block) in self.places() {
            totals.blocks += 1;
            totals.steps += block.steps.len();
            for step in &block.steps {
                match &step.action {
                    Action::Wait(arrivals) => totals.waits += arrivals.len(),
                    Action::Signal(counters) => totals.signals += counters.len(),
                    Action::Move { .. } => totals.moves += 1,
                    Action::BlockSync => totals.syncs += 1,
                }
            }
        }
        totals
    }
}

impl Block {
    /// Returns the counters that the block with the id `own` signals or waits for, and the credits of its connections; with
    /// repetitions.
    pub fn counters(&self, own: BlockId) -> impl Iterator<Item = Counter> {
        self.steps.iter().flat_map(move |step| -> Vec<Counter> {
            match &step.action {
                Action::Wait(arrivals) => arrivals.iter().map(|arrival| arrival.counter).collect(),
                Action::Signal(counters) => counters.clone(),
                Action::Move { sources, dests, .. } => {
                    let messages = sources.iter().chain(dests).filter_map(Operand::message);
                    let ends = messages.filter(|m| [m.connection.writer, m.connection.reader].contains(&own));
                    ends.map(|message| message.connection.credit()).collect()
                }
                Action::BlockSync => Vec::new(),
            }
        })
    }
}

/// The FIFOs of a schedule's connections. Those of a protocol from one rank to another are numbered in the order of their
/// blocks.
#[derive(Clone, Debug, Default)]
pub struct Fifos(FxHashMap<Connection, u32>);

impl Fifos {
    /// Numbers the connections.
    pub fn of(schedule: &Schedule) -> Fifos {
        let ends = schedule.places().flat_map(|(place, block)| block.counters(place));
        let all: BTreeSet<_> = ends.filter_map(|counter| counter.connection()).collect();
        let mut next: FxHashMap<(Protocol, Rank, Rank), u32> = FxHashMap::default();
        let numbered = all.into_iter().map(|connection| {
            let Connection { protocol, writer, reader } = connection;
            let next = next.entry((protocol, writer.rank, reader.rank)).or_default();
            *next += 1;
            (connection, *next - 1)
        });
        Fifos(numbered.collect())
    }

    /// Returns the FIFO of a connection; 0 for one that the schedule does not have.
    pub fn number(&self, connection: &Connection) -> u32 {
        self.0.get(connection).copied().unwrap_or(0)
    }

    /// Returns the most FIFOs of a protocol from one rank to another.
    pub fn most(&self) -> u32 {
        self.0.values().max().map_or(0, |most| most + 1)
    }

    /// Returns true if there are no FIFOs.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Counts of a schedule's parts, over all ranks and blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Totals {
    /// Thread blocks.
    pub blocks: usize,
    /// Steps of all kinds.
    pub steps: usize,
    /// Copies and reductions.
    pub moves: usize,
    /// Counters waited for, over all waits.
    pub waits: usize,
    /// Counters raised, over all signals.
    pub signals: usize,
    /// Block-wide barriers that are steps of their own.
    pub syncs: usize,
    /// Connections of each protocol, in the order of [`Protocol::ALL`].
    pub connections: [usize; 3],
}

/// Returns the protocol whose lines a move goes through, if it does. Two such moves of one block give the same part of a
/// chunk to the same thread, so that nothing has to stand between them. Other moves map parts to threads by addresses.
pub fn lines(sources: &[Operand], dests: &[Operand]) -> Option<Protocol> {
    let protocols = sources.iter().chain(dests).filter_map(Operand::message).map(|m| m.connection.protocol);
    protocols.into_iter().find(|protocol| *protocol != Protocol::Simple)
}

/// Returns true if a move of these sources combines anything.
pub(crate) fn combines(sources: &[Operand]) -> bool {
    sources.len() > 1 || matches!(sources, [Operand::Multicast(_)])
}
