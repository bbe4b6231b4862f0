//! The kinds of collective: the contents of every chunk before and after, and the arithmetic of sizes.

use crate::names::{self, UnknownName, table};
use crate::program::dtype::DType;
use crate::program::ids::{Buffer, Location, Rank};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

table! {
    /// The kind of a collective, which fixes its buffers and its postcondition. `input -> output` gives the chunks of one
    /// rank's input and output for N ranks and C chunks a unit.
    #[derive(Serialize, Deserialize)]
    pub enum Kind {
        /// Every rank gets the reduction over all ranks; C -> C.
        AllReduce = "all_reduce",
        /// Every rank gets every rank's input; C -> N*C.
        AllGather = "all_gather",
        /// Rank r gets the reduction of everybody's unit r; N*C -> C.
        ReduceScatter = "reduce_scatter",
        /// Every rank gets the root's input; C -> C, `input` exists at the root only.
        Broadcast = "broadcast",
        /// The root gets the reduction over all ranks; C -> C, `output` exists at the root only.
        Reduce = "reduce",
        /// Rank r's unit s goes to rank s's unit r; N*C -> N*C.
        AllToAll = "all_to_all",
        /// The root gets every rank's input; C -> N*C, `output` exists at the root only.
        Gather = "gather",
        /// Rank r gets the root's unit r; N*C -> C, `input` exists at the root only.
        Scatter = "scatter",
        /// Every rank gets the input of the rank before it, rank 0 that of the last (as nccl-tests' sendrecv); C -> C.
        SendRecv = "send_recv",
        /// Every rank gets what the program's own `expect!` statements say; C -> C.
        Custom = "custom",
    }
}

/// The value that an output chunk must hold at the end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Expected<'p> {
    /// The reduction over all ranks of their input chunk.
    Reduced {
        /// The chunk's index in every rank's input.
        chunk: u32,
    },
    /// One rank's input chunk, unchanged.
    Copied(Contribution),
    /// The reduction of these input chunks, in any order.
    Combined(&'p [Contribution]),
    /// Anything.
    Unspecified,
}

/// A contribution: one rank's input chunk as a value. Sums are made of contributions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Contribution {
    /// The rank whose input it is.
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
    /// Returns the units of one rank's input and output, of `count` elements each.
    pub fn units(self, ranks: u32) -> (u32, u32) {
        match self {
            Kind::AllReduce | Kind::Broadcast | Kind::Reduce | Kind::SendRecv | Kind::Custom => (1, 1),
            Kind::AllGather | Kind::Gather => (1, ranks),
            Kind::ReduceScatter | Kind::Scatter => (ranks, 1),
            Kind::AllToAll => (ranks, ranks),
        }
    }

    /// Returns true if the kind has a root.
    pub fn rooted(self) -> bool {
        self.root_only(Buffer::Input) || self.root_only(Buffer::Output)
    }

    /// Returns true if a buffer exists at the root alone.
    pub fn root_only(self, buffer: Buffer) -> bool {
        match buffer {
            Buffer::Input => matches!(self, Kind::Broadcast | Kind::Scatter),
            Buffer::Output => matches!(self, Kind::Reduce | Kind::Gather),
            Buffer::Data | Buffer::Scratch => false,
        }
    }

    /// Returns true if the kind can be written in place.
    pub fn has_in_place(self) -> bool {
        !matches!(self, Kind::Gather | Kind::Scatter | Kind::SendRecv)
    }

    /// Returns busbw over algbw, as nccl-tests defines it (its doc/PERFORMANCE.md): the fraction of the message that has
    /// to cross the busiest link in one direction. A custom collective has no bound to compare with; its factor is 1.
    pub fn busbw_factor(self, ranks: u32) -> f64 {
        let n = f64::from(ranks);
        match self {
            Kind::AllReduce => 2.0 * (n - 1.0) / n,
            Kind::AllGather | Kind::ReduceScatter | Kind::AllToAll | Kind::Gather | Kind::Scatter => {
                (n - 1.0) / n
            }
            Kind::Broadcast | Kind::Reduce | Kind::SendRecv | Kind::Custom => 1.0,
        }
    }

    /// Returns the elements of one unit for a message of `bytes`, by nccl-tests' rule. `bytes` is the larger of one rank's
    /// input and output. It is divided (floor) by the element size, and by the number of ranks where that side has a
    /// unit for each rank.
    pub fn count(self, bytes: u64, dtype: DType, ranks: u32) -> u64 {
        let (input, output) = self.units(ranks);
        bytes / dtype.bytes() as u64 / u64::from(input.max(output))
    }

    /// Returns the bytes of a message of `count` elements a unit: the inverse of [`Kind::count`].
    pub fn bytes(self, count: u64, dtype: DType, ranks: u32) -> u64 {
        let (input, output) = self.units(ranks);
        count * dtype.bytes() as u64 * u64::from(input.max(output))
    }
}

