//! IR 3: the kernel that all ranks share. The blocks of all ranks are sorted into *classes* that do the same with
//! other operands; operands are formulas over RANK and BLOCK.
//!
//! Text form (`Display`):
//!
//! ```text
//! kernel ring_2r_f32_sum: all_reduce, 2 ranks, 2 chunks, in place, block cap 32; f32 sum, 512 threads
//! class 0: r0.b0 r1.b0
//!   link 0: start to r[(RANK + 1) % 2].b[0], 1 a call
//!   link 1: start from r[(RANK + 1) % 2].b[0], 1 a call
//!   signal 0 + 1
//!   wait 1 >= 1
//!   reduce data[RANK][RANK] + data[(RANK + 1) % 2][RANK] -> data[RANK][RANK]    #0
//! ```
//!
//! Steps that repeat with other numbers are a loop: `6 times:`, its body indented, over `I` = 0, 1, ..
//!
//! A *link* is a block's end of a counter: it knows the flag's address, what it counted when the last call ended, and
//! by how much it advances a call, or a tile. Links that differ only in an advancing operand are one entry with an index
//! `I`. A connection's credit link knows its FIFO, too: `slot 3[2]` is message 2 of link 3's.
//!
//! Invariants: loops are in order and apart; unrolled for any rank and block, the class's steps, counters and advances
//! are the schedule's (`rolled`).

pub mod abi;
mod classify;
mod formula;
mod roll;
mod series;
mod unroll;
pub mod widths;

pub use formula::Formula;
pub(crate) use formula::table_index;
pub use series::Series;
pub use unroll::Unrolled;

use crate::kernel::widths::Widths;
use crate::options::Protocol;
use crate::options::ScheduleOptions;
use crate::program::Scaling;
use crate::program::dtype::{DType, RedOp};
use crate::program::ids::{BlockId, Buffer};
use crate::program::kind::Shape;
use crate::program::{OpId, Program, StatementId};
use crate::schedule::CounterKind;
use crate::schedule::Schedule;
use crate::verified::Verified;
use std::fmt;

/// Threads of a block unless the schedule says otherwise.
pub const THREADS: u32 = 512;

/// The kernel of one world size, element type and operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// The collective's name.
    pub name: String,
    /// Kind, world size, chunks, placement.
    pub shape: Shape,
    /// Most blocks a rank may have; fixes where counters lie.
    pub block_cap: u32,
    /// Element type, of input, wire, accumulation (f32 where narrower) and output alike.
    pub dtype: DType,
    /// Reduction operator.
    pub op: RedOp,
    /// Threads of a block.
    pub threads: u32,
    /// Packs of each source that a thread loads before it uses the first; `None`: as many as [`Widths::loads`] allow.
    pub unroll: Option<u32>,
    /// Bytes of a chunk that are moved at a time; `None`: all of it.
    pub tile: Option<u64>,
    /// Slots of each connection's FIFO.
    pub slots: u32,
    /// Copies of the blocks, each of which moves its part of every chunk.
    pub instances: u32,
    /// True if one launch has the blocks of all ranks ([`crate::schedule::domain::Domain::one_device`]).
    pub one_launch: bool,
    /// Widths of counters and loads.
    pub widths: Widths,
    /// Thread blocks of each rank, in one instance.
    pub grid: Vec<u32>,
    /// The classes of blocks.
    pub classes: Vec<BlockClass>,
    /// All chunks of a unit are equally long; the count is divisible by C.
    pub divisible: bool,
    /// For each statement of the program: its place and text.
    pub statements: Vec<String>,
}

/// Blocks that do the same with other operands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockClass {
    /// The blocks, ascending; a member's index selects from tables.
    pub members: Vec<BlockId>,
    /// The counters that a member signals or waits for.
    pub links: Vec<ClassLinks>,
    /// The steps of a member, in order.
    pub steps: Vec<KernelStep>,
    /// The steps that are repeated: ascending, apart from each other.
    pub loops: Vec<KernelLoop>,
}

