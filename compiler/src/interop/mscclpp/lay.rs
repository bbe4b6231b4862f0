//! A judged plan as a program and the tasks of its schedule: one operation and one task for each chunk of each move, and a
//! task without a move for each signal and wait.

use super::judge::{Edge, judge};
use super::plan::{At, Chunk, End, Plan, What};
use super::run::{PlanOrder, Point};
use crate::diagnostic::{Check, Diagnostic, SourceFile};
use crate::lower::{self, KeptPlan, Task, TaskMessage, Tasks};
use crate::options::{Given, Protocol, StatementOptions, Transport};
use crate::program::Scaling;
use crate::program::ids::{BlockId, Buffer, Location, Rank, Slice};
use crate::program::kind::Shape;
use crate::program::positions::Positions;
use crate::program::{Op, OpId, Program, Site, Statement, StatementId, Trails};
use crate::verify;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// A program and the plan that carries it out.
#[derive(Debug)]
pub(super) struct Laid {
    pub(super) program: Program,
    pub(super) kept: KeptPlan,
}

/// Lays a plan out. Every read of a packet gets a message of its own, which takes the packet's place; packets that a thread
/// block stores for itself are kept in scratch, and those that nobody reads are not stored.
///
/// Errors (`data-race`): what its synchronization leaves unordered.
pub(super) fn lay(
    plan: &Plan,
    order: &PlanOrder,
    shape: Shape,
    source: &SourceFile,
) -> Result<Laid, Vec<Diagnostic>> {
    let edges = judge(plan, order, |at| locate(&shape, at))?;
    let mut laying = Laying::new(plan, order, shape, source);
    for &point in &order.points {
        laying.point(point);
    }
    Ok(laying.finish(edges))
}

/// The location of a chunk. In place `i` and `o` are parts of one buffer.
pub(super) fn locate(shape: &Shape, at: At) -> Location {
    match at.buffer {
        Buffer::Input | Buffer::Data => shape.input_location(at.rank, at.chunk),
        Buffer::Output => shape.output_location(at.rank, at.chunk),
        Buffer::Scratch => Location { buffer: Buffer::Scratch, rank: at.rank, chunk: at.chunk },
    }
}

/// The place at which a read of a packet finds it.
#[derive(Clone, Copy)]
enum Stored {
    /// In the reading block's own scratch.
    Own(u32),
    /// In a message, by number.
    Sent(u32),
}

struct Laying<'a> {
    plan: &'a Plan,
    program: Program,
    positions: Positions,
    tasks: Tasks,
    place: Vec<BlockId>,
    switched: Vec<bool>,
    /// For each packet what its reads find, in their order; with where they read.
    packets: FxHashMap<At, Vec<(Point, Stored)>>,
    /// The reading rank's scratch that stands for each message.
    flight: Vec<Slice>,
    chunk_name: u32,
}

