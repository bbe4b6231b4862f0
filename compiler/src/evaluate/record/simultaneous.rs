//! Operations that read all their sources before any of them stores, put one after the other.

use crate::diagnostic::{Check, Diagnostic};
use crate::program::ids::{Buffer, Rank, Slice};
use crate::program::kind::Shape;
use crate::program::{Op, Site};
use crate::verify::program::out_of_bounds::OpSlices;
use smallvec::smallvec;
use std::collections::{BTreeMap, BTreeSet};

/// Chunks that a rank stages at least before it takes one again: what is read late would otherwise make the next
/// rounds of an exchange wait.
const TURN: u32 = 8;

/// Chunks of scratch beyond the program's own, taken in turn, so that one is overwritten as late as possible.
#[derive(Debug)]
pub(super) struct Staging {
    /// The program's own.
    first: u32,
    /// Chunks that a rank uses before a statement begins anew.
    turn: u32,
    /// Chunks used by the rank that uses most.
    used: u32,
    /// The number of the statement.
    statement: u64,
    /// Of each rank: the last statement that took a chunk, and the next chunk.
    ranks: Vec<(u64, u32)>,
}

impl Staging {
    pub(super) fn new(shape: &Shape) -> Staging {
        let ranks = vec![(0, 0); shape.ranks as usize];
        Staging { first: shape.scratch, turn: shape.chunks.max(TURN), used: 0, statement: 0, ranks }
    }

    /// How many chunks each rank needs.
    pub(super) fn chunks(&self) -> u32 {
        self.used
    }

    fn take(&mut self, rank: Rank, len: u32) -> Slice {
        let (statement, next) = &mut self.ranks[rank.0 as usize];
        if *statement != self.statement {
            *statement = self.statement;
            if *next + len > self.turn {
                *next = 0;
            }
        }
        let start = self.first + *next;
        *next += len;
        self.used = self.used.max(*next);
        Slice { buffer: Buffer::Scratch, rank, start, len }
    }
}

/// The slices that the operations store, by buffer, rank and first chunk, each with its end and the
/// number of its operation. No two overlap.
#[derive(Default)]
struct Stores(BTreeMap<(Buffer, Rank, u32), (u32, usize)>);

impl Stores {
    /// Adds what an operation stores; the slice that it overlaps, if there is one, is given back instead.
    fn add(&mut self, slice: &Slice, operation: usize) -> Option<Slice> {
        let met = self.overlapping(slice).next();
        if let Some((met, _)) = met {
            return Some(met);
        }
        self.0.insert((slice.buffer, slice.rank, slice.start), (slice.end(), operation));
        None
    }

    /// The stored slices that share a chunk with `slice`, with their operations.
    fn overlapping(&self, slice: &Slice) -> impl Iterator<Item = (Slice, usize)> {
        let Slice { buffer, rank, start, .. } = *slice;
        let before = self.0.range((buffer, rank, 0)..(buffer, rank, start)).next_back();
        let inside = self.0.range((buffer, rank, start)..(buffer, rank, slice.end()));
        let met = before.filter(|(_, (end, _))| *end > start).into_iter().chain(inside);
        met.map(move |(&(.., first), &(end, operation))| {
            (Slice { buffer, rank, start: first, len: end - first }, operation)
        })
    }
}

/// A chunk that two of the operations store, if there is one.
pub(super) fn stored_twice(parts: &[OpSlices]) -> Option<Diagnostic> {
    let mut stores = Stores::default();
    for (i, part) in parts.iter().enumerate() {
        for dest in &part.dests {
            if let Some(other) = stores.add(dest, i) {
                let message = if *dest == other {
                    format!("{dest} is stored twice by one statement")
                } else {
                    format!("{dest} and {other} are stored by one statement and overlap")
                };
                return Some(
                    Diagnostic::new(Check::Overlap, None, message)
                        .note("the parts of a simultaneous assignment store in no order"),
                );
            }
        }
    }
    None
}

/// The operations in an order in which none reads what an earlier one has stored: those first whose destinations no
/// other one still reads. Where there is none, operations wait for each other in a circle; what ranks of the circle
/// read of each other's destinations is then kept in scratch of the rank that reads it, on all of them alike, so that
/// none has to wait for another one's result. Takes time in proportion to the slices.
pub(super) fn in_order(mut parts: Vec<OpSlices>, staging: &mut Staging) -> Vec<OpSlices> {
    staging.statement += 1;
    let mut order = PartOrder::new(&parts);
    let mut ordered = Vec::with_capacity(parts.len());
    let mut kept = Vec::new();
    let executors: Vec<Rank> = parts.iter().map(executor).collect();
    while let Some(&first) = order.left.first() {
        if order.free.is_empty() {
            let circle = order.circle(first);
            for &part in &circle {
                let remote =
                    |reader: &usize| circle.contains(reader) && executors[*reader] != executors[part];
                keep(part, remote, &mut parts, &mut order, staging, &mut kept);
            }
        }
        let next = order.free.pop_first().unwrap_or_else(|| {
            keep(first, |_| true, &mut parts, &mut order, staging, &mut kept);
            order.free.remove(&first);
            first
        });
        order.left.remove(&next);
        ordered.push(next);
        for source in 0..parts[next].sources.len() {
            order.read(next, source);
        }
    }
    let mut parts: Vec<Option<OpSlices>> = parts.into_iter().map(Some).collect();
    kept.extend(ordered.into_iter().filter_map(|part| parts[part].take()));
    kept
}

