//! The units of a rank's contribution and result, and where they lie in its buffers. All of it follows from a
//! collective's kind. A unit has `count` elements: the `count` of NCCL's call of the kind.

use quadrille_compiler::program::ids::{Buffer, Location, Rank};
use quadrille_compiler::program::kind::Shape;
use std::ops::Range;

/// The shape in whole units: one chunk a unit.
pub fn in_units(shape: &Shape) -> Shape {
    Shape { chunks: 1, ..*shape }
}

/// The number of units that `rank` contributes; 0 where it contributes nothing.
pub fn input_units(shape: &Shape, rank: Rank) -> u32 {
    Shape { in_place: false, ..in_units(shape) }.units(Buffer::Input, rank)
}

/// The number of units that `rank` receives; 0 where it receives nothing.
pub fn output_units(shape: &Shape, rank: Rank) -> u32 {
    in_units(shape).output_chunks(rank)
}

/// The units of `rank`'s `data` (in place) or `input` that hold its contribution when a call begins: pairs of a unit
/// there and a unit of the contribution. All other units are unwritten then.
pub fn placement(shape: &Shape, rank: Rank) -> Vec<(u32, u32)> {
    let shape = in_units(shape);
    let buffer = if shape.in_place { Buffer::Data } else { Buffer::Input };
    let unit = |chunk| Some((chunk, shape.initial(Location { buffer, rank, chunk })?.chunk));
    (0..shape.units(buffer, rank)).filter_map(unit).collect()
}

/// The units of `rank`'s `data` (in place) or `output` that hold its result when a call has ended.
pub fn result_units(shape: &Shape, rank: Rank) -> Range<u32> {
    let first = in_units(shape).output_location(rank, 0).chunk;
    first..first + output_units(shape, rank)
}

#[cfg(test)]
mod tests {
    use super::*;
    use quadrille_compiler::program::kind::Kind;

    fn shape(kind: Kind, ranks: u32, in_place: bool) -> Shape {
        Shape { in_place, ..Shape::new(kind, ranks, 1) }
    }

    #[test]
    fn in_place_buffers_hold_what_the_kinds_say() {
        let placed = |kind, rank| placement(&shape(kind, 3, true), Rank(rank));
        assert_eq!(placed(Kind::AllGather, 1), [(1, 0)]);
        assert_eq!(placed(Kind::ReduceScatter, 1), [(0, 0), (1, 1), (2, 2)]);
        assert_eq!(placed(Kind::Broadcast, 0), [(0, 0)]);
        assert_eq!(placed(Kind::Broadcast, 1), []);
        assert_eq!(placement(&shape(Kind::Broadcast, 3, false), Rank(1)), []);
        assert_eq!(placement(&shape(Kind::AllGather, 3, false), Rank(1)), [(0, 0)]);
        let result = |kind, in_place| result_units(&shape(kind, 3, in_place), Rank(1));
        assert_eq!(result(Kind::ReduceScatter, true), 1..2);
        assert_eq!(result(Kind::ReduceScatter, false), 0..1);
        assert_eq!(result(Kind::AllGather, true), 0..3);
    }
}
