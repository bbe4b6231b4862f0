//! Moves as operations of the format, by where their ends lie as seen from the rank that moves them.

use crate::interop::mscclpp::most::MOST_ENDS;
use crate::program::ids::{Rank, Slice};
use crate::schedule::{Operand, combines};

/// An operation that moves chunks.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    pub(super) name: &'static str,
    pub(super) sources: Vec<Operand>,
    pub(super) dests: Vec<Operand>,
}

/// The operations, in this order, that carry out a move of `rank`. `relay` are as many chunks of the rank's scratch as are
/// moved, for what lies between two operations.
///
/// Errors: why no operations do.
pub(super) fn pieces(
    rank: Rank,
    sources: &[Operand],
    dests: &[Operand],
    relay: Slice,
) -> Result<Vec<Piece>, &'static str> {
    let mut moving = Moving { rank, relay, pieces: Vec::new() };
    match sources {
        [Operand::Multicast(_)] => match dests {
            [Operand::Multicast(_)] => moving.push("glres", sources.to_vec(), dests.to_vec()),
            _ => {
                return Err(
                    "executors run `glres` alone, which stores what the switch has combined to all ranks",
                );
            }
        },
        _ => {
            let memory: Vec<Slice> = sources.iter().filter_map(|source| source.memory().copied()).collect();
            if memory.len() < sources.len() || dests.iter().any(|dest| dest.message().is_some()) {
                return Err(
                    "what goes through slots of a FIFO, or through the switch among other sources, has no place there",
                );
            }
            if combines(sources) { moving.reduce(memory, dests) } else { moving.copy(&memory, dests) }
        }
    }
    Ok(moving.pieces)
}

struct Moving {
    rank: Rank,
    relay: Slice,
    pieces: Vec<Piece>,
}

impl Moving {
    fn push(&mut self, name: &'static str, sources: Vec<Operand>, dests: Vec<Operand>) {
        self.pieces.push(Piece { name, sources, dests });
    }

    fn local(&self, dest: &Operand) -> Option<Slice> {
        dest.memory().copied().filter(|slice| slice.rank == self.rank)
    }

    fn copy(&mut self, sources: &[Slice], dests: &[Operand]) {
        let Some(&source) = sources.first() else { return };
        if source.rank == self.rank {
            return self.spread(source, dests);
        }
        // From a peer once, and on from here.
        let here = dests.iter().find_map(|dest| self.local(dest)).unwrap_or(self.relay);
        self.push("get", vec![Operand::Memory(source)], vec![Operand::Memory(here)]);
        self.spread(here, dests);
    }

    /// Copies chunks of this rank.
    fn spread(&mut self, from: Slice, dests: &[Operand]) {
        let own = Operand::Memory(from);
        let mut remote = Vec::new();
        for dest in dests.iter().filter(|dest| **dest != own) {
            match dest {
                Operand::Multicast(_) => self.push("gstore", vec![own], vec![*dest]),
                Operand::Memory(slice) if slice.rank == self.rank => {
                    self.push("copy", vec![own], vec![*dest])
                }
                Operand::Memory(_) | Operand::Message(_) => remote.push(*dest),
            }
        }
        for dests in remote.chunks(MOST_ENDS) {
            self.push("put", vec![own; dests.len()], dests.to_vec());
        }
    }