impl<'a> Laying<'a> {
    fn new(plan: &'a Plan, order: &PlanOrder, mut shape: Shape, source: &SourceFile) -> Laying<'a> {
        let mut writer: FxHashMap<At, usize> = FxHashMap::default();
        let mut packets: FxHashMap<At, Vec<(Point, Stored)>> = FxHashMap::default();
        let mut tasks = Tasks::default();
        let mut reads: Vec<(At, Point)> = Vec::new();
        for &point in &order.points {
            let act = &plan.acts[point.act as usize];
            let What::Move(chunks) = &act.what else { continue };
            let Some(chunk) = chunks.get(point.chunk as usize) else { continue };
            for end in &chunk.dests {
                if let End::Packet(at) = end {
                    writer.insert(*at, act.block);
                }
            }
            let packets = chunk
                .sources
                .iter()
                .filter_map(|end| if let End::Packet(at) = end { Some(*at) } else { None });
            reads.extend(packets.map(|at| (at, point)));
        }
        // Scratch: what the file uses plainly, packets that blocks keep for themselves, messages.
        let mut kept: FxHashMap<At, u32> = FxHashMap::default();
        let mut kept_of = vec![0; shape.ranks as usize];
        for (at, point) in &reads {
            let own = writer.get(at) == Some(&plan.acts[point.act as usize].block);
            if own && !kept.contains_key(at) {
                let next = &mut kept_of[at.rank.0 as usize];
                kept.insert(*at, shape.scratch + *next);
                *next += 1;
            }
        }
        shape.scratch += kept_of.into_iter().max().unwrap_or(0);
        let mut sent_to = vec![0; shape.ranks as usize];
        let mut flight = Vec::new();
        for (at, point) in reads {
            let own = writer.get(&at) == Some(&plan.acts[point.act as usize].block);
            let stored = match kept.get(&at).filter(|_| own) {
                Some(chunk) => Stored::Own(*chunk),
                None => {
                    // Both ends are known when they are laid.
                    tasks.messages.push(TaskMessage { protocol: Protocol::Ll, writer: 0, reader: 0 });
                    let next = &mut sent_to[at.rank.0 as usize];
                    flight.push(Slice {
                        buffer: Buffer::Scratch,
                        rank: at.rank,
                        start: shape.scratch + *next,
                        len: 1,
                    });
                    *next += 1;
                    Stored::Sent(flight.len() as u32 - 1)
                }
            };
            packets.entry(at).or_default().push((point, stored));
        }
        let in_flight = sent_to.into_iter().max().unwrap_or(0);
        shape.scratch += in_flight;
        let mut trails = Trails::new();
        let chunk_name = trails.intern("chunk");
        let statements = plan.acts.iter().map(|act| {
            let switch = matches!(&act.what, What::Move(chunks) if chunks.iter().any(|chunk| chunk.switch));
            let transport = switch.then_some(Given { value: Transport::Multimem, loc: act.loc });
            Statement {
                loc: act.loc,
                text: act.text.clone(),
                how: StatementOptions { transport, ..StatementOptions::default() },
            }
        });
        let document = &plan.document;
        let program = Program {
            name: document.name.clone(),
            shape,
            params: Vec::new(),
            divisible: false,
            reproducible: false,
            contract: None,
            in_flight: Some(in_flight),
            source: source.clone(),
            name_loc: document.loc,
            statements: statements.collect(),
            ops: Vec::new(),
            trails,
        };
        Laying {
            plan,
            positions: Positions::new(&shape),
            program,
            tasks,
            place: Vec::new(),
            switched: Vec::new(),
            packets,
            flight,
            chunk_name,
        }
    }

    fn point(&mut self, point: Point) {
        let plan = self.plan;
        let act = &plan.acts[point.act as usize];
        let place = plan.blocks[act.block].0;
        match &act.what {
            What::Sync | What::Flush { .. } => return,
            What::Move(chunks) => match chunks.get(point.chunk as usize) {
                Some(chunk) => self.chunk(point, place, chunk, chunks.len()),
                None => self.idle(place),
            },
            What::Post(_) | What::Await(_) => self.idle(place),
        }
        self.place.push(place);
    }

    /// A task that only waits or signals.
    fn idle(&mut self, place: BlockId) {
        let site = Site { on: Some(place.rank), channel: None, block: Some(place.block) };
        let none = SmallVec::new;
        let task = Task {
            op: OpId(0),
            transfer: false,
            executor: place.rank,
            sources: none(),
            dests: none(),
            position: 0,
            site,
        };
        self.tasks.list.push(task);
        self.switched.push(false);
    }

    /// The chunk as programs have it, and as tasks do.
    fn ends(&mut self, end: &End, point: Point, reads: bool, into: &mut Vec<(Slice, lower::TaskEnd)>) {
        let task = self.tasks.list.len() as u32;
        let memory = |slice: Slice| (slice, lower::TaskEnd::Memory(slice));
        let at = match end {
            End::Plain(at) => {
                let at = locate(&self.program.shape, *at);
                return into.push(memory(Slice {
                    buffer: at.buffer,
                    rank: at.rank,
                    start: at.chunk,
                    len: 1,
                }));
            }
            End::Packet(at) => *at,
        };
        let own = |start| memory(Slice { buffer: Buffer::Scratch, rank: at.rank, start, len: 1 });
        for (reader, stored) in self.packets.get(&at).into_iter().flatten() {
            if reads && *reader != point {
                continue;
            }
            let end = match *stored {
                Stored::Own(chunk) => own(chunk),
                Stored::Sent(number) => {
                    let message = &mut self.tasks.messages[number as usize];
                    *(if reads { &mut message.reader } else { &mut message.writer }) = task;
                    (self.flight[number as usize], lower::TaskEnd::Message(number))
                }
            };
            if !into.contains(&end) {
                into.push(end);
            }
            if reads {
                return;
            }
        }
    }

    fn chunk(&mut self, point: Point, place: BlockId, chunk: &Chunk, of: usize) {
        let (mut sources, mut dests) = (Vec::new(), Vec::new());
        for source in &chunk.sources {
            self.ends(source, point, true, &mut sources);
        }
        for dest in &chunk.dests {
            self.ends(dest, point, false, &mut dests);
        }
        if dests.is_empty() {
            return self.idle(place);
        }
        let slices = |ends: &[(Slice, lower::TaskEnd)]| ends.iter().map(|end| end.0).collect::<SmallVec<_>>();
        let reads: SmallVec<[Slice; 2]> = slices(&sources);
        let stores: SmallVec<[Slice; 1]> = dests.iter().map(|end| end.0).collect();
        let position = self.positions.of_operation(&reads, &stores, 0);
        let trail = match of {
            1 => Trails::ROOT,
            _ => self.program.trails.enter(Trails::ROOT, self.chunk_name, point.chunk.into()),
        };
        let site = Site { on: Some(place.rank), channel: None, block: Some(place.block) };
        let statement = StatementId(point.act);
        let id = OpId(self.program.ops.len() as u32);
        // A copy of a chunk to itself moves nothing.
        let moves = sources.len() > 1 || sources != dests;
        let op = Op {
            statement,
            trail,
            sources: reads,
            dests: stores,
            position,
            site,
            scaling: Scaling::default(),
        };
        self.positions.stored(&op);
        self.program.ops.push(op);
        let of_task = |ends: Vec<(Slice, lower::TaskEnd)>| {
            ends.into_iter().filter(|_| moves).map(|end| end.1).collect()
        };
        self.tasks.list.push(Task {
            op: id,
            transfer: false,
            executor: place.rank,
            sources: of_task(sources),
            dests: of_task(dests),
            position,
            site,
        });
        self.switched.push(chunk.switch);
    }

    fn finish(mut self, edges: Vec<Edge>) -> Laid {
        // Chunks of different size meet only if the plan needs them equal.
        let uneven = verify::operations(&self.program).finish();
        self.program.divisible = uneven.iter().any(|found| found.check == Check::ChunkPosition);
        let mut blocks = vec![1; self.program.shape.ranks as usize];
        for (BlockId { rank: Rank(rank), block }, _) in &self.plan.blocks {
            let most = &mut blocks[*rank as usize];
            *most = (*most).max(block.0 + 1);
        }
        let kept = KeptPlan { tasks: self.tasks, place: self.place, switched: self.switched, edges, blocks };
        Laid { program: self.program, kept }
    }
}
