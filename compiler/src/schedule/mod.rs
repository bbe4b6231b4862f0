//! IR 2: what every thread block of every rank does, step by step, with all synchronization explicit.
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
//! A schedule that moves through FIFO slots, `8 slots, tile 32768` in its first line:
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
//! Meaning: the blocks of all ranks run at once, each its steps in order, a step by all its threads. A counter is
//! the tuple (kind, writing block, waiting block); values count from the call's begin. `signal` names the waiting
//! blocks, `wait` the writing ones. Waits of one step are polled side by side and end with a block-wide barrier;
//! signals of one step are stored by one thread each. `sync` is a block-wide barrier. An `expect` line says by how
//! much the block raises what it expects of a counter when the call ends. `#3` names the program's operation, which the
//! step carries out; `of #3`, a step that only brings what it takes or takes away what it makes. A move
//! between chunks of scratch alone says `at 2`, the position in their unit of what lies there.
//!
//! With a tile every block goes through its steps once for each tile: chunks are moved tile by tile, signals are given
//! for each tile, and values waited for count from the tile's begin. Only starts are signalled and waited for once, before
//! the first tile. All blocks have as many tiles as the largest chunk; what is beyond a chunk's end is empty.
//!
//! With instances there are as many copies of all blocks, each with counters and FIFOs of its own. A chunk is split into equal
//! parts, rounded up to 16 bytes, one an instance; so no two instances touch the same bytes, and what is proved of one holds
//! of all.
//!
//! `multimem data[..][3]` are the same chunks of every rank, reached through the switch: as the only source they come
//! combined, as the only destination they are stored to everywhere.
//!
//! `slot r1.b0[2]` is a *message*: number 2 of this tile from this block to that one, in a slot of the connection's FIFO in
//! the reading rank's memory; as a source, from that block. `LL r1.b0[2]` and `LL128 r1.b0[2]` carry their flags with
//! the data, and are waited for word by word; a plain one is announced by a `message` signal. A slot is free again when
//! the reader has signalled as many credits as messages were stored before it, less the number of slots; so a value
//! below 1 stands for a message of an earlier tile or call.
//!
//! Invariants, each with the check that enforces it:
//! 1. Places, chunks and counters exist; slices of one move are equally long; start counters are signalled by block 0,
//!    once; every counter signalled is waited for, and every wait is for a value that is signalled (`form`).
//! 2. Replayed in any order that the waits allow, the moves compute the program (`translation`).
//! 3. Every wait ends, whatever the speeds of the blocks (`deadlock`).
//! 4. Two accesses to one location, one of them a store, are ordered (`data-race`). Threads of one block are ordered
//!    by `wait` and `sync` only, but that moves through lines of one protocol give equal parts of a chunk to equal threads.
//!    A slot is stored to only when its last message has been read (`slot-reuse`).
//! 5. A peer's buffer is touched only between that peer's start, with an equal call, and its exit (`entry-exit`).
//! 6. At the end both sides of each counter have advanced by the same number, and no start signal is outstanding
//!    (`invariant`).
//! 7. A rank has at most as many blocks as can be resident (`residency`).

mod counter;
pub mod domain;
mod parse;

pub use counter::{CounterKind, FIFOS, SLOTS};
pub use parse::ParseError;

use crate::options::Protocol;
use crate::program::ids::{Buffer, Place, Rank, Slice, ThreadBlock};
use crate::program::kind::Shape;
use crate::program::{OpId, join};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::fmt;

/// The schedule of all ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// The collective's name.
    pub name: String,
    /// Kind, world size, chunks, placement.
    pub shape: Shape,
    /// Most blocks a rank may have; fixes where counters lie.
    pub block_cap: u32,
    /// Bytes of a chunk that are moved at a time; `None`: all of it.
    pub tile: Option<u64>,
    /// Slots of each connection's FIFO.
    pub slots: u32,
    /// Copies of the blocks, each of which moves its part of every chunk.
    pub instances: u32,
    /// The thread blocks of each rank: `blocks[rank][block]`.
    pub blocks: Vec<Vec<Block>>,
}

/// One thread block of one rank.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Block {
    /// What it does, in order.
    pub steps: Vec<Step>,
    /// By how much it raises what it expects of each counter that it waits for, when the call ends.
    pub expects: Vec<(Counter, u32)>,
}

/// One step of a thread block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// What is done.
    pub action: Action,
    /// The operation of the program that a move serves, where known.
    pub origin: Option<OpId>,
    /// The move does not carry the operation out: it brings one of its sources, or takes away what it made.
    pub transfer: bool,
}

impl Step {
    /// A step of no operation.
    pub fn plain(action: Action) -> Step {
        Step { action, origin: None, transfer: false }
    }
}

/// What a step does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Wait until every counter has reached its value; then all threads go on.
    Wait(Vec<Arrival>),
    /// Raise every counter by one.
    Signal(Vec<Counter>),
    /// Combine the sources in order (a copy if there is one) and store the result to every destination.
    Move {
        /// What is read.
        sources: Vec<Operand>,
        /// What is stored.
        dests: Vec<Operand>,
        /// The position of the first chunk in its unit, on which its size depends.
        position: u32,
    },
    /// All threads of the block wait for each other.
    BlockSync,
}

