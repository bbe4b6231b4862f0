//! Operations without messages: what is received is read where it was sent from, as long as it still lies there when it is
//! used, and else from a chunk of scratch.

use crate::program::ids::{Location, Slice};
use crate::program::location::LocationTable;
use crate::program::{Op, Program, Site};
use rustc_hash::{FxHashMap, FxHashSet};

/// An operation that does not name messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Move {
    pub(super) sources: Vec<Slice>,
    pub(super) dests: Vec<Slice>,
    pub(super) site: Site,
}

pub(super) struct Direct {
    pub(super) moves: Vec<Move>,
    /// Chunks of every rank's scratch.
    pub(super) scratch: u32,
}

/// A location that also holds the value of a message, as long as it has been stored to so many times.
type Copies = Vec<(Slice, u32)>;

struct Directing<'p> {
    program: &'p Program,
    /// How often each chunk has been stored to.
    stored: LocationTable<u32>,
    /// Of each message on its way.
    carried: FxHashMap<Location, (Copies, Site)>,
    /// Messages that have to be kept in scratch.
    kept: FxHashSet<Location>,
}

/// Rewrites the operations, in their order. Linear.
pub(super) fn direct(program: &Program) -> Direct {
    let mut directing = Directing {
        program,
        stored: LocationTable::new(&program.shape, 0),
        carried: FxHashMap::default(),
        kept: FxHashSet::default(),
    };
    let mut moves: Vec<Move> = program.ops.iter().map(|op| directing.op(op)).collect();
    // Those that are kept get chunks after the program's own.
    let own = program.scheduled_shape().scratch;
    let mut used = vec![own; program.shape.ranks as usize];
    let mut place: FxHashMap<Location, u32> = FxHashMap::default();
    let kept = directing.kept;
    for moving in &mut moves {
        moving.dests.retain(|dest| !program.is_in_flight(dest) || kept.contains(&dest.at(0)));
        for slice in moving.sources.iter_mut().chain(&mut moving.dests) {
            if program.is_in_flight(slice) {
                let next = &mut used[slice.rank.0 as usize];
                slice.start = *place.entry(slice.at(0)).or_insert_with(|| {
                    *next += slice.len;
                    *next - slice.len
                });
            }
        }
    }
    let idle = |moving: &Move| moving.sources.len() == 1 && moving.sources == moving.dests;
    moves.retain(|moving| !moving.dests.is_empty() && !idle(moving));
    Direct { moves, scratch: used.into_iter().max().unwrap_or(own) }
}

impl Directing<'_> {
    fn stored_times(&mut self, slice: &Slice) -> u32 {
        self.stored.get_mut(slice.at(0)).map_or(0, |count| *count)
    }

    fn op(&mut self, op: &Op) -> Move {
        let mut site = op.site;
        // A rank that only passes a message on has it in scratch: the next one reads it there.
        let passes_on = op.dests.iter().all(|dest| self.program.is_in_flight(dest));
        let passes_on = passes_on && op.sources.len() == 1;
        let mut sources = Vec::with_capacity(op.sources.len());
        for source in &op.sources {
            if !self.program.is_in_flight(source) {
                sources.push(*source);
                continue;
            }
            let (copies, sender) = self.carried.get(&source.at(0)).cloned().unwrap_or_default();
            let valid = |(slice, then): &(Slice, u32)| !passes_on && self.stored_times(slice) == *then;
            let found = copies.into_iter().find(valid);
            match found {
                Some((slice, _)) => {
                    sources.push(slice);
                    if let [_] = op.sources[..] {
                        // The rank that has the source copies it, on the block that sent it.
                        site = Site { on: None, ..sender };
                    }
                }
                None => {
                    self.kept.insert(source.at(0));
                    sources.push(*source);
                }
            }
        }
        let read = match sources[..] {
            [source] => Some((source, self.stored_times(&source))),
            _ => None,
        };
        let (sent, stored): (Vec<Slice>, Vec<Slice>) =
            op.dests.iter().partition(|dest| self.program.is_in_flight(dest));
        for at in stored.iter().flat_map(|slice| slice.locations()) {
            if let Some(count) = self.stored.get_mut(at) {
                *count += 1;
            }
        }
        let mut copies: Copies = stored.iter().map(|slice| (*slice, self.stored_times(slice))).collect();
        // What is sent is read from the rank that sends it, and from none before.
        copies.extend(read.filter(|(slice, _)| op.site.on.is_none_or(|on| on == slice.rank)));
        for message in sent {
            // Messages are of one chunk; of a longer one the count of the first chunk would not tell.
            let copies = if message.len == 1 { copies.clone() } else { Vec::new() };
            self.carried.insert(message.at(0), (copies, op.site));
        }
        Move { sources, dests: op.dests.to_vec(), site }
    }
}
