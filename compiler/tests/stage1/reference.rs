//! What stage 1 has to say of a program, by brute force: multisets of inputs in every chunk. Shares nothing with the
//! compiler but the program itself.

use quadrille_compiler::program::Program;
use quadrille_compiler::program::ids::{Buffer, Location, Rank, Slice};
use quadrille_compiler::program::kind::{Expected, Kind, Shape};
use std::collections::{BTreeMap, BTreeSet};

/// Input chunks (rank, chunk), each with how often.
pub(crate) type Contents = BTreeMap<(u32, u32), u64>;

/// What a program does.
pub(crate) struct Verdict {
    /// An operation that breaks a rule by itself.
    pub(crate) bad_operation: bool,
    /// A read of a chunk that holds nothing.
    pub(crate) bad_read: bool,
    /// Output chunks with a wrong value or none.
    pub(crate) wrong: BTreeSet<(u32, u32)>,
    /// What every chunk holds at the end.
    pub(crate) contents: BTreeMap<Location, Contents>,
}

impl Verdict {
    pub(crate) fn right(&self) -> bool {
        !self.bad_operation && !self.bad_read && self.wrong.is_empty()
    }
}

pub(crate) fn judge(program: &Program) -> Verdict {
    let shape = &program.shape;
    let mut contents = initial(shape);
    let mut positions: BTreeMap<Location, u32> = BTreeMap::new();
    let mut verdict =
        Verdict { bad_operation: false, bad_read: false, wrong: BTreeSet::new(), contents: BTreeMap::new() };
    for op in &program.ops {
        let chunks = |slice: &Slice| (0..slice.len).map(|i| slice.at(i)).collect::<Vec<_>>();
        let dests: Vec<_> = op.dests.iter().flat_map(chunks).collect();
        verdict.bad_operation |= dests.iter().collect::<BTreeSet<_>>().len() < dests.len();
        verdict.bad_operation |= dests.iter().any(|at| at.buffer == Buffer::Input);
        for i in 0..op.dests[0].len {
            let mut sum = Contents::new();
            for source in &op.sources {
                match contents.get(&source.at(i)) {
                    Some(value) => value.iter().for_each(|(leaf, n)| *sum.entry(*leaf).or_default() += n),
                    None => verdict.bad_read = true,
                }
                for dest in &op.dests {
                    let apart = source != dest && chunks(source).iter().any(|at| chunks(dest).contains(at));
                    verdict.bad_operation |= apart;
                }
            }
            // Everything read and what is stored outside scratch has one size.
            let size = |at: Location| match at.buffer {
                Buffer::Scratch => positions.get(&at).copied(),
                _ => Some(at.chunk % shape.chunks),
            };
            let stored = op.dests.iter().filter(|dest| dest.buffer != Buffer::Scratch);
            let sizes: BTreeSet<u32> =
                op.sources.iter().chain(stored).filter_map(|slice| size(slice.at(i))).collect();
            verdict.bad_operation |= sizes.len() > 1 && !program.divisible;
            let size = sizes.first().copied().unwrap_or(0);
            let kept = op.dests.iter().filter(|dest| dest.buffer == Buffer::Scratch);
            positions.extend(kept.map(|dest| (dest.at(i), size)));
            for dest in &op.dests {
                contents.insert(dest.at(i), sum.clone());
            }
        }
    }
    let mut due = outputs(shape);
    if shape.kind == Kind::Custom {
        due.extend(promised(program));
    }
    for (at, place, due) in due {
        if contents.get(&at) != Some(&due) {
            verdict.wrong.insert(place);
        }
    }
    verdict.contents = contents;
    verdict
}

/// Every rank's input chunks where they lie at the start.
fn initial(shape: &Shape) -> BTreeMap<Location, Contents> {
    let (n, c) = (shape.ranks, shape.chunks);
    let mut contents = BTreeMap::new();
    for rank in 0..n {
        let chunks = match shape.kind {
            Kind::Broadcast | Kind::Scatter if rank != shape.root.0 => 0,
            Kind::AllReduce | Kind::AllGather | Kind::Broadcast | Kind::Reduce | Kind::Gather => c,
            Kind::SendRecv | Kind::Custom => c,
            Kind::ReduceScatter | Kind::AllToAll | Kind::Scatter => n * c,
        };
        for chunk in 0..chunks {
            let (buffer, index) = match (shape.in_place, shape.kind) {
                (false, _) => (Buffer::Input, chunk),
                (true, Kind::AllGather) => (Buffer::Data, rank * c + chunk),
                (true, _) => (Buffer::Data, chunk),
            };
            let at = Location { buffer, rank: Rank(rank), chunk: index };
            contents.insert(at, Contents::from([((rank, chunk), 1)]));
        }
    }
    contents
}

/// What a custom program promises of its output chunks.
fn promised(program: &Program) -> Vec<(Location, (u32, u32), Contents)> {
    let shape = &program.shape;
    let buffer = if shape.in_place { Buffer::Data } else { Buffer::Output };
    let mut promised = Vec::new();
    for rank in 0..shape.ranks {
        for chunk in 0..shape.chunks {
            let mut due = Contents::new();
            match program.expected(Rank(rank), chunk) {
                Expected::Copied(leaf) => drop(due.insert((leaf.rank.0, leaf.chunk), 1)),
                Expected::Combined(inputs) => {
                    inputs.iter().for_each(|leaf| *due.entry((leaf.rank.0, leaf.chunk)).or_default() += 1)
                }
                _ => continue,
            }
            promised.push((Location { buffer, rank: Rank(rank), chunk }, (rank, chunk), due));
        }
    }
    promised
}

/// Every output chunk: where it lies, its rank and index, what it has to hold.
fn outputs(shape: &Shape) -> Vec<(Location, (u32, u32), Contents)> {
    let (n, c) = (shape.ranks, shape.chunks);
    let everybodys = |chunk: u32| (0..n).map(|rank| ((rank, chunk), 1)).collect::<Contents>();
    let mut outputs = Vec::new();
    let mut add = |rank: u32, chunk: u32, due: Contents| {
        let in_place_index = if shape.kind == Kind::ReduceScatter { rank * c + chunk } else { chunk };
        let (buffer, index) =
            if shape.in_place { (Buffer::Data, in_place_index) } else { (Buffer::Output, chunk) };
        outputs.push((Location { buffer, rank: Rank(rank), chunk: index }, (rank, chunk), due));
    };
    for rank in 0..n {
        for position in 0..c {
            match shape.kind {
                Kind::Reduce | Kind::Gather if rank != shape.root.0 => {}
                // A program of this kind that promises nothing is refused before it is run.
                Kind::Custom => {}
                Kind::AllReduce | Kind::Reduce => add(rank, position, everybodys(position)),
                Kind::Scatter => {
                    add(rank, position, Contents::from([((shape.root.0, rank * c + position), 1)]))
                }
                Kind::SendRecv => {
                    add(rank, position, Contents::from([(((rank + n - 1) % n, position), 1)]));
                }
                Kind::ReduceScatter => add(rank, position, everybodys(rank * c + position)),
                Kind::Broadcast => add(rank, position, Contents::from([((shape.root.0, position), 1)])),
                Kind::AllGather | Kind::Gather => (0..n).for_each(|peer| {
                    add(rank, peer * c + position, Contents::from([((peer, position), 1)]));
                }),
                Kind::AllToAll => (0..n).for_each(|peer| {
                    add(rank, peer * c + position, Contents::from([((peer, rank * c + position), 1)]));
                }),
            }
        }
    }
    outputs
}