/// The operations that may come next.
struct PartOrder {
    /// Those to come.
    left: BTreeSet<usize>,
    /// Those of them whose destinations no other one still reads.
    free: BTreeSet<usize>,
    /// Of each operation: the sources of others, by operation and number, that read what it stores.
    readers: Vec<Vec<(usize, usize)>>,
    /// How many of them are to come.
    reading: Vec<usize>,
    /// Of each source of each operation: the other operations that store some of it; empty when it has been read.
    stored_by: Vec<Vec<Vec<usize>>>,
}

impl PartOrder {
    fn new(parts: &[OpSlices]) -> PartOrder {
        let mut stores = Stores::default();
        for (i, part) in parts.iter().enumerate() {
            for dest in &part.dests {
                stores.add(dest, i);
            }
        }
        let mut readers = vec![Vec::new(); parts.len()];
        let mut stored_by = Vec::with_capacity(parts.len());
        for (i, part) in parts.iter().enumerate() {
            let mut of_part = Vec::with_capacity(part.sources.len());
            for (number, source) in part.sources.iter().enumerate() {
                let others = stores.overlapping(source).map(|(_, other)| other).filter(|&other| other != i);
                let others: Vec<usize> = others.collect();
                others.iter().for_each(|&other| readers[other].push((i, number)));
                of_part.push(others);
            }
            stored_by.push(of_part);
        }
        let reading: Vec<usize> = readers.iter().map(Vec::len).collect();
        let free = (0..parts.len()).filter(|&i| reading[i] == 0).collect();
        PartOrder { left: (0..parts.len()).collect(), free, readers, reading, stored_by }
    }

    /// The operations that still read what `part` stores.
    fn reading(&self, part: usize) -> impl Iterator<Item = usize> {
        let readers = self.readers[part].iter();
        readers
            .filter(|(reader, source)| !self.stored_by[*reader][*source].is_empty())
            .map(|(reader, _)| *reader)
    }

    /// The operations of a circle in which each waits for the next one, and of all circles that hang together with it;
    /// found from `first`, when none is free.
    fn circle(&self, first: usize) -> BTreeSet<usize> {
        let mut seen = BTreeSet::new();
        let mut at = first;
        while seen.insert(at) {
            at = self.reading(at).next().unwrap_or(at);
        }
        let storing = |part: usize| self.stored_by[part].iter().flatten().copied();
        let ahead = reached(at, |part| self.reading(part).collect());
        let behind = reached(at, |part| storing(part).filter(|other| self.left.contains(other)).collect());
        ahead.intersection(&behind).copied().collect()
    }

    /// A source has been read, or its copy will be.
    fn read(&mut self, part: usize, source: usize) {
        for other in std::mem::take(&mut self.stored_by[part][source]) {
            self.reading[other] -= 1;
            if self.reading[other] == 0 && self.left.contains(&other) {
                self.free.insert(other);
            }
        }
    }
}

/// Returns all that can be reached from `start`, itself included.
fn reached(start: usize, next: impl Fn(usize) -> Vec<usize>) -> BTreeSet<usize> {
    let mut seen = BTreeSet::from([start]);
    let mut open = vec![start];
    while let Some(at) = open.pop() {
        open.extend(next(at).into_iter().filter(|&other| seen.insert(other)));
    }
    seen
}

fn executor(part: &OpSlices) -> Rank {
    Op::rank_of(part.site.on, &part.sources, &part.dests)
}

/// Lets those of the operations to come that `wanted` names read copies of what they read of `part`'s destinations; the
/// copies are added to `kept`.
fn keep(
    part: usize,
    wanted: impl Fn(&usize) -> bool,
    parts: &mut [OpSlices],
    order: &mut PartOrder,
    staging: &mut Staging,
    kept: &mut Vec<OpSlices>,
) {
    let readers = order.readers[part].clone();
    for (reader, number) in readers.into_iter().filter(|(reader, _)| wanted(reader)) {
        if order.stored_by[reader][number].is_empty() {
            continue;
        }
        order.read(reader, number);
        let reader = &mut parts[reader];
        let rank = executor(reader);
        let source = reader.sources[number];
        let copy = staging.take(rank, source.len);
        let site = Site { on: None, ..reader.site };
        kept.push(OpSlices { sources: smallvec![source], dests: smallvec![copy], site });
        reader.sources[number] = copy;
    }
}
