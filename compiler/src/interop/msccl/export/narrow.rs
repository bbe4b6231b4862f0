//! Tasks to tasks that are steps of a file: each with at most one message in and one out, of at most two sources.

use crate::lower::{Task, TaskEnd, Tasks};
use crate::program::Program;
use crate::program::ids::{Buffer, Rank, Slice};
use rustc_hash::FxHashSet;
use smallvec::{SmallVec, smallvec};

/// Tasks that are steps.
pub(super) struct Narrow {
    pub(super) tasks: Tasks,
    /// Chunks of each rank's scratch: the program's, and those that hold what is on its way between steps.
    pub(super) scratch: Vec<u32>,
    /// Something combines more than two sources, so that several steps do what rounds once in the program.
    pub(super) split: bool,
}

/// Divides every task into steps. Sources are combined from left to right as in the program. A message in `cut` is sent by a
/// step that receives nothing. Linear.
pub(super) fn narrow(program: &Program, tasks: &Tasks, cut: &FxHashSet<u32>) -> Narrow {
    let scratch = vec![program.shape.scratch; program.shape.ranks as usize];
    let own = Tasks { list: Vec::new(), messages: tasks.messages.clone() };
    let mut dividing = Dividing { narrow: Narrow { tasks: own, scratch, split: false }, cut };
    for task in &tasks.list {
        dividing.divide(task);
    }
    dividing.narrow
}

struct Dividing<'a> {
    narrow: Narrow,
    cut: &'a FxHashSet<u32>,
}

impl Dividing<'_> {
    /// A chunk of scratch that nothing else uses.
    fn spare(&mut self, rank: Rank) -> Slice {
        let used = &mut self.narrow.scratch[rank.0 as usize];
        *used += 1;
        Slice { buffer: Buffer::Scratch, rank, start: *used - 1, len: 1 }
    }

    fn is_cut(&self, end: &TaskEnd) -> bool {
        matches!(end, TaskEnd::Message(message) if self.cut.contains(message))
    }

    fn step(&mut self, task: &Task, sources: SmallVec<[TaskEnd; 2]>, dests: SmallVec<[TaskEnd; 2]>) {
        let number = self.narrow.tasks.list.len() as u32;
        let step = Task { sources, dests, ..task.clone() };
        for end in &step.sources {
            if let TaskEnd::Message(message) = end {
                self.narrow.tasks.messages[*message as usize].reader = number;
            }
        }
        for end in &step.dests {
            if let TaskEnd::Message(message) = end {
                self.narrow.tasks.messages[*message as usize].writer = number;
            }
        }
        self.narrow.tasks.list.push(step);
    }

    fn divide(&mut self, task: &Task) {
        let (mut kept, mut sent) = (Vec::new(), Vec::new());
        for end in &task.dests {
            match end {
                TaskEnd::Memory(slice) => kept.push(*slice),
                other => sent.push(*other),
            }
        }
        match task.sources[..] {
            [TaskEnd::Memory(source)] => self.hand_out(task, source, &kept, &sent),
            [received] => {
                let (first, kept) =
                    kept.split_first().map_or((None, &[][..]), |(first, kept)| (Some(*first), kept));
                self.received(task, smallvec![received], first, kept, &sent);
            }
            [TaskEnd::Memory(own), received @ TaskEnd::Message(_)]
            | [received @ TaskEnd::Message(_), TaskEnd::Memory(own)] => {
                let both = smallvec![TaskEnd::Memory(own), received];
                match (&kept[..], &sent[..]) {
                    ([], [only]) if !self.is_cut(only) => self.step(task, both, smallvec![*only]),
                    ([], _) => self.received(task, both, None, &[], &sent),
                    ([first, kept @ ..], _) => self.received(task, both, Some(*first), kept, &sent),
                }
            }
            _ => self.combine(task, &kept, &sent),
        }
    }

    /// A step that receives, stores to a chunk (to a spare one where nothing is kept), and sends on to one; and those that
    /// hand the chunk to the others.
    fn received(
        &mut self,
        task: &Task,
        sources: SmallVec<[TaskEnd; 2]>,
        first: Option<Slice>,
        kept: &[Slice],
        sent: &[TaskEnd],
    ) {
        let base = first.unwrap_or_else(|| self.spare(task.executor));
        let mut rest = sent.to_vec();
        let on = rest.iter().position(|end| !self.is_cut(end)).map(|at| rest.remove(at));
        let dests = std::iter::once(TaskEnd::Memory(base)).chain(on).collect();
        self.step(task, sources, dests);
        self.hand_out(task, base, kept, &rest);
    }

    /// Copies and sends a chunk.
    fn hand_out(&mut self, task: &Task, source: Slice, kept: &[Slice], sent: &[TaskEnd]) {
        for &end in sent {
            self.step(task, smallvec![TaskEnd::Memory(source)], smallvec![end]);
        }
        for &dest in kept.iter().filter(|dest| **dest != source) {
            self.step(task, smallvec![TaskEnd::Memory(source)], smallvec![TaskEnd::Memory(dest)]);
        }
    }

    /// Sources that no single step combines: what is received waits in spare chunks, so that all peers send at once, and
    /// one after the other is combined with the first.
    fn combine(&mut self, task: &Task, kept: &[Slice], sent: &[TaskEnd]) {
        let rank = task.executor;
        self.narrow.split |= task.sources.len() > 2;
        let mut sources = task.sources.clone();
        let dest = kept.first().copied();
        if let ([_, second], Some(dest)) = (&sources[..], dest)
            && *second == TaskEnd::Memory(dest)
        {
            sources.reverse();
        }
        let first = sources[0];
        let later = |slice: Slice| sources[1..].contains(&TaskEnd::Memory(slice));
        let sum = dest.filter(|dest| !later(*dest)).unwrap_or_else(|| self.spare(rank));
        if first != TaskEnd::Memory(sum) {
            self.step(task, smallvec![first], smallvec![TaskEnd::Memory(sum)]);
        }
        let two = sources.len() == 2;
        let mut waiting = Vec::new();
        for source in &sources[1..] {
            waiting.push(match source {
                TaskEnd::Message(_) if !two => {
                    let spare = TaskEnd::Memory(self.spare(rank));
                    self.step(task, smallvec![*source], smallvec![spare]);
                    spare
                }
                other => *other,
            });
        }
        for source in waiting {
            match dest {
                // The last source, if it is where the sum is due.
                Some(dest) if source == TaskEnd::Memory(dest) && sources.last() == Some(&source) => {
                    let sum = TaskEnd::Memory(sum);
                    self.step(task, smallvec![source, sum], smallvec![source]);
                    self.hand_out(task, dest, kept, sent);
                    return;
                }
                _ => {
                    self.step(task, smallvec![TaskEnd::Memory(sum), source], smallvec![TaskEnd::Memory(sum)])
                }
            }
        }
        self.hand_out(task, sum, kept, sent);
    }
}
