//! A file to acts of thread blocks on chunks and counters: what ops name by position is looked up, ranges are split into
//! chunks, barriers into arriving and leaving.

use super::channel::{Channel, MOST_CHUNKS};
use super::document::{Document, Gpu};
use super::lane::Lane;
use super::ops::{Base, Form, Op, Ref, Sort};
use super::plan::{Act, At, Chunk, Counter, End, Plan, Tick, What};
use crate::diagnostic::{Check, Diagnostic, Loc};
use crate::interop::{MOST_MOVED, finding, out_of_bounds};
use crate::program::dtype::RedOp;
use crate::program::ids::{BlockId, Buffer, Rank, ThreadBlock};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Parts that a chunk is split into for groups of thread blocks.
const MOST_PARTS: u64 = 1 << 12;

/// Resolves a file.
///
/// Errors (`form`, `out-of-bounds`, `unsupported`): ids and chunks that there are not, and what cannot be carried out.
pub(super) fn resolve(document: Document) -> Result<Plan, Vec<Diagnostic>> {
    let mut resolving = Resolving {
        pipelines: 0,
        document: &document,
        parts: 1,
        acts: Vec::new(),
        blocks: Vec::new(),
        counters: FxHashMap::default(),
        uses: BTreeMap::new(),
        unit: None,
        combines: None,
        scratch: 0,
        plain: FxHashSet::default(),
        packets: BTreeMap::new(),
        moved: 0,
        findings: Vec::new(),
    };
    resolving.parts();
    if resolving.findings.is_empty() {
        for (gpu, rank) in document.gpus.iter().zip(0..) {
            resolving.gpu(gpu, Rank(rank));
        }
        resolving.mixed();
        resolving.looped();
    }
    let Resolving { parts, acts, blocks, counters, unit, combines, scratch, findings, .. } = resolving;
    if !findings.is_empty() {
        return Err(findings);
    }
    let mut names: Vec<(Counter, u32)> = counters.into_iter().collect();
    names.sort_unstable_by_key(|(_, number)| *number);
    Ok(Plan {
        unit_chunks: document.unit_chunks * parts as u32,
        parts: parts as u32,
        scratch,
        unit: unit.map(|(bytes, _)| bytes),
        combines,
        acts,
        blocks,
        counters: names.into_iter().map(|(counter, _)| counter).collect(),
        document,
    })
}

/// A pipeline's number among all, unit and chunks; `None` outside.
type Loop = Option<(u32, (u64, u64))>;

/// Uses of a counter in a row by one block, all in one pipeline or all outside.
struct Run {
    posts: bool,
    block: usize,
    within: Loop,
    times: u32,
    loc: Loc,
}

/// For each range its first chunk on each rank, and whether it is one of packets.
type Firsts = Vec<Vec<(At, bool)>>;

struct Resolving<'a> {
    document: &'a Document,
    /// Parts of a chunk.
    parts: u64,
    acts: Vec<Act>,
    blocks: Vec<(BlockId, Range<usize>)>,
    counters: FxHashMap<Counter, u32>,
    pipelines: u32,
    /// The use of each counter.
    uses: BTreeMap<u32, Vec<Run>>,
    /// The unit of all pipelines, and where the first stands.
    unit: Option<(u64, Loc)>,
    combines: Option<(RedOp, Loc)>,
    scratch: u32,
    /// Chunks of scratch that are used plainly.
    plain: FxHashSet<(Rank, u32)>,
    /// Chunks of packets, with where they are first named.
    packets: BTreeMap<(Rank, u32), Loc>,
    moved: u64,
    findings: Vec<Diagnostic>,
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