/// Steps that are repeated, with `I` = 0, 1, .. in their formulas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelLoop {
    /// Index of the first step.
    pub first: u32,
    /// How many steps.
    pub count: u32,
    /// How often.
    pub times: u32,
}

/// The end of a counter that a link is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum LinkEnd {
    /// The member signals.
    Writer,
    /// The member waits.
    Waiter,
}

/// `count` links, numbered from `first`; the i-th has index `I = i` in its formulas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassLinks {
    /// Number of the first.
    pub first: u32,
    /// How many.
    pub count: u32,
    /// The member's end.
    pub end: LinkEnd,
    /// The kind of the counter.
    pub kind: CounterKind,
    /// The rank at the other end.
    pub rank: Formula,
    /// The block at the other end.
    pub block: Formula,
    /// The number of the FIFO among those of its protocol from one rank to the other, for messages and credits.
    pub fifo: Option<Formula>,
    /// Signals a tile, or a call where there are none.
    pub advance: u32,
}

/// A step of all members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelStep {
    /// The action.
    pub action: KernelAction,
    /// It does not carry its operation out: it brings a source, or takes away what was made.
    pub transfer: bool,
    /// The operations that it serves, one for each time that it is done.
    pub origins: Vec<StepOrigin>,
}

/// The operation that a step serves.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct StepOrigin {
    /// The statement.
    pub statement: Option<StatementId>,
    /// The first member's operation, for comments.
    pub op: Option<OpId>,
    /// That operation's iteration in the program, as `c = 0, hop = 1`.
    pub iteration: String,
}

/// `count` links from number `first` with one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkRun {
    /// Number of the first link.
    pub first: Series,
    /// How many.
    pub count: u32,
    /// The value waited for, or the number of this signal, counted from the tile's begin.
    pub value: Series,
}

/// The action of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KernelAction {
    /// Poll every link until it reaches its value, then a block-wide barrier.
    Wait(Vec<LinkRun>),
    /// Publish a value on every link.
    Signal(Vec<LinkRun>),
    /// Combine the sources in order and store to every destination.
    Move {
        /// The sources, in the order of combination.
        sources: Vec<KernelOperand>,
        /// The destinations.
        dests: Vec<KernelOperand>,
        /// The chunk that has the size of the first chunk moved: a chunk of an operand, or a position in a unit.
        size_of: Formula,
        /// The operands that are scaled.
        scaling: Scaling,
    },
    /// A block-wide barrier.
    BlockSync,
}

/// An operand of a move, the same formula for all members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KernelOperand {
    /// A slice whose rank and first chunk depend on the member.
    Memory {
        /// The buffer.
        buffer: Buffer,
        /// The rank that owns it.
        rank: Formula,
        /// First chunk.
        start: Formula,
        /// Number of chunks.
        len: u32,
    },
    /// A message of a connection.
    Message {
        /// How it is laid out.
        protocol: Protocol,
        /// The connection's credit link.
        link: Series,
        /// Its number in this tile, from 0.
        number: Series,
    },
    /// Chunks of every rank's buffer, through the switch.
    Multicast {
        /// The buffer.
        buffer: Buffer,
        /// First chunk.
        start: Formula,
        /// Number of chunks.
        len: u32,
    },
}

impl KernelOperand {
    /// Chunks moved.
    pub fn len(&self) -> u32 {
        match self {
            KernelOperand::Memory { len, .. } | KernelOperand::Multicast { len, .. } => *len,
            KernelOperand::Message { .. } => 1,
        }
    }

    /// Never: an operand has at least one chunk.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn rank(&self) -> Option<&Formula> {
        if let KernelOperand::Memory { rank, .. } = self { Some(rank) } else { None }
    }

    fn start(&self) -> Option<&Formula> {
        match self {
            KernelOperand::Memory { start, .. } | KernelOperand::Multicast { start, .. } => Some(start),
            KernelOperand::Message { .. } => None,
        }
    }

    /// Link and number of a message.
    fn message(&self) -> Option<(Series, Series)> {
        if let KernelOperand::Message { link, number, .. } = *self { Some((link, number)) } else { None }
    }
}