impl FromStr for Kind {
    type Err = UnknownName;
    fn from_str(s: &str) -> Result<Self, UnknownName> {
        names::find(s, "kind of collective", &Kind::ALL, Kind::name)
    }
}

/// The shape of a program: its kind, world size, chunks and placement. All about its buffers follows from it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Shape {
    /// The kind.
    pub kind: Kind,
    /// World size N, at least 1.
    pub ranks: u32,
    /// Chunks of one unit, C, at least 1.
    pub chunks: u32,
    /// True for one buffer named `data` instead of `input` and `output`.
    pub in_place: bool,
    /// The root of a rooted kind; else rank 0.
    pub root: Rank,
    /// The nodes that the ranks are spread over, in order and in equal numbers; divides N.
    pub nodes: u32,
    /// Chunks of every rank's `scratch`.
    pub scratch: u32,
}

impl Shape {
    /// Makes the shape of an out-of-place collective with root 0, on one node, without scratch.
    pub fn new(kind: Kind, ranks: u32, chunks: u32) -> Shape {
        Shape { kind, ranks, chunks, in_place: false, root: Rank(0), nodes: 1, scratch: 0 }
    }

    /// Returns the buffers of a rank, as the program names them; `scratch` only where it has chunks.
    pub fn buffers(&self) -> &'static [Buffer] {
        match (self.in_place, self.scratch) {
            (true, 0) => &[Buffer::Data],
            (true, _) => &[Buffer::Data, Buffer::Scratch],
            (false, 0) => &[Buffer::Input, Buffer::Output],
            (false, _) => &[Buffer::Input, Buffer::Output, Buffer::Scratch],
        }
    }

    /// Returns the units of a buffer on `rank`; 0 where the buffer does not exist. `scratch` is not made of units.
    pub fn units(&self, buffer: Buffer, rank: Rank) -> u32 {
        let (input, output) = self.kind.units(self.ranks);
        let here = !self.kind.root_only(buffer) || rank == self.root;
        match buffer {
            Buffer::Input if !self.in_place && here => input,
            Buffer::Output if !self.in_place && here => output,
            Buffer::Data if self.in_place => input.max(output),
            Buffer::Input | Buffer::Output | Buffer::Data | Buffer::Scratch => 0,
        }
    }

    /// Returns the chunks of a buffer on `rank`; 0 where the buffer does not exist.
    pub fn chunks(&self, buffer: Buffer, rank: Rank) -> u32 {
        match buffer {
            Buffer::Scratch => self.scratch,
            _ => self.units(buffer, rank).saturating_mul(self.chunks),
        }
    }

    /// Returns the position of a chunk in its unit, which decides its size; `None` for `scratch`, whose chunks take the
    /// size of the chunk stored there.
    pub fn position(&self, buffer: Buffer, chunk: u32) -> Option<u32> {
        (buffer != Buffer::Scratch).then(|| chunk % self.chunks)
    }

    /// Returns the chunks of one rank's input, in whatever buffer; 0 where the rank has none.
    pub fn input_chunks(&self, rank: Rank) -> u32 {
        Shape { in_place: false, ..*self }.chunks(Buffer::Input, rank)
    }

    /// Returns the location of chunk `chunk` of `rank`'s input: in `input`, or in `data` if the collective is in place.
    pub fn input_location(&self, rank: Rank, chunk: u32) -> Location {
        if !self.in_place {
            return Location { buffer: Buffer::Input, rank, chunk };
        }
        let chunk = match self.kind {
            Kind::AllGather => rank.0 * self.chunks + chunk,
            _ => chunk,
        };
        Location { buffer: Buffer::Data, rank, chunk }
    }

    /// Returns what a chunk holds when the call begins; `None` where nothing has been written.
    pub fn initial(&self, at: Location) -> Option<Contribution> {
        let Location { buffer, rank, chunk } = at;
        if matches!(buffer, Buffer::Output | Buffer::Scratch) || chunk >= self.chunks(buffer, rank) {
            return None;
        }
        let first = self.input_location(rank, 0).chunk;
        let chunk = chunk.checked_sub(first).filter(|&chunk| chunk < self.input_chunks(rank))?;
        Some(Contribution { rank, chunk })
    }

    /// Returns the chunks of one rank's output, in whatever buffer; 0 where the rank has none.
    pub fn output_chunks(&self, rank: Rank) -> u32 {
        Shape { in_place: false, ..*self }.chunks(Buffer::Output, rank)
    }

    /// Returns every output chunk by its rank and its index in that rank's output, ascending.
    pub fn outputs(self) -> impl Iterator<Item = (Rank, u32)> {
        (0..self.ranks)
            .map(Rank)
            .flat_map(move |rank| (0..self.output_chunks(rank)).map(move |chunk| (rank, chunk)))
    }

    /// Returns the location of chunk `chunk` of `rank`'s output: in `output`, or in `data` if the collective is in place.
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

    /// Returns true if [`Shape::expected`] is the same for all ranks.
    pub fn expects_alike(&self) -> bool {
        matches!(self.kind, Kind::AllReduce | Kind::AllGather | Kind::Broadcast)
    }

    /// Returns what chunk `chunk` of `rank`'s output must hold at the end, by the kind alone. A custom collective leaves
    /// it open.
    pub fn expected(&self, rank: Rank, chunk: u32) -> Expected<'static> {
        let (unit, position) = (chunk / self.chunks, chunk % self.chunks);
        let copied = |rank: Rank, chunk| Expected::Copied(Contribution { rank, chunk });
        match self.kind {
            Kind::AllReduce | Kind::Reduce => Expected::Reduced { chunk },
            Kind::ReduceScatter => Expected::Reduced { chunk: rank.0 * self.chunks + chunk },
            Kind::Broadcast => copied(self.root, chunk),
            Kind::AllGather | Kind::Gather => copied(Rank(unit), position),
            Kind::AllToAll => copied(Rank(unit), rank.0 * self.chunks + position),
            Kind::Scatter => copied(self.root, rank.0 * self.chunks + chunk),
            Kind::SendRecv => copied(Rank((rank.0 + self.ranks - 1) % self.ranks), chunk),
            Kind::Custom => Expected::Unspecified,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_expect_the_same_where_the_kind_says_so() {
        for kind in Kind::ALL.into_iter().filter(|&kind| Shape::new(kind, 3, 2).expects_alike()) {
            let shape = Shape::new(kind, 3, 2);
            for (rank, chunk) in shape.outputs() {
                assert_eq!(shape.output_chunks(rank), shape.output_chunks(Rank(0)), "{kind}");
                assert_eq!(
                    shape.expected(rank, chunk),
                    shape.expected(Rank(0), chunk),
                    "{kind} {rank:?} {chunk}"
                );
            }
        }
    }
}