impl Resolving<'_> {
    fn report(&mut self, check: Check, loc: Loc, message: impl Into<String>, note: impl Into<String>) {
        self.findings.push(finding(check, loc, message).note(note));
    }

    /// Into how many parts groups of thread blocks split each chunk: as few as make all their shares whole.
    fn parts(&mut self) {
        let document = self.document;
        let ops = document.gpus.iter().flat_map(|gpu| &gpu.blocks).flat_map(|block| &block.ops);
        for op in ops.flat_map(|op| std::iter::once(op).chain(&op.body)) {
            for chunks in op.sources.iter().chain(&op.dests) {
                let share = u64::from(op.part.1) / gcd(op.part.1.into(), chunks.size);
                self.parts = self.parts / gcd(self.parts, share) * share;
                let most = document.gpus.iter().flat_map(|gpu| gpu.chunks).max().unwrap_or(0);
                if self.parts > MOST_PARTS || self.parts.saturating_mul(most) > MOST_CHUNKS {
                    let message = format!("chunks split into {} parts", self.parts);
                    let note = format!("a buffer has {MOST_CHUNKS} parts of chunks at most");
                    self.parts = 1;
                    return self.report(Check::Unsupported, op.loc, message, note);
                }
            }
        }
    }

    fn gpu(&mut self, gpu: &Gpu, rank: Rank) {
        for (block, number) in gpu.blocks.iter().zip(0..) {
            let first = self.acts.len();
            self.blocks.push((BlockId { rank, block: ThreadBlock(number) }, first..first));
            for op in &block.ops {
                if op.sort == Sort::Pipeline {
                    self.pipeline(gpu, op);
                } else {
                    self.op(gpu, op, None);
                }
            }
            let end = self.acts.len();
            if let Some((_, acts)) = self.blocks.last_mut() {
                acts.end = end;
            }
        }
    }

    fn place(&self) -> BlockId {
        self.blocks.last().map_or(BlockId::default(), |(place, _)| *place)
    }

    fn act(&mut self, op: &Op, what: What) {
        let block = self.blocks.len() - 1;
        self.acts.push(Act { block, loc: op.loc, text: op.text.clone(), what });
    }

    fn pipeline(&mut self, gpu: &Gpu, op: &Op) {
        let (unit, chunks) = op.numbers;
        match self.unit {
            Some((other, at)) if other != unit => {
                let note = format!("the one at {at} has {other}; all tiles of a call are equally large");
                self.report(
                    Check::Unsupported,
                    op.loc,
                    format!("a pipeline with units of {unit} bytes"),
                    note,
                );
            }
            _ => self.unit = self.unit.or(Some((unit, op.loc))),
        }
        if !unit.is_multiple_of(16) {
            let note = "a unit is a multiple of 16 bytes";
            self.report(Check::Unsupported, op.loc, format!("a pipeline with units of {unit} bytes"), note);
        }
        for inner in &op.body {
            let form = if let Sort::Move(form) = inner.sort { Some(form) } else { None };
            let packets = form.is_some_and(|form| {
                form.packets_from < inner.sources.len() || form.packets_to < inner.dests.len()
            });
            if packets {
                let note = "executors move packets whole, whatever the unit";
                self.report(Check::Unsupported, inner.loc, "packets in a pipeline", note);
            }
            if let Some(odd) =
                inner.sources.iter().chain(&inner.dests).find(|chunks| chunks.size != chunks_of(op))
            {
                let message = format!("{} chunks in a pipeline over {chunks}", odd.size);
                let note = "some of them would not be moved, or beyond their end";
                self.report(Check::Form, inner.loc, message, note);
            }
            self.op(gpu, inner, Some((self.pipelines, op.numbers)));
        }
        self.pipelines += 1;
    }

    fn op(&mut self, gpu: &Gpu, op: &Op, within: Loop) {
        match op.sort {
            Sort::Nop => self.act(op, What::Sync),
            Sort::Pipeline => {}
            Sort::Flush => self.flush(op),
            Sort::Barrier => self.barrier(gpu, op, within),
            Sort::Acquire => {
                let ticks = self.semaphores(gpu, op, within);
                self.act(op, What::Await(ticks));
            }
            Sort::Release => {
                let ticks = self.semaphores(gpu, op, within);
                self.act(op, What::Post(ticks));
            }
            Sort::Signal { relaxed } => {
                let ticks = self.channels(op, within, (relaxed, true));
                self.act(op, What::Post(ticks));
            }
            Sort::Wait { relaxed } => {
                let ticks = self.channels(op, within, (relaxed, false));
                self.act(op, What::Await(ticks));
            }
            Sort::Move(form) => {
                let chunks = self.chunks(op, form);
                self.act(op, What::Move(chunks));
                if form.signals {
                    let ticks = self.channels(op, within, (false, true));
                    self.act(op, What::Post(ticks));
                }
                if form.flushes {
                    self.flush(op);
                }
            }
        }
    }

    fn flush(&mut self, op: &Op) {
        for (&(id, _), thread) in op.ids.iter().zip(0..) {
            self.act(op, What::Flush { channels: vec![id as u32], thread: Some(thread) });
        }
    }

    fn counter(&mut self, op: &Op, counter: Counter, posts: bool, within: Loop) -> u32 {
        let next = self.counters.len() as u32;
        let number = *self.counters.entry(counter).or_insert(next);
        let block = self.blocks.len() - 1;
        let runs = self.uses.entry(number).or_default();
        let last = runs.iter_mut().rev().find(|run| (run.posts, run.block) == (posts, block));
        match last.filter(|run| run.within == within) {
            Some(run) => run.times += 1,
            None => runs.push(Run { posts, block, within, times: 1, loc: op.loc }),
        }
        number
    }

    /// Counters that pipelines use: each unit's posts have to meet the same unit's waits, however many units there are.
    fn looped(&mut self) {
        let mut names: Vec<_> =
            self.counters.iter().map(|(counter, number)| (*number, counter.name())).collect();
        names.sort_unstable();
        for ((_, name), runs) in names.into_iter().zip(std::mem::take(&mut self.uses).into_values()) {
            let Some(first) = runs.iter().find(|run| run.within.is_some()) else { continue };
            let side = |posts: bool| -> Vec<_> {
                let own = runs.iter().filter(|run| run.posts == posts);
                own.map(|run| (run.within.map(|(_, numbers)| numbers), run.times)).collect()
            };
            let blocks = |posts: bool| -> BTreeSet<usize> {
                runs.iter().filter(|run| run.posts == posts).map(|run| run.block).collect()
            };
            if side(true) != side(false) || blocks(true).len() > 1 || blocks(false).len() > 1 {
                let message = format!("{name} is not raised and waited for alike in pipelines and outside");
                let note =
                    "how often each happens depends on the message's size, so that units would not meet";
                self.report(Check::Unsupported, first.loc, message, note);
            }
        }
    }

    /// The channels that an op names, as counters that it raises, or that it waits for.
    fn channels(&mut self, op: &Op, within: Loop, (relaxed, posts): (bool, bool)) -> Vec<Tick> {
        let place = self.place();
        let (rank, sort) = (place.rank.0, op.channel);
        let gpu = &self.document.gpus[rank as usize];
        let own = &gpu.blocks[place.block.0 as usize].channels[sort as usize];
        let mut ticks = Vec::new();
        for (&(id, at), thread) in op.ids.iter().zip(0..) {
            let peers = &gpu.channels[sort as usize];
            let channel = own
                .get(id as usize)
                .and_then(|(channel, _)| peers.get(*channel as usize).map(|peer| (*channel as usize, *peer)));
            let Some((channel, peer)) = channel else {
                self.absent(at, format!("{} channel {id}", sort.name()), own.len(), peers.len());
                continue;
            };
            let nth = peers[..channel].iter().filter(|other| **other == peer).count() as u32;
            let (from, to) = if posts { (rank, peer) } else { (peer, rank) };
            let port = sort == Channel::Port;
            // A port knows no relaxed signals.
            let relaxed = relaxed && !port;
            let counter = self.counter(op, Counter::Channel { port, from, to, nth }, posts, within);
            ticks.push(Tick { counter, relaxed, thread: Some(thread), port });
        }
        ticks
    }

    fn absent(&mut self, at: Loc, what: String, own: usize, of_gpu: usize) {
        let note = format!("the thread block lists {own}, of {of_gpu} of its GPU");
        self.report(Check::Form, at, format!("there is no {what}"), note);
    }

    fn semaphores(&mut self, gpu: &Gpu, op: &Op, within: Loop) -> Vec<Tick> {
        let rank = self.place().rank.0;
        let mut ticks = Vec::new();
        for (&(id, at), thread) in op.ids.iter().zip(0..) {
            let Some(&(initial, _)) = gpu.semaphores.get(id as usize) else {
                let note = format!("gpu {rank} lists {}", gpu.semaphores.len());
                self.report(Check::Form, at, format!("there is no semaphore {id}"), note);
                continue;
            };
            let counter = Counter::Semaphore { gpu: rank, id: id as u32, initial: initial as u32 };
            let counter = self.counter(op, counter, op.sort == Sort::Release, within);
            ticks.push(Tick { counter, relaxed: false, thread: Some(thread), port: false });
        }
        ticks
    }

    /// Every thread block that meets at a barrier tells every other one.
    fn barrier(&mut self, gpu: &Gpu, op: &Op, within: Loop) {
        let BlockId { rank, block } = self.place();
        let (id, count) = op.numbers;
        let meets = |op: &&Op| op.sort == Sort::Barrier && op.numbers.0 == id;
        let all =
            |ops: &[Op]| ops.iter().flat_map(|op| std::iter::once(op).chain(&op.body)).filter(meets).count();
        let others: Vec<(u32, usize)> = gpu
            .blocks
            .iter()
            .zip(0..)
            .map(|(other, number)| (number, all(&other.ops)))
            .filter(|(_, n)| *n > 0)
            .collect();
        let own = others.iter().find(|(number, _)| *number == block.0).map_or(0, |(_, n)| *n);
        let say = format!("barrier {id} is for {count} thread blocks");
        if others.len() as u64 != count {
            let meet = others.len();
            let check = if (meet as u64) < count { Check::Deadlock } else { Check::Form };
            return self.report(check, op.loc, say, format!("{meet} of gpu {} come to it", rank.0));
        }
        if let Some((other, times)) = others.iter().find(|(_, n)| *n != own) {
            let note = format!("tb {} comes to it {own} times, and tb {other} {times}", block.0);
            return self.report(Check::Deadlock, op.loc, say, note);
        }
        let ticks = |from_own: bool, this: &mut Self| -> Vec<Tick> {
            let others = others.iter().filter(|(other, _)| *other != block.0);
            others
                .map(|&(other, _)| {
                    let (of, by) = if from_own { (block.0, other) } else { (other, block.0) };
                    let counter = Counter::Barrier { gpu: rank.0, id: id as u32, of, by };
                    let counter = this.counter(op, counter, from_own, within);
                    Tick { counter, relaxed: false, thread: None, port: false }
                })
                .collect()
        };
        let (arrive, leave) = (ticks(true, self), ticks(false, self));
        self.act(op, What::Sync);
        self.act(op, What::Post(arrive));
        self.act(op, What::Await(leave));
        self.act(op, What::Sync);
    }

    fn chunks(&mut self, op: &Op, form: Form) -> Vec<Chunk> {
        if let Some(wish) = op.combines {
            match self.combines {
                Some((first, at)) if first != wish => {
                    let note =
                        format!("the one at {at} combines by {}; a call has one operator", first.name());
                    let message = format!("an operation that combines by {}", wish.name());
                    self.report(Check::Unsupported, op.loc, message, note);
                }
                _ => self.combines = self.combines.or(Some((wish, op.loc))),
            }
        }
        let found = self.findings.len();
        let sides = [(&op.sources, form.packets_from), (&op.dests, form.packets_to)];
        let [sources, dests] = sides.map(|(refs, from)| -> Vec<Vec<(At, bool)>> {
            refs.iter().zip(0..).map(|(chunks, i)| self.first(op, chunks, i >= from)).collect()
        });
        let Some(size) = op.sources.first().map(|first| first.size * self.parts / u64::from(op.part.1))
        else {
            return Vec::new();
        };
        let ends: usize = sources.iter().chain(&dests).map(Vec::len).sum();
        self.moved = self.moved.saturating_add(size.saturating_mul(ends as u64));
        if self.moved > MOST_MOVED {
            if self.moved - size * ends as u64 <= MOST_MOVED {
                let note = format!("{MOST_MOVED} are the most");
                self.report(Check::Unsupported, op.loc, "too many chunks are moved", note);
            }
            return Vec::new();
        }
        if self.findings.len() > found {
            return Vec::new();
        }
        let switched = |refs: &[Ref]| refs.iter().any(|chunks| matches!(chunks.base, Base::Switch(_)));
        let end = |&(at, packet): &(At, bool), offset: u64| {
            let at = At { chunk: at.chunk + offset as u32, ..at };
            if packet { End::Packet(at) } else { End::Plain(at) }
        };
        let lane = |offset: u64| Lane { sort: form.lanes, offset: offset as u32, size: size as u32 };
        let port = op.channel == Channel::Port;
        let mut channels: Vec<u32> = op.ids.iter().filter(|_| port).map(|(id, _)| *id as u32).collect();
        if port && channels.is_empty() {
            // Executors take the first.
            channels.push(0);
        }
        let mut chunks = Vec::new();
        let groups: Vec<(Firsts, Firsts)> = match form.apart {
            true => sources.into_iter().zip(dests).map(|(source, dest)| (vec![source], vec![dest])).collect(),
            false => vec![(sources, dests)],
        };
        for (group, (sources, dests)) in groups.into_iter().enumerate() {
            let own = channels.get(group).filter(|_| form.apart).map(|channel| vec![*channel]);
            let ports = own.unwrap_or_else(|| channels.clone());
            for offset in 0..size {
                let of = |side: &[Vec<(At, bool)>]| -> Vec<End> {
                    side.iter().flatten().map(|first| end(first, offset)).collect()
                };
                let (mut sources, mut dests) = (of(&sources), of(&dests));
                if form.packets_first && sources.len() > 1 {
                    sources.rotate_left(1);
                }
                let scratch = |end: &End| matches!(end, End::Plain(at) if at.buffer == Buffer::Scratch);
                let strong = switched(&op.sources) || switched(&op.dests);
                // Packets that a switch brings back to where they come from are there.
                dests.retain(|dest| !matches!(dest, End::Packet(_)) || !sources.contains(dest));
                let switch = strong
                    && !sources.iter().chain(&dests).any(scratch)
                    && !dests.iter().any(|end| matches!(end, End::Packet(_)));
                for end in sources.iter().chain(&dests) {
                    self.used(end, op.loc);
                }
                let (ports, lane) = (ports.clone(), lane(offset));
                chunks.push(Chunk { sources, dests, switch, strong, ports, lane, loc: op.loc });
            }
        }
        chunks
    }

    fn used(&mut self, end: &End, loc: Loc) {
        match end {
            End::Plain(at) if at.buffer == Buffer::Scratch => {
                self.scratch = self.scratch.max(at.chunk + 1);
                self.plain.insert((at.rank, at.chunk));
            }
            End::Plain(_) => {}
            End::Packet(at) => {
                self.packets.entry((at.rank, at.chunk)).or_insert(loc);
            }
        }
    }

    /// The location of the first chunk of this thread block's part of a range; one on each rank of a switch channel.
    fn first(&mut self, op: &Op, chunks: &Ref, packet: bool) -> Vec<(At, bool)> {
        let place = self.place();
        let gpu = &self.document.gpus[place.rank.0 as usize];
        let block = &gpu.blocks[place.block.0 as usize];
        let (ranks, buffer) = match chunks.base {
            Base::Local(buffer) => (vec![place.rank.0], buffer),
            Base::Remote(id) => {
                let own = &block.remote[op.channel as usize];
                let found = own.get(id as usize).and_then(|(id, _)| gpu.remote.get(*id as usize));
                let Some(remote) = found else {
                    let what = format!("remote buffer {id} for {} channels", op.channel.name());
                    self.absent(chunks.loc, what, own.len(), gpu.remote.len());
                    return Vec::new();
                };
                (vec![remote.rank], remote.buffer)
            }
            Base::Switch(id) => {
                let own = &block.channels[Channel::Switch as usize];
                let found = own.get(id as usize).and_then(|(id, _)| gpu.switches.get(*id as usize));
                let Some(switch) = found else {
                    self.absent(chunks.loc, format!("switch channel {id}"), own.len(), gpu.switches.len());
                    return Vec::new();
                };
                (switch.ranks.clone(), switch.buffer)
            }
        };
        if packet && buffer != Buffer::Scratch {
            let note = format!(
                "`{}` has packets there: they hold a flag beside each word, for which only scratch has room",
                op.name
            );
            self.report(Check::Form, chunks.loc, "packets outside scratch", note);
            return Vec::new();
        }
        if packet && !self.document.packets {
            let note = "scratch of a plan of protocol Simple has no room for the flags of its packets";
            self.report(Check::Form, op.loc, "packets in a plan of protocol Simple", note);
            return Vec::new();
        }
        for &rank in &ranks {
            let of = match buffer {
                Buffer::Output => 1,
                Buffer::Scratch => 2,
                Buffer::Input | Buffer::Data => 0,
            };
            let size = self.document.gpus.get(rank as usize).map_or(0, |gpu| gpu.chunks[of]);
            if chunks.index + chunks.size > size {
                let name = ["i", "o", "s"][of];
                let message = out_of_bounds(name, chunks.index as i64, chunks.size as i64, size);
                self.report(Check::OutOfBounds, chunks.loc, message, format!("gpu {rank} says so"));
                return Vec::new();
            }
        }
        let (part, group) = op.part;
        let share = chunks.size * self.parts / u64::from(group);
        let chunk = (chunks.index * self.parts + u64::from(part) * share) as u32;
        ranks.iter().map(|&rank| (At { rank: Rank(rank), buffer, chunk }, packet)).collect()
    }

    /// Chunks of packets take twice their room, from twice their place on.
    fn mixed(&mut self) {
        let packets = std::mem::take(&mut self.packets);
        for ((rank, chunk), loc) in packets {
            let own = [2 * chunk, 2 * chunk + 1];
            if let Some(plain) = own.into_iter().find(|at| self.plain.contains(&(rank, *at))) {
                let message =
                    format!("packets of chunk {chunk} of scratch lie in chunk {plain} of gpu {}", rank.0);
                let note = "a chunk of packets has twice the room of a plain one, which is used plainly, too";
                return self.report(Check::Form, loc, message, note);
            }
        }
    }
}

/// The chunks that a pipeline goes over.
fn chunks_of(pipeline: &Op) -> u64 {
    pipeline.numbers.1
}