/// The operand whose chunks tell the size of a move: the first one that does not lie in scratch or a slot.
pub fn sizing(sources: &[Operand], dests: &[Operand]) -> Option<Slice> {
    let slices = sources.iter().chain(dests).filter_map(|operand| operand.slices().next());
    slices.into_iter().find(|slice| slice.buffer != Buffer::Scratch)
}

/// What a move reads or stores.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Operand {
    /// Chunks of a rank's buffer.
    Memory(Slice),
    /// One chunk's message.
    Message(Message),
    /// Chunks of every rank's buffer, through the switch.
    Multicast(Multicast),
}

/// The same chunks of every rank's buffer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Multicast {
    /// Which buffer.
    pub buffer: Buffer,
    /// First chunk.
    pub start: u32,
    /// Number of chunks, at least 1.
    pub len: u32,
    /// World size.
    pub ranks: u32,
}

impl Multicast {
    /// Each rank's chunks, in the order of the ranks.
    pub fn slices(&self) -> impl Iterator<Item = Slice> + use<> {
        let Multicast { buffer, start, len, ranks } = *self;
        (0..ranks).map(move |rank| Slice { buffer, rank: Rank(rank), start, len })
    }
}

impl Operand {
    /// The chunks of one rank's buffer, if it is that.
    pub fn memory(&self) -> Option<&Slice> {
        match self {
            Operand::Memory(slice) => Some(slice),
            Operand::Message(_) | Operand::Multicast(_) => None,
        }
    }

    /// The message, if it is one.
    pub fn message(&self) -> Option<&Message> {
        match self {
            Operand::Message(message) => Some(message),
            Operand::Memory(_) | Operand::Multicast(_) => None,
        }
    }

    /// The chunks of buffers that it stands for, rank by rank; none for a message.
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

    /// Chunks moved.
    pub fn len(&self) -> u32 {
        match self {
            Operand::Memory(slice) => slice.len,
            Operand::Multicast(multicast) => multicast.len,
            Operand::Message(_) => 1,
        }
    }

    /// Never: an operand has at least one chunk.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the two share memory, seen from within one tile.
    pub fn overlaps(&self, other: &Operand) -> bool {
        match (self, other) {
            (Operand::Message(a), Operand::Message(b)) => a == b,
            _ => self.slices().any(|a| other.slices().any(|b| a.overlaps(&b))),
        }
    }
}

/// One chunk on its way through a slot.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Message {
    /// The FIFO.
    pub connection: Connection,
    /// Which one of this tile, from 0.
    pub number: u32,
}

/// A FIFO from one block to another; its slots lie in the memory of the reading rank.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Connection {
    /// How messages are laid out and announced.
    pub protocol: Protocol,
    /// The block that stores.
    pub writer: Place,
    /// The block that reads.
    pub reader: Place,
}

impl Connection {
    /// The counter of messages that have been read.
    pub fn credit(&self) -> Counter {
        Counter { kind: CounterKind::Credit(self.protocol), writer: self.reader, waiter: self.writer }
    }

    /// The counter of messages that have been stored; there is none where messages carry flags.
    pub fn announced(&self) -> Option<Counter> {
        let counter = Counter { kind: CounterKind::Message, writer: self.writer, waiter: self.reader };
        (self.protocol == Protocol::Simple).then_some(counter)
    }
}

impl Counter {
    /// The connection whose messages or credits it counts.
    pub fn connection(&self) -> Option<Connection> {
        let Counter { kind, writer, waiter } = *self;
        match kind {
            CounterKind::Start | CounterKind::Data => None,
            CounterKind::Message => Some(Connection { protocol: Protocol::Simple, writer, reader: waiter }),
            CounterKind::Credit(protocol) => Some(Connection { protocol, writer: waiter, reader: writer }),
        }
    }
}

/// A value waited for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Arrival {
    /// The counter.
    pub counter: Counter,
    /// The value it must reach, counted from the tile's begin: at least 1, but for credits.
    pub value: i32,
}

/// A counter: one writing block, one waiting block. It lies in the waiter's memory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Counter {
    /// What it counts.
    pub kind: CounterKind,
    /// The block that signals.
    pub writer: Place,
    /// The block that waits.
    pub waiter: Place,
}

impl Schedule {
    /// Every block with its place, rank by rank.
    pub fn places(&self) -> impl Iterator<Item = (Place, &Block)> {
        self.blocks.iter().zip(0..).flat_map(|(blocks, rank)| {
            blocks
                .iter()
                .zip(0..)
                .map(move |(block, b)| (Place { rank: Rank(rank), block: ThreadBlock(b) }, block))
        })
    }

    /// The block at `place`, if it exists.
    pub fn block(&self, place: Place) -> Option<&Block> {
        self.blocks.get(place.rank.0 as usize)?.get(place.block.0 as usize)
    }