impl KernelAction {
    /// The links of a wait or signal.
    pub fn runs(&self) -> &[LinkRun] {
        if let KernelAction::Wait(runs) | KernelAction::Signal(runs) = self { runs } else { &[] }
    }

    /// The sources of a move; empty for other steps.
    pub fn sources(&self) -> &[KernelOperand] {
        if let KernelAction::Move { sources, .. } = self { sources } else { &[] }
    }

    /// The destinations of a move; empty for other steps.
    pub fn dests(&self) -> &[KernelOperand] {
        if let KernelAction::Move { dests, .. } = self { dests } else { &[] }
    }

    fn size_of(&self) -> Option<&Formula> {
        if let KernelAction::Move { size_of, .. } = self { Some(size_of) } else { None }
    }
}

/// Builds the kernel of a proved schedule.
pub fn build(
    schedule: &Verified<Schedule>,
    program: &Program,
    options: &ScheduleOptions,
    dtype: DType,
    op: RedOp,
) -> Kernel {
    Kernel {
        name: format!("{}_{}r_{dtype}_{op}", schedule.name, schedule.shape.ranks),
        shape: schedule.shape,
        block_cap: schedule.block_cap,
        dtype,
        op,
        threads: options.threads.map_or(THREADS, |given| given.value),
        unroll: options.unroll.map(|given| given.value),
        tile: schedule.tile,
        slots: schedule.slots,
        instances: schedule.instances,
        one_launch: false,
        widths: Widths::default(),
        grid: schedule.blocks.iter().map(|blocks| blocks.len() as u32).collect(),
        classes: classify::classify(schedule, program),
        divisible: program.divisible,
        statements: program.statements.iter().map(|s| format!("{} {}", s.loc, s.text)).collect(),
    }
}

impl Kernel {
    /// Most thread blocks of a rank, in one instance.
    pub fn blocks(&self) -> u32 {
        self.grid.iter().copied().max().unwrap_or(1)
    }

    /// Returns true if it moves through FIFOs.
    pub fn has_fifos(&self) -> bool {
        self.classes.iter().flat_map(|class| &class.links).any(|links| links.fifo.is_some())
    }

    /// Returns true if it moves messages that carry flags.
    pub fn has_lines(&self) -> bool {
        let credits = self.classes.iter().flat_map(|class| &class.links).map(|links| links.kind);
        credits.into_iter().any(|kind| matches!(kind, CounterKind::Credit(Protocol::Ll | Protocol::Ll128)))
    }

    /// Returns true if it moves through the switch.
    pub fn has_multicast(&self) -> bool {
        let mut steps = self.classes.iter().flat_map(|class| &class.steps);
        let through_switch = |operand: &KernelOperand| matches!(operand, KernelOperand::Multicast { .. });
        steps.any(|step| step.action.sources().iter().chain(step.action.dests()).any(through_switch))
    }

    /// Returns true if a block touches a peer's user buffer, or all of them through the switch. Then all ranks map each other's.
    pub fn reaches_peers(&self) -> bool {
        let ranks = self.shape.ranks;
        let remote = |member: usize, at: BlockId, times: u32, operand: &KernelOperand| match operand {
            KernelOperand::Memory { buffer: Buffer::Scratch, .. } | KernelOperand::Message { .. } => false,
            KernelOperand::Memory { rank, .. } => {
                (0..times).any(|i| rank.evaluate(ranks, member, at, i) != at.rank.0)
            }
            KernelOperand::Multicast { .. } => true,
        };
        self.classes.iter().any(|class| {
            class.steps.iter().zip(0..).any(|(step, index)| {
                let mut operands = step.action.sources().iter().chain(step.action.dests());
                let times = class.loop_at(index).map_or(1, |around| around.times);
                operands.any(|operand| {
                    let mut members = class.members.iter().enumerate();
                    members.any(|(member, &at)| remote(member, at, times, operand))
                })
            })
        })
    }

