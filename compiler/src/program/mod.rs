//! The program: the chunk operations of all ranks, which mean what they do when they run one after the other.
//!
//! Text form (`Display`), one operation a line, each with its statement and iteration:
//!
//! ```text
//! program ring_all_reduce: all_reduce, 2 ranks, 2 chunks, in place
//! statement 0 at 12:13: data[to][c] += data[from][c];
//! statement 1 at 16:13: data[to][c] = data[from][c];
//!   0 data[0][0] = data[0][0] + data[1][0]    # 0: c = 0, hop = 1
//! ```
//!
//! Meaning: an operation reads all its sources, combines them left to right with the call's operator, rounds once, and
//! stores the result to every destination. Chunk i of every slice goes with chunk i of the others.
//!
//! Invariants, each with the check that enforces it:
//! 1. Slices lie inside their buffers. The slices of one operation have equal lengths (`out-of-bounds`).
//! 2. A destination equals a source or is disjoint from it. Destinations are pairwise disjoint (`overlap`).
//! 3. Chunks that meet in one operation have the same position, index mod C, unless counts are divisible
//!    (`chunk-position`). A chunk of scratch has the position of the chunk that was stored there last.
//! 4. Every chunk read holds a value (`read-before-write`).
//! 5. `input` is never stored to (`input-overwritten`).
//! 6. At the end every output chunk holds what its kind demands (`postcondition`).

pub mod contract;
pub mod dtype;
pub mod ids;
pub mod kind;
pub mod location;
pub(crate) mod positions;
mod raw;
mod scaling;
mod setting;
pub(crate) mod transport;

pub use raw::{RawSite, RawSlice};
pub use scaling::Scaling;
pub use setting::ProgramSetting;

use crate::diagnostic::{DiagnosticContext, Loc, SourceFile};
use crate::options::StatementOptions;
use crate::program::contract::Contract;
use crate::program::ids::{Buffer, Rank, Slice, ThreadBlock};
use crate::program::kind::{Expected, Shape};
use smallvec::SmallVec;
use std::fmt;

/// A collective's program for one world size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The collective's name.
    pub name: String,
    /// Kind, world size, chunks, placement.
    pub shape: Shape,
    /// The values of the collective's parameters, in the order of its attribute.
    pub params: Vec<(String, i64)>,
    /// Counts are promised to be divisible by C, so that all chunks are equally long.
    pub divisible: bool,
    /// Results are promised to depend on neither rank, message size nor schedule.
    pub reproducible: bool,
    /// The promises of a custom collective; none for any other kind.
    pub contract: Option<Contract>,
    /// The number of chunks at the end of scratch that stand for messages, for an imported plan: its schedule has
    /// messages in their place, and no such chunks. `None` for programs that are lowered.
    pub in_flight: Option<u32>,
    /// The text that locations point into.
    pub source: SourceFile,
    /// The location of the collective's name.
    pub name_loc: Loc,
    /// The statements of the source that move data, in source order.
    pub statements: Vec<Statement>,
    /// The operations, in execution order.
    pub ops: Vec<Op>,
    /// The iterations that the operations belong to.
    pub trails: Trails,
}

/// A statement of the source: an assignment, which may run often.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// Its location, with its semicolon.
    pub loc: Loc,
    /// Its text, white space folded to single blanks.
    pub text: String,
    /// Its options.
    pub how: StatementOptions,
}

/// Index of a statement in [`Program::statements`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct StatementId(pub u32);

/// Index of an operation in [`Program::ops`]. Text form `#12`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct OpId(pub u32);

/// An operation: one run of a statement, which copies one source or combines several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Op {
    /// Its statement.
    pub statement: StatementId,
    /// The iteration that ran the statement.
    pub trail: TrailId,
    /// The slices read, in the order of combination; at least one.
    pub sources: SmallVec<[Slice; 2]>,
    /// The slices stored; at least one.
    pub dests: SmallVec<[Slice; 1]>,
    /// The position of the first chunk in its unit, which decides its size. The other chunks follow. Where an operand
    /// lies in scratch, they do not pass the unit's end.
    pub position: u32,
    /// The site that attributes demand for it.
    pub site: Site,
    /// The operands that it scales, for operators that scale.
    pub scaling: Scaling,
}

/// The site of an operation: the rank, channel or thread block that attributes demand.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Site {
    /// The executing rank: `#[on(..)]`.
    pub on: Option<Rank>,
    /// The channel: `#[channel(..)]`. Operations of different channels run on different thread blocks.
    pub channel: Option<u32>,
    /// The thread block of the executing rank: `#[block(..)]`.
    pub block: Option<ThreadBlock>,
}

impl Op {
    /// Returns the rank that executes the operation: that of `#[on]`; else the source's for a copy, the destination's for
    /// a combination. (A combination into several ranks without `#[on]` is recorded as one operation a destination.)
    pub fn executor(&self) -> Rank {
        Op::rank_of(self.site.on, &self.sources, &self.dests)
    }

    /// Returns the rank that executes an operation with these operands; see [`Op::executor`].
    pub(crate) fn rank_of(on: Option<Rank>, sources: &[Slice], dests: &[Slice]) -> Rank {
        match (on, sources) {
            (Some(rank), _) => rank,
            (None, [source]) => source.rank,
            (None, _) => dests.first().map_or(Rank(0), |dest| dest.rank),
        }
    }
}

/// An iteration: the values of all loop variables at a point of the program's run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TrailId(u32);

/// The iterations of a run, as a tree in an arena. Operations of one iteration share its node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trails {
    names: Vec<String>,
    nodes: Vec<Node>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Node {
    parent: TrailId,
    name: u32,
    value: i64,
}

