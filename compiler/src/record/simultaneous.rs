//! Operations that read all their sources before any of them stores, put one after the other.

use crate::diagnostic::{Check, Diagnostic};
use crate::ids::{Buffer, Rank, Slice};
use crate::kind::Shape;
use crate::program::{Op, Site};
use crate::verify::out_of_bounds::Places;
use smallvec::smallvec;
use std::collections::VecDeque;

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
        Staging { first: shape.scratch, turn: shape.chunks, used: 0, statement: 0, ranks }
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

/// A chunk that two of the operations store, if there is one.
pub(super) fn stored_twice(parts: &[Places]) -> Option<Diagnostic> {
    let mut dests = Vec::new();
    for part in parts {
        for dest in &part.dests {
            if let Some(other) = dests.iter().find(|other: &&Slice| other.overlaps(dest)) {
                let message = format!("{dest} and {other} are stored by one statement and overlap");
                return Some(
                    Diagnostic::new(Check::Overlap, None, message)
                        .note("the parts of a simultaneous assignment store in no order"),
                );
            }
        }
        dests.extend(part.dests.iter().copied());
    }
    None
}

/// The operations in an order in which none reads what an earlier one has stored: those first whose destinations no
/// other one still reads; where there is none, what the others still read of a destination is kept in scratch of the
/// rank that reads it.
pub(super) fn in_order(parts: Vec<Places>, staging: &mut Staging) -> Vec<Places> {
    let reads = |part: &Places, dests: &[Slice]| {
        part.sources.iter().any(|source| dests.iter().any(|dest| dest.overlaps(source)))
    };
    staging.statement += 1;
    let mut left: VecDeque<Places> = parts.into();
    let mut ordered = Vec::new();
    let mut kept = Vec::new();
    while let Some(first) = left.pop_front() {
        let free =
            |part: &Places, others: &VecDeque<Places>| !others.iter().any(|other| reads(other, &part.dests));
        if free(&first, &left) {
            ordered.push(first);
            continue;
        }
        let next = (0..left.len()).find(|&i| {
            !reads(&first, &left[i].dests)
                && left.iter().enumerate().all(|(j, other)| j == i || !reads(other, &left[i].dests))
        });
        if let Some(part) = next.and_then(|i| left.remove(i)) {
            ordered.push(part);
            left.push_front(first);
            continue;
        }
        keep(&first.dests, &mut left, staging, &mut kept);
        ordered.push(first);
    }
    kept.extend(ordered);
    kept
}

/// Lets `readers` read copies of what they read of `dests`; the copies are added to `kept`.
fn keep(dests: &[Slice], readers: &mut VecDeque<Places>, staging: &mut Staging, kept: &mut Vec<Places>) {
    let taken = |source: &Slice| dests.iter().any(|dest| dest.overlaps(source));
    for reader in readers {
        let rank = executor(reader);
        for source in reader.sources.iter_mut().filter(|source| taken(source)) {
            let copy = staging.take(rank, source.len);
            let site = Site { on: None, ..reader.site };
            kept.push(Places { sources: smallvec![*source], dests: smallvec![copy], site });
            *source = copy;
        }
    }
}

fn executor(part: &Places) -> Rank {
    Op::rank_of(part.site.on, &part.sources, &part.dests)
}
