//! The kinds of collective: what every chunk holds before, what it must hold after, and the arithmetic of sizes.

use crate::dtype::{DType, UnknownName};
use crate::ids::{Buffer, Location, Rank};
use std::fmt;
use std::str::FromStr;

/// The kind of a collective, which fixes its buffers and its postcondition. With N ranks and C chunks, the sizes
/// of one rank's input and output in chunks are given as `input -> output`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Kind {
    /// Every rank gets the reduction over all ranks; C -> C.
    AllReduce,
    /// Every rank gets every rank's input; C -> N*C.
    AllGather,
    /// Rank r gets the reduction of everybody's unit r; N*C -> C.
    ReduceScatter,
    /// Every rank gets the root's input; C -> C, `input` exists at the root only.
    Broadcast,
    /// Rank r's unit s goes to rank s's unit r; N*C -> N*C.
    AllToAll,
}

/// What an output chunk must hold at the end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Expected {
    /// The reduction over all ranks of their input chunk.
    Reduced {
        /// The chunk's index in every rank's input.
        chunk: u32,
    },
    /// One rank's input chunk, unchanged.
    Copied(Contribution),
}

/// One rank's input chunk as a value: what sums are made of.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Contribution {
    /// Whose input.
    pub rank: Rank,
    /// The chunk's index in that rank's *input* (also where the collective is in place).
    pub chunk: u32,
}

/// `input[3][0]`.
impl fmt::Display for Contribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Location { buffer: Buffer::Input, rank: self.rank, chunk: self.chunk }.fmt(f)
    }
}

impl Kind {
    /// Every kind, in the order help texts list them.
    pub const ALL: [Kind; 5] =
        [Kind::AllReduce, Kind::AllGather, Kind::ReduceScatter, Kind::Broadcast, Kind::AllToAll];

    /// The name users write.
    pub fn name(self) -> &'static str {
        match self {
            Kind::AllReduce => "all_reduce",
            Kind::AllGather => "all_gather",
            Kind::ReduceScatter => "reduce_scatter",
            Kind::Broadcast => "broadcast",
            Kind::AllToAll => "all_to_all",
        }
    }

    /// Units (of `count` elements each) in one rank's input and output.
    pub fn units(self, ranks: u32) -> (u32, u32) {
        match self {
            Kind::AllReduce | Kind::Broadcast => (1, 1),
            Kind::AllGather => (1, ranks),
            Kind::ReduceScatter => (ranks, 1),
            Kind::AllToAll => (ranks, ranks),
        }
    }

    /// Whether the kind has a root.
    pub fn rooted(self) -> bool {
        matches!(self, Kind::Broadcast)
    }

    /// busbw over algbw, as nccl-tests defines it (its doc/PERFORMANCE.md): the fraction of the message that has to
    /// cross the busiest link in one direction.
    pub fn busbw_factor(self, ranks: u32) -> f64 {
        let n = f64::from(ranks);
        match self {
            Kind::AllReduce => 2.0 * (n - 1.0) / n,
            Kind::AllGather | Kind::ReduceScatter | Kind::AllToAll => (n - 1.0) / n,
            Kind::Broadcast => 1.0,
        }
    }

    /// Elements of one unit for a message of `bytes`, by nccl-tests' rule: `bytes` is the larger of one rank's input
    /// and output; it is divided (floor) by the element size, and by the number of ranks where that side has a unit
    /// a rank.
    pub fn count(self, bytes: u64, dtype: DType, ranks: u32) -> u64 {
        let (input, output) = self.units(ranks);
        bytes / dtype.bytes() as u64 / u64::from(input.max(output))
    }

    /// The message size in bytes that `count` elements a unit amount to; the inverse of [`Kind::count`].
    pub fn bytes(self, count: u64, dtype: DType, ranks: u32) -> u64 {
        let (input, output) = self.units(ranks);
        count * dtype.bytes() as u64 * u64::from(input.max(output))
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Kind {
    type Err = UnknownName;
    fn from_str(s: &str) -> Result<Self, UnknownName> {
        Kind::ALL.into_iter().find(|k| k.name() == s).ok_or_else(|| UnknownName {
            given: s.to_owned(),
            what: "kind of collective",
            known: Kind::ALL.map(Kind::name).join(", "),
        })
    }
}

/// A kind for one world size, chunking and placement: everything about buffers follows from it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Shape {
    /// The kind.
    pub kind: Kind,
    /// World size N, at least 1.
    pub ranks: u32,
    /// Chunks of one unit, C, at least 1.
    pub chunks: u32,
    /// One buffer named `data` instead of `input` and `output`.
    pub in_place: bool,
    /// The root of a rooted kind; else rank 0.
    pub root: Rank,
}

