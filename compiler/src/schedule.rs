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
//! Meaning: the blocks of all ranks run at once, each its steps in order, a step by all its threads. A counter is
//! the tuple (kind, writing block, waiting block); values count from the call's begin. `signal` names the waiting
//! blocks, `wait` the writing ones. Waits of one step are polled side by side and end with a block-wide barrier;
//! signals of one step are stored by one thread each. `sync` is a block-wide barrier. An `expect` line says by how
//! much the block raises what it expects of a counter when the call ends. `#3` names the program's operation. A move
//! between chunks of scratch alone says `at 2`, the position in their unit of what lies there.
//!
//! Invariants, each with the check that enforces it:
//! 1. Places, chunks and counters exist; slices of one move are equally long; start counters are signalled by block 0,
//!    once; every counter signalled is waited for, and every wait is for a value that is signalled (`form`).
//! 2. Replayed in any order that the waits allow, the moves compute the program (`translation`).
//! 3. Every wait ends, whatever the speeds of the blocks (`deadlock`).
//! 4. Two accesses to one location, one of them a store, are ordered (`data-race`). Threads of one block are ordered
//!    by `wait` and `sync` only.
//! 5. A peer's buffer is touched only between that peer's start, with an equal call, and its exit (`entry-exit`).
//! 6. At the end both sides of each counter have advanced by the same number, and no start signal is outstanding
//!    (`invariant`).
//! 7. A rank has at most as many blocks as can be resident (`residency`).

mod parse;

pub use crate::abi::CounterKind;
pub use parse::ParseError;

use crate::ids::{Buffer, Place, Rank, Slice, ThreadBlock};
use crate::kind::Shape;
use crate::program::{OpId, join};
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
    /// The operation of the program that a move carries out, where known.
    pub origin: Option<OpId>,
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
        sources: Vec<Slice>,
        /// What is stored.
        dests: Vec<Slice>,
        /// The position of the first chunk in its unit, on which its size depends.
        position: u32,
    },
    /// All threads of the block wait for each other.
    BlockSync,
}

/// The operand whose chunks tell the size of a move: the first one that does not lie in scratch.
pub fn sizing<'a>(sources: &'a [Slice], dests: &'a [Slice]) -> Option<&'a Slice> {
    sources.iter().chain(dests).find(|slice| slice.buffer != Buffer::Scratch)
}

/// A value waited for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Arrival {
    /// The counter.
    pub counter: Counter,
    /// The value it must reach, counted from the call's begin; at least 1.
    pub value: u32,
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
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "schedule {}: {}, block cap {}", self.name, self.shape, self.block_cap)?;
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
                f.write_str(if sources.len() == 1 { "copy " } else { "reduce " })?;
                join(f, sources, " + ")?;
                f.write_str(" -> ")?;
                join(f, dests, ", ")?;
                match sizing(sources, dests) {
                    Some(_) => Ok(()),
                    None => write!(f, " at {position}"),
                }
            }
            Action::BlockSync => f.write_str("sync"),
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
