//! The hops of data between ranks, one after the other.

use crate::program::Program;
use crate::program::ids::{Rank, Slice};
use crate::program::kind::{Kind, Shape};
use crate::program::location::Locations;
use crate::values::switch::Switch;

/// The longest chain of dependent hops. A chunk hops when it comes from another rank or goes to one, or when the switch
/// combines or multicasts it. A hop depends on those of the values that its value is made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hops {
    /// The hops of the program's longest chain.
    pub longest: u32,
    /// The least that is possible if every rank has a link to every other one; none for a custom collective.
    pub linked: Option<u32>,
    /// The least that is possible if a rank sends to one other and receives from one other at a time. With each hop at
    /// most twice as many ranks have a part in a value.
    pub one_port: Option<u32>,
}

impl Hops {
    pub(crate) fn of(program: &Program, switch: &Switch) -> Hops {
        let (linked, one_port) = bounds(&program.shape).unzip();
        Hops { longest: longest(program, switch), linked, one_port }
    }
}

fn bounds(shape: &Shape) -> Option<(u32, u32)> {
    match (shape.kind, shape.ranks) {
        (Kind::Custom, _) => None,
        (_, 1) => Some((0, 0)),
        (Kind::SendRecv, _) => Some((1, 1)),
        (_, ranks) => Some((1, ranks.next_power_of_two().ilog2())),
    }
}

fn longest(program: &Program, switch: &Switch) -> u32 {
    let locations = Locations::new(&program.shape);
    let mut hops = vec![0_u32; locations.len()];
    let mut longest = 0;
    // The hops of the operation's values, chunk by chunk.
    let mut made = Vec::new();
    for op in &program.ops {
        let here = op.executor();
        let (combined, handed) = (switch.reduces(op), switch.multicasts(op));
        let crosses = |rank: Rank, switched: bool| u32::from(switched || rank != here);
        let range = |slice: &Slice| locations.range(slice).unwrap_or(0..0);
        made.clear();
        made.resize(op.dests.first().map_or(0, |dest| dest.len as usize), 0);
        for source in &op.sources {
            let hop = crosses(source.rank, combined);
            for (made, before) in made.iter_mut().zip(&hops[range(source)]) {
                *made = (*made).max(before + hop);
            }
        }
        for dest in &op.dests {
            let hop = crosses(dest.rank, handed);
            for (after, made) in hops[range(dest)].iter_mut().zip(&made) {
                *after = made + hop;
                longest = longest.max(*after);
            }
        }
    }
    longest
}
