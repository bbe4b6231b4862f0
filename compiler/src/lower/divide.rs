//! The tasks of a schedule: each operation, or, where data is staged, one task that carries it out and those that bring
//! its sources and take away what it makes, each on the rank that it touches.

use crate::options::{Protocol, ScheduleOptions, StatementOptions, Transport};
use crate::program::ids::{Rank, Slice};
use crate::program::transport::transport;
use crate::program::{Op, OpId, Program, Site};
use crate::schedule::Multicast;
use smallvec::{SmallVec, smallvec};

/// A move of one thread block.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    /// The operation that it serves.
    pub(crate) op: OpId,
    /// It only brings a source or takes a result away.
    pub(crate) transfer: bool,
    /// The rank that it runs on.
    pub(crate) executor: Rank,
    pub(crate) sources: SmallVec<[TaskEnd; 2]>,
    pub(crate) dests: SmallVec<[TaskEnd; 2]>,
    /// As of [`Op::position`].
    pub(crate) position: u32,
    pub(crate) site: Site,
}

/// A source or destination of a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TaskEnd {
    Memory(Slice),
    /// The slice's chunks on every rank.
    Multicast(Multicast),
    /// A message by its number in [`Tasks::messages`].
    Message(u32),
}

/// A chunk that goes from a task of one rank to a task of another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TaskMessage {
    pub(crate) protocol: Protocol,
    /// Tasks by number.
    pub(crate) writer: u32,
    pub(crate) reader: u32,
}

/// All tasks, in an order in which they may run one after the other.
#[derive(Debug, Default)]
pub(crate) struct Tasks {
    pub(crate) list: Vec<Task>,
    pub(crate) messages: Vec<TaskMessage>,
}

impl Task {
    /// The chunks of buffers that it reads.
    pub(super) fn reads(&self) -> impl Iterator<Item = Slice> {
        self.sources.iter().flat_map(TaskEnd::slices)
    }

    /// The chunks of buffers that it stores.
    pub(super) fn stores(&self) -> impl Iterator<Item = Slice> {
        self.dests.iter().flat_map(TaskEnd::slices)
    }

    /// The messages that it reads or stores.
    pub(super) fn messages(&self) -> impl Iterator<Item = u32> {
        self.sources.iter().chain(&self.dests).filter_map(|end| match end {
            TaskEnd::Memory(_) | TaskEnd::Multicast(_) => None,
            TaskEnd::Message(number) => Some(*number),
        })
    }
}

impl TaskEnd {
    /// The chunks of buffers that it stands for.
    fn slices(&self) -> impl Iterator<Item = Slice> + use<> {
        let (one, all) = match self {
            TaskEnd::Memory(slice) => (Some(*slice), None),
            TaskEnd::Multicast(multicast) => (None, Some(multicast.slices())),
            TaskEnd::Message(_) => (None, None),
        };
        one.into_iter().chain(all.into_iter().flatten())
    }
}

/// The protocol by which a statement's data is staged; `None` where it moves by loads and stores on peers' buffers.
pub(super) fn staging(
    how: &StatementOptions,
    options: &ScheduleOptions,
    symmetric: bool,
) -> Option<Protocol> {
    let protocol = how.protocol.or(options.how.protocol).map(|given| given.value);
    let protocol = protocol.unwrap_or(Protocol::Simple);
    match transport(options, how) {
        Some(Transport::Staged) => Some(protocol),
        None if protocol != Protocol::Simple || !symmetric => Some(protocol),
        _ => None,
    }
}

/// The chunks of all ranks that slices are, one a rank in the order of the ranks.
pub(super) fn multicast(slices: &[Slice], ranks: u32) -> Option<Multicast> {
    let Slice { buffer, start, len, .. } = *slices.first()?;
    let all = Multicast { buffer, start, len, ranks };
    (ranks > 1 && slices.len() == ranks as usize && all.slices().eq(slices.iter().copied())).then_some(all)
}

/// An operation's ends with the chunks of all ranks as one, where they are all of a side and nothing keeps them apart.
pub(super) fn through_switch(task: Task, ranks: u32) -> Task {
    let side = |ends: &SmallVec<[TaskEnd; 2]>| -> SmallVec<[TaskEnd; 2]> {
        let slices: Vec<Slice> = ends.iter().flat_map(TaskEnd::slices).collect();
        multicast(&slices, ranks).map_or_else(|| ends.clone(), |all| smallvec![TaskEnd::Multicast(all)])
    };
    let (sources, dests) = (side(&task.sources), side(&task.dests));
    // A chunk that one side reaches by the switch and the other by its own address would need a fence within the move.
    let both = matches!((&sources[..], &dests[..]), ([TaskEnd::Multicast(_)], [TaskEnd::Multicast(_)]));
    let meet = task.reads().any(|read| task.stores().any(|stored| stored.overlaps(&read)));
    if meet && !both { task } else { Task { sources, dests, ..task } }
}