    /// The most signals of one counter in a tile, or a call where there are none.
    pub fn most_signals(&self) -> u64 {
        let links = self.classes.iter().flat_map(|class| &class.links);
        links.map(|links| u64::from(links.advance)).max().unwrap_or(0)
    }
}

impl BlockClass {
    /// How many links a member has.
    pub fn link_count(&self) -> u32 {
        self.links.iter().map(|links| links.count).sum()
    }

    /// The counter of a link.
    pub fn kind(&self, link: i32) -> CounterKind {
        let has = |group: &&ClassLinks| (group.first..group.first + group.count).contains(&(link as u32));
        self.links.iter().find(has).map_or(CounterKind::Data, |group| group.kind)
    }

    /// The loop that the step with this index is in.
    pub fn loop_at(&self, step: u32) -> Option<&KernelLoop> {
        let after = self.loops.partition_point(|around| around.first <= step);
        self.loops[..after].last().filter(|around| step - around.first < around.count)
    }

    /// The order in which a member goes through the steps: their indices, each with its iteration. `None` where loops are not
    /// within the steps, in order and apart.
    pub fn order(&self) -> Option<Vec<(usize, u32)>> {
        let (mut order, mut done) = (Vec::new(), 0);
        for around in &self.loops {
            let (first, end) = (around.first as usize, around.first as usize + around.count as usize);
            if first < done || end > self.steps.len() {
                return None;
            }
            order.extend((done..first).map(|step| (step, 0)));
            order.extend((0..around.times).flat_map(|i| (first..end).map(move |step| (step, i))));
            done = end;
        }
        order.extend((done..self.steps.len()).map(|step| (step, 0)));
        Some(order)
    }
}

impl KernelStep {
    /// The operation that it serves when it is done for the `i`-th time.
    pub fn origin(&self, i: u32) -> Option<&StepOrigin> {
        self.origins.get(i as usize)
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "kernel {}: {}, block cap {}", self.name, self.shape, self.block_cap)?;
        write!(f, "; {} {}, {} threads", self.dtype, self.op, self.threads)?;
        if let Some(tile) = self.tile {
            write!(f, ", {} slots, tile {tile}", self.slots)?;
        }
        if self.instances > 1 {
            write!(f, ", {} instances", self.instances)?;
        }
        if self.one_launch {
            write!(f, ", one launch for all ranks")?;
        }
        writeln!(f)?;
        for (i, class) in self.classes.iter().enumerate() {
            write!(f, "class {i}:")?;
            for member in &class.members {
                write!(f, " {member}")?;
            }
            writeln!(f)?;
            let formulas =
                Formulas { ranks: self.shape.ranks, per: if self.tile.is_some() { "tile" } else { "call" } };
            for links in &class.links {
                formulas.links(f, links)?;
            }
            for (step, index) in class.steps.iter().zip(0..) {
                let around = class.loop_at(index);
                if let Some(KernelLoop { times, .. }) = around.filter(|around| around.first == index) {
                    writeln!(f, "  {times} times:")?;
                }
                f.write_str(if around.is_some() { "    " } else { "  " })?;
                formulas.action(f, &step.action)?;
                let of = if step.transfer { "of " } else { "" };
                let op = |origin: Option<&StepOrigin>| origin.and_then(|origin| origin.op);
                match (op(step.origins.first()), op(step.origins.last())) {
                    (Some(first), Some(last)) if first != last => writeln!(f, "    {of}{first}..{last}")?,
                    (Some(op), _) => writeln!(f, "    {of}{op}")?,
                    (None, _) => writeln!(f)?,
                }
            }
        }
        Ok(())
    }
}

/// Writes formulas for a world size.
struct Formulas {
    ranks: u32,
    /// The amounts by which links advance.
    per: &'static str,
}

