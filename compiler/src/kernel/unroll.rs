//! What one block of one rank does, read back from the kernel: the basis of the check `rolled`.

use super::{Class, End, Kernel, KernelAction, LinkRun, Operand};
use crate::ids::{Place, Rank, Slice, ThreadBlock};
use crate::schedule::{Action, Arrival, Counter};

/// A block as the kernel has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unrolled {
    /// Its steps.
    pub actions: Vec<Action>,
    /// For each signal of each signal step, in order: its counter and number.
    pub signals: Vec<Arrival>,
    /// By how much each counter it waits for advances a call.
    pub expects: Vec<(Counter, u32)>,
    /// By how much each counter it signals advances a call.
    pub sends: Vec<(Counter, u32)>,
}

impl Kernel {
    /// The class of a block and its index among the members.
    pub fn member(&self, at: Place) -> Option<(&Class, usize)> {
        self.classes.iter().find_map(|class| class.members.binary_search(&at).ok().map(|i| (class, i)))
    }

    /// Unrolls the kernel for one block of one rank; `None` if no class has it.
    pub fn unroll(&self, at: Place) -> Option<Unrolled> {
        let (class, member) = self.member(at)?;
        let ranks = self.shape.ranks;
        let mut links: Vec<(Counter, End, u32)> = Vec::new();
        for group in &class.links {
            for i in 0..group.count {
                let peer = Place {
                    rank: Rank(group.rank.evaluate(ranks, member, at, i)),
                    block: ThreadBlock(group.block.evaluate(ranks, member, at, i)),
                };
                let (writer, waiter) = match group.end {
                    End::Writer => (at, peer),
                    End::Waiter => (peer, at),
                };
                links.push((Counter { kind: group.kind, writer, waiter }, group.end, group.advance));
            }
        }
        let arrivals = |runs: &[LinkRun]| -> Option<Vec<Arrival>> {
            let each =
                runs.iter().flat_map(|run| (run.first..run.first + run.count).map(|link| (link, run.value)));
            each.map(|(link, value)| Some(Arrival { counter: links.get(link as usize)?.0, value })).collect()
        };
        let slices = |operands: &[Operand]| -> Vec<Slice> {
            let slice = |o: &Operand| Slice {
                buffer: o.buffer,
                rank: Rank(o.rank.evaluate(ranks, member, at, 0)),
                start: o.start.evaluate(ranks, member, at, 0),
                len: o.len,
            };
            operands.iter().map(slice).collect()
        };
        let mut signals = Vec::new();
        let mut actions = Vec::new();
        for step in &class.steps {
            actions.push(match &step.action {
                KernelAction::Wait(runs) => Action::Wait(arrivals(runs)?),
                KernelAction::Signal(runs) => {
                    let numbered = arrivals(runs)?;
                    let counters = numbered.iter().map(|a| a.counter).collect();
                    signals.extend(numbered);
                    Action::Signal(counters)
                }
                KernelAction::Move { sources, dests, size_of, .. } => Action::Move {
                    sources: slices(sources),
                    dests: slices(dests),
                    position: size_of.evaluate(ranks, member, at, 0) % self.shape.chunks,
                },
                KernelAction::BlockSync => Action::BlockSync,
            });
        }
        let side =
            |end| links.iter().filter(move |l| l.1 == end).map(|&(counter, _, by)| (counter, by)).collect();
        Some(Unrolled { actions, signals, expects: side(End::Waiter), sends: side(End::Writer) })
    }
}