impl Trails {
    /// The iteration outside every loop.
    pub const ROOT: TrailId = TrailId(u32::MAX);

    /// Makes an arena without iterations.
    pub fn new() -> Trails {
        Trails { names: Vec::new(), nodes: Vec::new() }
    }

    /// Returns the number of `name`, for [`Trails::enter`]. The same name gives the same number.
    pub fn intern(&mut self, name: &str) -> u32 {
        match self.names.iter().position(|n| n == name) {
            Some(i) => i as u32,
            None => {
                self.names.push(name.to_owned());
                self.names.len() as u32 - 1
            }
        }
    }

    /// Adds the iteration of a loop inside `parent` in which the variable with number `name` has `value`.
    pub fn enter(&mut self, parent: TrailId, name: u32, value: i64) -> TrailId {
        self.nodes.push(Node { parent, name, value });
        TrailId(self.nodes.len() as u32 - 1)
    }

    /// Returns the loop variables as `c = 0, hop = 1`, outermost first; empty outside loops.
    pub fn describe(&self, trail: TrailId) -> String {
        let mut parts = Vec::new();
        let mut at = trail;
        while let Some(node) = self.nodes.get(at.0 as usize) {
            parts.push(format!("{} = {}", self.names[node.name as usize], node.value));
            at = node.parent;
        }
        parts.reverse();
        parts.join(", ")
    }
}

impl Default for Trails {
    fn default() -> Self {
        Trails::new()
    }
}

impl Program {
    /// Returns what chunk `chunk` of `rank`'s output must hold at the end.
    pub fn expected(&self, rank: Rank, chunk: u32) -> Expected<'_> {
        let promised = self.contract.as_ref().and_then(|contract| contract.expected(rank, chunk));
        promised.unwrap_or_else(|| self.shape.expected(rank, chunk))
    }

    /// Returns the shape of the program's schedules: without the chunks that stand for messages.
    pub fn scheduled_shape(&self) -> Shape {
        Shape { scratch: self.shape.scratch.saturating_sub(self.in_flight.unwrap_or(0)), ..self.shape }
    }

    /// Returns true if the slice stands for messages.
    pub fn is_in_flight(&self, slice: &Slice) -> bool {
        slice.buffer == Buffer::Scratch && slice.start >= self.scheduled_shape().scratch
    }

    /// Returns the context of findings outside iterations.
    pub fn context(&self) -> DiagnosticContext {
        let params: Vec<String> =
            self.params.iter().map(|(name, value)| format!("{name} = {value}")).collect();
        DiagnosticContext {
            ranks: self.shape.ranks,
            params: params.join(", "),
            ..DiagnosticContext::default()
        }
    }

    /// Returns the operation's statement.
    pub fn statement(&self, op: OpId) -> &Statement {
        &self.statements[self.ops[op.0 as usize].statement.0 as usize]
    }

    /// Returns the operation's location and iteration, as `12:13 (c = 0, hop = 6)`.
    pub fn at(&self, op: OpId) -> String {
        let iteration = self.trails.describe(self.ops[op.0 as usize].trail);
        let loc = self.statement(op).loc;
        if iteration.is_empty() { loc.to_string() } else { format!("{loc} ({iteration})") }
    }
}

impl fmt::Display for OpId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        join(f, &self.dests, ", ")?;
        f.write_str(" = ")?;
        join(f, &self.sources, " + ")?;
        let Site { on, channel, block } = self.site;
        if let Some(rank) = on {
            write!(f, " on {rank}")?;
        }
        if let Some(channel) = channel {
            write!(f, " channel {channel}")?;
        }
        if let Some(block) = block {
            write!(f, " block {}", block.0)?;
        }
        Ok(())
    }
}

/// Writes `items` with `separator` between them.
pub(crate) fn join<T: fmt::Display>(f: &mut fmt::Formatter<'_>, items: &[T], separator: &str) -> fmt::Result {
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            f.write_str(separator)?;
        }
        item.fmt(f)?;
    }
    Ok(())
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "program {}: {}", self.name, self.shape)?;
        if let Some(chunks) = self.in_flight {
            write!(f, ", {chunks} of them in flight")?;
        }
        for (name, value) in &self.params {
            write!(f, ", {name} = {value}")?;
        }
        writeln!(f)?;
        for (i, statement) in self.statements.iter().enumerate() {
            writeln!(f, "statement {i} at {}: {}", statement.loc, statement.text)?;
        }
        for (i, op) in self.ops.iter().enumerate() {
            write!(f, "{i:>4} {op}    # {}", op.statement.0)?;
            let iteration = self.trails.describe(op.trail);
            if iteration.is_empty() {
                writeln!(f)?;
            } else {
                writeln!(f, ": {iteration}")?;
            }
        }
        Ok(())
    }
}

/// `all_reduce, 4 ranks, 4 chunks, in place`.
impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = |n: u32| if n == 1 { "" } else { "s" };
        write!(f, "{}, {} rank{}", self.kind, self.ranks, plural(self.ranks))?;
        write!(f, ", {} chunk{}", self.chunks, plural(self.chunks))?;
        if self.in_place {
            f.write_str(", in place")?;
        }
        if self.root != Rank(0) {
            write!(f, ", root {}", self.root)?;
        }
        if self.nodes != 1 {
            write!(f, ", {} nodes", self.nodes)?;
        }
        if self.scratch != 0 {
            write!(f, ", {} scratch chunk{}", self.scratch, plural(self.scratch))?;
        }
        Ok(())
    }
}