    /// How much of what the schedule has.
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
    /// The counters that the block at `own` signals or waits for, or whose connections it stores to or reads from; with
    /// repetitions.
    pub fn counters(&self, own: Place) -> impl Iterator<Item = Counter> {
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

/// The FIFOs of a schedule's connections: those of a protocol from one rank to another are numbered through, in the order of
/// their blocks.
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

    /// The FIFO of a connection, 0 for one that the schedule does not have.
    pub fn number(&self, connection: &Connection) -> u32 {
        self.0.get(connection).copied().unwrap_or(0)
    }

    /// How many there are of each protocol from one rank to another at most.
    pub fn most(&self) -> u32 {
        self.0.values().max().map_or(0, |most| most + 1)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Counts over all ranks and blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Totals {
    /// Thread blocks.
    pub blocks: usize,
    /// Steps of every sort.
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

/// The protocol whose lines a move goes through, if it does. Two such moves of one block give the same part of a chunk to
/// the same thread, so that nothing has to stand between them; others map parts to threads by their addresses.
pub fn lines(sources: &[Operand], dests: &[Operand]) -> Option<Protocol> {
    let protocols = sources.iter().chain(dests).filter_map(Operand::message).map(|m| m.connection.protocol);
    protocols.into_iter().find(|protocol| *protocol != Protocol::Simple)
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "schedule {}: {}", self.name, self.shape)?;
        if let Some(tile) = self.tile {
            write!(f, ", {} slots, tile {tile}", self.slots)?;
        }
        if self.instances > 1 {
            write!(f, ", {} instances", self.instances)?;
        }
        writeln!(f, ", block cap {}", self.block_cap)?;
        for (place, block) in self.places() {
            writeln!(f, "{place}")?;
            for step in &block.steps {
                writeln!(f, "  {step}")?;
            }
            for (counter, by) in &block.expects {
                writeln!(f, "  expect {} {} += {by}", counter.kind.name(), counter.writer)?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.action.fmt(f)?;
        match self.origin {
            Some(op) if self.transfer => write!(f, "    of {op}"),
            Some(op) => write!(f, "    {op}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Action::Wait(arrivals) => {
                f.write_str("wait ")?;
                join(f, arrivals, ", ")
            }
            Action::Signal(counters) => {
                f.write_str("signal ")?;
                for (i, counter) in counters.iter().enumerate() {
                    let comma = if i > 0 { ", " } else { "" };
                    write!(f, "{comma}{} {}", counter.kind.name(), counter.waiter)?;
                }
                Ok(())
            }
            Action::Move { sources, dests, position } => {
                f.write_str(if combines(sources) { "reduce " } else { "copy " })?;
                join(f, &ends(sources, |connection| connection.writer), " + ")?;
                f.write_str(" -> ")?;
                join(f, &ends(dests, |connection| connection.reader), ", ")?;
                match sizing(sources, dests) {
                    Some(_) => Ok(()),
                    None => write!(f, " at {position}"),
                }
            }
            Action::BlockSync => f.write_str("sync"),
        }
    }
}

/// Whether a move of these sources combines anything.
pub(crate) fn combines(sources: &[Operand]) -> bool {
    sources.len() > 1 || matches!(sources, [Operand::Multicast(_)])
}

/// Operands as a block names them: messages by the block at the other end.
fn ends(operands: &[Operand], peer: impl Fn(&Connection) -> Place) -> Vec<String> {
    let name = |operand: &Operand| match operand {
        Operand::Memory(_) | Operand::Multicast(_) => operand.to_string(),
        Operand::Message(Message { connection, number }) => {
            format!("{} {}[{number}]", slot_word(connection.protocol), peer(connection))
        }
    };
    operands.iter().map(name).collect()
}

/// What a message of a protocol is called.
fn slot_word(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Simple => "slot",
        Protocol::Ll | Protocol::Ll128 => protocol.name(),
    }
}

/// In full, for messages: `slot r0.b0 -> r1.b0`.
impl fmt::Display for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} -> {}", slot_word(self.protocol), self.writer, self.reader)
    }
}

/// In full, for messages: `slot r0.b0 -> r1.b0 [2]`.
impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} [{}]", self.connection, self.number)
    }
}

impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Operand::Memory(slice) => slice.fmt(f),
            Operand::Message(message) => message.fmt(f),
            Operand::Multicast(Multicast { buffer, start, len: 1, .. }) => {
                write!(f, "multimem {buffer}[..][{start}]")
            }
            Operand::Multicast(Multicast { buffer, start, len, .. }) => {
                write!(f, "multimem {buffer}[..][{start}..{}]", start + len)
            }
        }
    }
}

impl fmt::Display for Arrival {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} >= {}", self.counter.kind.name(), self.counter.writer, self.value)
    }
}

/// In full, for messages: `data r0.b0 -> r1.b0`.
impl fmt::Display for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} -> {}", self.kind.name(), self.writer, self.waiter)
    }
}