impl Shape {
    /// The buffers a rank has, as the program names them.
    pub fn buffers(&self) -> &'static [Buffer] {
        if self.in_place { &[Buffer::Data] } else { &[Buffer::Input, Buffer::Output] }
    }

    /// Units of a buffer, as allocated on `rank`; 0 where the buffer does not exist.
    pub fn units(&self, buffer: Buffer, rank: Rank) -> u32 {
        let (input, output) = self.kind.units(self.ranks);
        match buffer {
            Buffer::Input if self.in_place => 0,
            Buffer::Input if self.kind.rooted() && rank != self.root => 0,
            Buffer::Input => input,
            Buffer::Output if self.in_place => 0,
            Buffer::Output => output,
            Buffer::Data if self.in_place => input.max(output),
            Buffer::Data => 0,
        }
    }

    /// Chunks of a buffer on `rank`; 0 where the buffer does not exist.
    pub fn chunks(&self, buffer: Buffer, rank: Rank) -> u32 {
        self.units(buffer, rank).saturating_mul(self.chunks)
    }

    /// What a chunk holds when the call begins; `None` where nothing has been written.
    pub fn initial(&self, at: Location) -> Option<Contribution> {
        let Location { buffer, rank, chunk } = at;
        if chunk >= self.chunks(buffer, rank) {
            return None;
        }
        match (buffer, self.kind) {
            (Buffer::Output, _) => None,
            (Buffer::Input, _) => Some(Contribution { rank, chunk }),
            (Buffer::Data, Kind::Broadcast) => (rank == self.root).then_some(Contribution { rank, chunk }),
            (Buffer::Data, Kind::AllGather) => {
                (chunk / self.chunks == rank.0).then_some(Contribution { rank, chunk: chunk % self.chunks })
            }
            (Buffer::Data, Kind::AllReduce | Kind::ReduceScatter | Kind::AllToAll) => {
                Some(Contribution { rank, chunk })
            }
        }
    }

    /// Chunks of one rank's output.
    pub fn output_chunks(&self) -> u32 {
        self.kind.units(self.ranks).1.saturating_mul(self.chunks)
    }

    /// Where chunk `chunk` of `rank`'s output lies: in `output`, or in `data` where the collective is in place.
    pub fn output_location(&self, rank: Rank, chunk: u32) -> Location {
        if !self.in_place {
            return Location { buffer: Buffer::Output, rank, chunk };
        }
        let chunk = match self.kind {
            Kind::ReduceScatter => rank.0 * self.chunks + chunk,
            _ => chunk,
        };
        Location { buffer: Buffer::Data, rank, chunk }
    }

    /// What chunk `chunk` of `rank`'s output must hold at the end.
    pub fn expected(&self, rank: Rank, chunk: u32) -> Expected {
        let (unit, position) = (chunk / self.chunks, chunk % self.chunks);
        match self.kind {
            Kind::AllReduce => Expected::Reduced { chunk },
            Kind::ReduceScatter => Expected::Reduced { chunk: rank.0 * self.chunks + chunk },
            Kind::Broadcast => Expected::Copied(Contribution { rank: self.root, chunk }),
            Kind::AllGather => Expected::Copied(Contribution { rank: Rank(unit), chunk: position }),
            Kind::AllToAll => {
                Expected::Copied(Contribution { rank: Rank(unit), chunk: rank.0 * self.chunks + position })
            }
        }
    }
}