    /// Combines from left to right. An operation takes one source here, and others that all lie here or all elsewhere.
    fn reduce(&mut self, mut sources: Vec<Slice>, dests: &[Operand]) {
        let here = |slice: &Slice| slice.rank == self.rank;
        if !here(&sources[0]) && here(&sources[1]) {
            sources.swap(0, 1);
        }
        let result = dests.iter().find_map(|dest| self.local(dest));
        // The sources that each operation takes besides what it goes on from.
        let mut groups: Vec<Vec<Slice>> = Vec::new();
        for &source in &sources[1..] {
            match groups.last_mut() {
                Some(group) if group.len() + 1 < MOST_ENDS && here(&group[0]) == here(&source) => {
                    group.push(source)
                }
                _ => groups.push(vec![source]),
            }
        }
        // What is combined so far lies where the result is due, unless that is still to be read.
        let first = groups.first().map_or(0, Vec::len);
        let read_later = |slice: &Slice| {
            let fetched = !here(&sources[0]);
            let later = if fetched { &sources[1..] } else { &sources[1 + first..] };
            later.iter().any(|source| source.overlaps(slice))
        };
        let sum = result.filter(|result| !read_later(result)).unwrap_or(self.relay);
        let mut from = sources[0];
        let fetched = !here(&from);
        let last = groups.len() - 1;
        if fetched {
            self.push("get", vec![Operand::Memory(from)], vec![Operand::Memory(sum)]);
            from = sum;
        }
        for (number, group) in groups.into_iter().enumerate() {
            let away = group[0].rank != self.rank;
            let ends = std::iter::once(from).chain(group).map(Operand::Memory).collect();
            from = sum;
            if number < last {
                self.push(if away { "rre" } else { "re" }, ends, vec![Operand::Memory(sum)]);
                continue;
            }
            let result = result.unwrap_or(sum);
            let peers = dests.iter().filter(|dest| dest.memory().is_some_and(|dest| dest.rank != self.rank));
            let peers: Vec<Operand> = peers.copied().take(MOST_ENDS - 1).collect();
            let name = match (away, peers.is_empty()) {
                (false, true) => "re",
                (true, true) => "rre",
                (false, false) => "res",
                (true, false) => "rres",
            };
            let rest: Vec<Operand> = dests.iter().filter(|dest| !peers.contains(dest)).copied().collect();
            self.push(name, ends, std::iter::once(Operand::Memory(result)).chain(peers).collect());
            self.spread(result, &rest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::ids::Buffer;
    use crate::schedule::Multicast;
    use std::collections::BTreeMap;

    fn chunk(buffer: Buffer, rank: u32, start: u32) -> Slice {
        Slice { buffer, rank: Rank(rank), start, len: 1 }
    }

    /// The input chunks that a sum is made of, in the order of combination.
    type Sum = Vec<usize>;

    fn stored(memory: &mut BTreeMap<Slice, Sum>, sources: &[Operand], dests: &[Operand], names: &[Slice]) {
        let read = |operand: &Operand| {
            let slice = *operand.memory().unwrap();
            let start = vec![names.iter().position(|name| *name == slice).unwrap_or(usize::MAX)];
            memory.get(&slice).cloned().unwrap_or(start)
        };
        let sum: Sum = sources.iter().flat_map(read).collect();
        for dest in dests.iter().flat_map(Operand::slices) {
            memory.insert(dest, sum.clone());
        }
    }

    /// The lists of up to `most` of `of`, each at most once.
    fn lists<T: Copy + PartialEq>(of: &[T], most: usize) -> Vec<Vec<T>> {
        let mut all: Vec<Vec<T>> = of.iter().map(|one| vec![*one]).collect();
        let mut begin = 0;
        for _ in 1..most {
            let end = all.len();
            for at in begin..end {
                for one in of.iter().filter(|one| !all[at].contains(one)).copied().collect::<Vec<_>>() {
                    all.push([&all[at][..], &[one]].concat());
                }
            }
            begin = end;
        }
        all
    }

    /// Whatever lies where, the operations are ones of the format, and leave what the move leaves.
    #[test]
    fn operations_do_what_the_move_does() {
        let names = [
            chunk(Buffer::Data, 0, 0),
            chunk(Buffer::Data, 0, 1),
            chunk(Buffer::Data, 1, 0),
            chunk(Buffer::Data, 2, 0),
            chunk(Buffer::Scratch, 0, 0),
        ];
        let relay = chunk(Buffer::Scratch, 0, 7);
        let operands = names.map(Operand::Memory);
        let everywhere = Operand::Multicast(Multicast { buffer: Buffer::Output, start: 0, len: 1, ranks: 3 });
        let mut dests = lists(&operands, 3);
        dests.push(vec![everywhere]);
        dests.push(vec![operands[2], everywhere, operands[0]]);
        for sources in lists(&operands, 4) {
            for dests in &dests {
                let (mut due, mut found) = (BTreeMap::new(), BTreeMap::new());
                stored(&mut due, &sources, dests, &names);
                let pieces = pieces(Rank(0), &sources, dests, relay).unwrap();
                for Piece { name, sources, dests } in &pieces {
                    let here = |ends: &[Operand]| {
                        ends.iter().all(|end| end.memory().is_some_and(|slice| slice.rank == Rank(0)))
                    };
                    let away = |ends: &[Operand]| {
                        ends.iter().all(|end| end.memory().is_some_and(|slice| slice.rank != Rank(0)))
                    };
                    let many = sources.len() > 1;
                    let right = match *name {
                        "copy" => !many && dests.len() == 1 && here(sources) && here(dests),
                        "get" => !many && dests.len() == 1 && away(sources) && here(dests),
                        "put" => sources.len() == dests.len() && here(sources) && away(dests),
                        "gstore" => !many && here(sources) && *dests == [everywhere],
                        "re" => many && here(sources) && dests.len() == 1 && here(dests),
                        "rre" => {
                            many && here(&sources[..1])
                                && away(&sources[1..])
                                && dests.len() == 1
                                && here(dests)
                        }
                        "res" => {
                            many && here(sources) && here(&dests[..1]) && dests.len() > 1 && away(&dests[1..])
                        }
                        "rres" => {
                            many && here(&sources[..1])
                                && away(&sources[1..])
                                && here(&dests[..1])
                                && dests.len() > 1
                                && away(&dests[1..])
                        }
                        _ => false,
                    };
                    assert!(right, "{sources:?} {dests:?}: {pieces:?}");
                    let apart = *name == "put";
                    stored(&mut found, if apart { &sources[..1] } else { sources }, dests, &names);
                }
                found.remove(&relay);
                // Two summands may change places.
                for sum in due.values_mut().chain(found.values_mut()).filter(|sum| sum.len() > 1) {
                    sum[..2].sort_unstable();
                }
                // What is copied to itself need not be.
                due.retain(|at, sum| {
                    found.contains_key(at) || *sum != [names.iter().position(|n| n == at).unwrap_or(9)]
                });
                assert_eq!(due, found, "{sources:?} {dests:?}: {pieces:?}");
            }
        }
    }

    #[test]
    fn long_moves_are_split() {
        let own = Operand::Memory(chunk(Buffer::Data, 0, 0));
        let peers: Vec<_> = (1..24).map(|rank| Operand::Memory(chunk(Buffer::Data, rank, 0))).collect();
        let relay = chunk(Buffer::Scratch, 0, 0);
        let all = [&[own][..], &peers].concat();
        for (sources, dests) in [(vec![own], peers.clone()), (all.clone(), vec![own]), (all.clone(), all)] {
            let pieces = pieces(Rank(0), &sources, &dests, relay).unwrap();
            let most = |piece: &Piece| piece.sources.len().max(piece.dests.len());
            assert!(pieces.len() > 2 && pieces.iter().all(|piece| most(piece) <= 10), "{pieces:?}");
        }
    }
}
