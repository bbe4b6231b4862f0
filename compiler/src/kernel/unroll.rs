//! Reads the steps of one block of one rank back from the kernel, for the check `rolled`.

use super::{BlockClass, Kernel, KernelAction, KernelOperand, LinkEnd, LinkRun};
use crate::program::ids::{BlockId, Rank, Slice, ThreadBlock};
use crate::schedule::CounterKind;
use crate::schedule::{self, Action, Arrival, Connection, Counter, FifoMessage, Multicast};
use rustc_hash::FxHashMap;

/// A block as the kernel has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unrolled {
    /// Its steps.
    pub actions: Vec<Action>,
    /// For each signal step, in order: its counters and the numbers of their last signals.
    pub signals: Vec<Arrival>,
    /// The FIFO of each connection that it has an end of.
    pub fifos: Vec<(Connection, u32)>,
    /// By how much each counter it waits for advances a call.
    pub expects: Vec<(Counter, u32)>,
    /// By how much each counter it signals advances a call.
    pub sends: Vec<(Counter, u32)>,
}

impl Kernel {
    /// The class of a block and its index among the members.
    pub fn member(&self, at: BlockId) -> Option<(&BlockClass, usize)> {
        self.classes.iter().find_map(|class| class.members.binary_search(&at).ok().map(|i| (class, i)))
    }

    /// Unrolls the kernel for one block of one rank; `None` if no class has it, or its loops or links are not there.
    pub fn unroll(&self, at: BlockId) -> Option<Unrolled> {
        let (class, member) = self.member(at)?;
        let ranks = self.shape.ranks;
        let mut links: Vec<(Counter, LinkEnd, u32)> = Vec::new();
        let mut fifos = Vec::new();
        for group in &class.links {
            for i in 0..group.count {
                let peer = BlockId {
                    rank: Rank(group.rank.evaluate(ranks, member, at, i)),
                    block: ThreadBlock(group.block.evaluate(ranks, member, at, i)),
                };
                let (writer, waiter) = match group.end {
                    LinkEnd::Writer => (at, peer),
                    LinkEnd::Waiter => (peer, at),
                };
                let counter = Counter { kind: group.kind, writer, waiter };
                if let Some(connection) = counter.connection() {
                    fifos.push((connection, group.fifo.as_ref()?.evaluate(ranks, member, at, i)));
                }
                links.push((counter, group.end, group.advance));
            }
        }
        let arrivals = |runs: &[LinkRun], i: u32| -> Option<Vec<Arrival>> {
            let mut all = Vec::new();
            for LinkRun { first, count, value } in runs {
                let first = first.index(i)? as usize;
                let links = links.get(first..first + *count as usize)?;
                all.extend(links.iter().map(|link| Arrival { counter: link.0, value: value.at(i) }));
            }
            Some(all)
        };
        let operands = |operands: &[KernelOperand], i: u32| -> Option<Vec<schedule::Operand>> {
            let operand = |operand: &KernelOperand| match operand {
                KernelOperand::Memory { buffer, rank, start, len } => {
                    Some(schedule::Operand::Memory(Slice {
                        buffer: *buffer,
                        rank: Rank(rank.evaluate(ranks, member, at, i)),
                        start: start.evaluate(ranks, member, at, i),
                        len: *len,
                    }))
                }
                KernelOperand::Multicast { buffer, start, len } => {
                    Some(schedule::Operand::Multicast(Multicast {
                        buffer: *buffer,
                        start: start.evaluate(ranks, member, at, i),
                        len: *len,
                        ranks,
                    }))
                }
                KernelOperand::Message { protocol, link, number } => {
                    let credit = links.get(link.index(i)? as usize)?.0;
                    let connection = credit.connection()?;
                    let knows_fifo = credit.kind == CounterKind::Credit(*protocol);
                    let message = FifoMessage { connection, number: number.index(i)? };
                    knows_fifo.then_some(schedule::Operand::Message(message))
                }
            };
            operands.iter().map(operand).collect()
        };
        let mut counted: FxHashMap<Counter, i32> = FxHashMap::default();
        let mut signals = Vec::new();
        let mut actions = Vec::new();
        for (step, i) in class.order()? {
            actions.push(match &class.steps[step].action {
                KernelAction::Wait(runs) => Action::Wait(arrivals(runs, i)?),
                KernelAction::Signal(runs) => {
                    let numbered = arrivals(runs, i)?;
                    let mut counters = Vec::new();
                    for Arrival { counter, value } in &numbered {
                        let before = counted.insert(*counter, *value).unwrap_or(0);
                        counters.extend((before..*value).map(|_| *counter));
                    }
                    signals.extend(numbered);
                    Action::Signal(counters)
                }
                KernelAction::Move { sources, dests, size_of, .. } => Action::Move {
                    sources: operands(sources, i)?,
                    dests: operands(dests, i)?,
                    position: size_of.evaluate(ranks, member, at, i) % self.shape.chunks,
                },
                KernelAction::BlockSync => Action::BlockSync,
            });
        }
        let side =
            |end| links.iter().filter(move |l| l.1 == end).map(|&(counter, _, by)| (counter, by)).collect();
        fifos.sort_unstable();
        fifos.dedup();
        Some(Unrolled {
            actions,
            signals,
            fifos,
            expects: side(LinkEnd::Waiter),
            sends: side(LinkEnd::Writer),
        })
    }
}