impl Formulas {
    fn links(&self, f: &mut fmt::Formatter<'_>, links: &ClassLinks) -> fmt::Result {
        let word = match links.end {
            LinkEnd::Writer => "to",
            LinkEnd::Waiter => "from",
        };
        let numbers = match links.count {
            1 => format!("link {}", links.first),
            n => format!("links {}..{}", links.first, links.first + n),
        };
        let (rank, block) = (links.rank.text(self.ranks), links.block.text(self.ranks));
        write!(f, "  {numbers}: {} {word} r[{rank}].b[{block}]", links.kind.name())?;
        if let Some(fifo) = &links.fifo {
            write!(f, ", FIFO {}", fifo.text(self.ranks))?;
        }
        let per = if links.kind == CounterKind::Start { "call" } else { self.per };
        writeln!(f, ", {} a {per}", links.advance)
    }

    fn runs(&self, f: &mut fmt::Formatter<'_>, runs: &[LinkRun], sign: &str) -> fmt::Result {
        for (i, run) in runs.iter().enumerate() {
            let comma = if i > 0 { ", " } else { "" };
            let LinkRun { first, count, value } = run;
            match (count, first.by) {
                (1, _) => write!(f, "{comma}{first} {sign} {value}")?,
                (_, 0) => write!(f, "{comma}{first}..{} {sign} {value}", first.start + *count as i32)?,
                _ => write!(f, "{comma}{count} from {first} {sign} {value}")?,
            }
        }
        Ok(())
    }

    fn operands(
        &self,
        f: &mut fmt::Formatter<'_>,
        operands: &[KernelOperand],
        separator: &str,
    ) -> fmt::Result {
        for (i, operand) in operands.iter().enumerate() {
            if i > 0 {
                f.write_str(separator)?;
            }
            match operand {
                KernelOperand::Memory { buffer, rank, start, len } => {
                    let (rank, start) = (rank.text(self.ranks), start.text(self.ranks));
                    write!(f, "{buffer}[{rank}][{start}")?;
                    f.write_str(&if *len > 1 { format!("; {len}]") } else { "]".to_owned() })?;
                }
                KernelOperand::Message { link, number, .. } => write!(f, "slot {link}[{number}]")?,
                KernelOperand::Multicast { buffer, start, len } => {
                    write!(f, "multimem {buffer}[..][{}", start.text(self.ranks))?;
                    f.write_str(&if *len > 1 { format!("; {len}]") } else { "]".to_owned() })?;
                }
            }
        }
        Ok(())
    }

    fn action(&self, f: &mut fmt::Formatter<'_>, action: &KernelAction) -> fmt::Result {
        match action {
            KernelAction::Wait(runs) => {
                f.write_str("wait ")?;
                self.runs(f, runs, ">=")
            }
            KernelAction::Signal(runs) => {
                f.write_str("signal ")?;
                self.runs(f, runs, "+")
            }
            KernelAction::Move { sources, dests, size_of, scaling } => {
                let combines = sources.len() > 1 || matches!(sources[..], [KernelOperand::Multicast { .. }]);
                f.write_str(if combines { "reduce " } else { "copy " })?;
                self.operands(f, sources, " + ")?;
                if scaling.completes {
                    f.write_str(" / RANKS")?;
                }
                for (i, source) in scaling.bare.iter().enumerate() {
                    write!(f, "{}{source}", if i == 0 { ", scaled " } else { " " })?;
                }
                f.write_str(" -> ")?;
                self.operands(f, dests, ", ")?;
                let sized = |operand: &KernelOperand| match operand {
                    KernelOperand::Memory { buffer, .. } | KernelOperand::Multicast { buffer, .. } => {
                        *buffer != Buffer::Scratch
                    }
                    KernelOperand::Message { .. } => false,
                };
                if sources.iter().chain(dests).any(sized) {
                    return Ok(());
                }
                write!(f, " at {}", size_of.text(self.ranks))
            }
            KernelAction::BlockSync => f.write_str("sync"),
        }
    }
}