/// How an operation moves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Means {
    /// By loads and stores on peers' buffers.
    Direct,
    /// The same, and through the switch what concerns all ranks.
    Switch,
    /// Through slots.
    Staged(Protocol),
}

/// Divides a program into tasks. `means` says how an operation moves; `tiled`, that tasks have to be of single chunks.
pub(super) fn divide(program: &Program, means: impl Fn(&Op) -> Means, tiled: bool) -> Tasks {
    let ranks = program.shape.ranks;
    let mut tasks = Tasks::default();
    for (op, id) in program.ops.iter().zip((0..).map(OpId)) {
        let means = means(op);
        let chunks = op.sources.first().map_or(1, |slice| slice.len);
        if !tiled {
            let whole = |slices: &[Slice]| slices.iter().map(|&slice| TaskEnd::Memory(slice)).collect();
            let own = task(id, op, whole(&op.sources), whole(&op.dests), op.position);
            tasks.list.push(if means == Means::Switch { through_switch(own, ranks) } else { own });
            continue;
        }
        for offset in 0..chunks {
            let at = |slice: &Slice| Slice { start: slice.start + offset, len: 1, ..*slice };
            let position = (op.position + offset) % program.shape.chunks.max(1);
            let (sources, dests): (Vec<Slice>, Vec<Slice>) =
                (op.sources.iter().map(at).collect(), op.dests.iter().map(at).collect());
            if let Means::Staged(protocol) = means {
                tasks.stage(id, op, (&sources, &dests), position, protocol);
                continue;
            }
            let ends = |slices: &[Slice]| slices.iter().map(|&slice| TaskEnd::Memory(slice)).collect();
            let own = task(id, op, ends(&sources), ends(&dests), position);
            tasks.list.push(if means == Means::Switch { through_switch(own, ranks) } else { own });
        }
    }
    tasks
}

fn task(
    id: OpId,
    op: &Op,
    sources: SmallVec<[TaskEnd; 2]>,
    dests: SmallVec<[TaskEnd; 2]>,
    position: u32,
) -> Task {
    Task { op: id, transfer: false, executor: op.executor(), sources, dests, position, site: op.site }
}

impl Tasks {
    /// The tasks of one operation on single chunks.
    fn stage(
        &mut self,
        id: OpId,
        op: &Op,
        (sources, dests): (&[Slice], &[Slice]),
        position: u32,
        protocol: Protocol,
    ) {
        let executor = op.executor();
        // A block that the program names is one of the executing rank.
        let afar = Site { block: None, ..op.site };
        let transfer = |executor, source, dest| Task {
            op: id,
            transfer: true,
            executor,
            sources: smallvec![source],
            dests: smallvec![dest],
            position,
            site: afar,
        };
        let brought = sources.iter().filter(|slice| slice.rank != executor).count();
        let carrying = (self.list.len() + brought) as u32;
        let mut from: SmallVec<[TaskEnd; 2]> = SmallVec::new();
        for source in sources {
            let mut end = TaskEnd::Memory(*source);
            if source.rank != executor {
                let message = self.message(protocol, self.list.len() as u32, carrying);
                self.list.push(transfer(source.rank, end, message));
                end = message;
            }
            from.push(end);
        }
        let mut to: SmallVec<[TaskEnd; 2]> = SmallVec::new();
        let mut taken = Vec::new();
        for dest in dests {
            let mut end = TaskEnd::Memory(*dest);
            if dest.rank != executor {
                let message = self.message(protocol, carrying, carrying + 1 + taken.len() as u32);
                taken.push(transfer(dest.rank, message, end));
                end = message;
            }
            to.push(end);
        }
        self.list.push(task(id, op, from, to, position));
        self.list.extend(taken);
    }

    fn message(&mut self, protocol: Protocol, writer: u32, reader: u32) -> TaskEnd {
        self.messages.push(TaskMessage { protocol, writer, reader });
        TaskEnd::Message(self.messages.len() as u32 - 1)
    }
}
