//! Thread blocks to a whole: which receive each send meets, and which steps each step waits for.

use super::document::{Algorithm, Block, Step, StepKind};
use crate::diagnostic::words;
use crate::diagnostic::{Check, Diagnostic, Loc};
use crate::interop::finding;
use crate::program::ids::{BlockId, Rank, ThreadBlock};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::ops::Range;

/// A file whose sends and receives meet.
#[derive(Debug)]
pub(super) struct Connected {
    pub(super) algorithm: Algorithm,
    /// The steps but for those that do nothing, block by block, each block's in order.
    pub(super) steps: Vec<Linked>,
    /// The steps of each block.
    pub(super) blocks: Vec<Range<usize>>,
}

/// A step that moves something.
#[derive(Debug)]
pub(super) struct Linked {
    pub(super) place: BlockId,
    pub(super) step: Step,
    /// The steps, by number, that it waits for: those of other blocks.
    pub(super) after: Vec<u32>,
    /// The step that receives what it sends.
    pub(super) to: Option<u32>,
    /// The step that sends what it receives.
    pub(super) from: Option<u32>,
}

/// A connection: from, to, channel.
type Wire = (u32, u32, u32);

/// Connects the blocks.
///
/// Errors (`form`): connections that two blocks share or that lack an end, steps without the peer that they need, sends
/// that nobody receives, receives that nobody feeds or that take other counts. (`deadlock`): waits for what nobody
/// publishes.
pub(super) fn connect(algorithm: Algorithm) -> Result<Connected, Vec<Diagnostic>> {
    let mut connecting = Connecting::default();
    for (gpu, rank) in algorithm.gpus.iter().zip(0..) {
        for (block, number) in gpu.blocks.iter().zip(0..) {
            connecting.block(BlockId { rank: Rank(rank), block: ThreadBlock(number) }, block);
        }
        connecting.depend(rank, &gpu.blocks);
    }
    connecting.meet();
    let Connecting { steps, blocks, findings, .. } = connecting;
    if findings.is_empty() { Ok(Connected { algorithm, steps, blocks }) } else { Err(findings) }
}

/// One end of a connection.
struct End {
    place: BlockId,
    loc: Loc,
    /// The steps that use it, by number.
    steps: Vec<u32>,
}

#[derive(Default)]
struct Connecting {
    steps: Vec<Linked>,
    blocks: Vec<Range<usize>>,
    /// The number of each step that moves something, by gpu, block and index.
    number: FxHashMap<(u32, u32, u32), u32>,
    senders: BTreeMap<Wire, End>,
    receivers: BTreeMap<Wire, End>,
    findings: Vec<Diagnostic>,
}

/// `gpu 0, tb 3`.
fn name(place: BlockId) -> String {
    format!("gpu {}, tb {}", place.rank.0, place.block.0)
}

impl Connecting {
    fn block(&mut self, place: BlockId, block: &Block) {
        let begin = self.steps.len();
        let (mut sends, mut receives) = (Vec::new(), Vec::new());
        for (step, index) in block.steps.iter().zip(0..) {
            if step.kind == StepKind::Nop {
                continue;
            }
            let number = self.steps.len() as u32;
            self.number.insert((place.rank.0, place.block.0, index), number);
            self.peers(place, block, step);
            sends.extend(step.kind.sends().then_some(number));
            receives.extend(step.kind.receives().then_some(number));
            let linked = Linked { place, step: step.clone(), after: Vec::new(), to: None, from: None };
            self.steps.push(linked);
        }
        self.blocks.push(begin..self.steps.len());
        let rank = place.rank.0;
        for (peer, way) in [(block.send, "send"), (block.receive, "recv")] {
            if peer == Some(rank) {
                let message = format!("{} has its own GPU as `{way}`", name(place));
                self.findings.push(finding(Check::Form, block.loc, message));
            }
        }
        if let Some(peer) = block.send.filter(|peer| *peer != rank) {
            let end = End { place, loc: block.loc, steps: sends };
            self.findings.extend(take((rank, peer, block.channel), end, &mut self.senders, "send to"));
        }
        if let Some(peer) = block.receive.filter(|peer| *peer != rank) {
            let end = End { place, loc: block.loc, steps: receives };
            self.findings.extend(take((peer, rank, block.channel), end, &mut self.receivers, "receive from"));
        }
    }

    /// A step's block has the peers that it needs.
    fn peers(&mut self, place: BlockId, block: &Block, step: &Step) {
        let ends = [
            (step.kind.sends(), block.send, "sends", "send"),
            (step.kind.receives(), block.receive, "receives", "recv"),
        ];
        for (needs, peer, does, attribute) in ends {
            if needs && peer.is_none() {
                let message = format!("the step {does}, and {} has nobody to do so with", name(place));
                let note = format!("its `tb` says {attribute}=\"-1\"");
                self.findings.push(finding(Check::Form, step.loc, message).note(note));
            }
        }
    }

    /// The waits of a GPU's steps. A `nop`'s wait belongs to the step after it.
    fn depend(&mut self, rank: u32, blocks: &[Block]) {
        let next: Vec<Vec<Option<u32>>> = blocks.iter().map(next_publishing).collect();
        for (block, own) in blocks.iter().zip(0..) {
            let mut after: Vec<u32> = Vec::new();
            for (step, index) in block.steps.iter().zip(0..) {
                if let Some((before, due)) = step.after {
                    match self.published(rank, &next, (own, index), (before, due)) {
                        Ok(number) => after.extend(number),
                        Err(problem) => {
                            let Wait { check, message, note } = problem;
                            self.findings.push(finding(check, step.loc, message).note(note));
                        }
                    }
                }
                if let Some(&number) = self.number.get(&(rank, own, index)) {
                    self.steps[number as usize].after = std::mem::take(&mut after);
                }
            }
        }
    }

    /// The step of block `before` that publishes that step `due` is done; none where that is known without.
    fn published(
        &self,
        rank: u32,
        next: &[Vec<Option<u32>>],
        (own, index): (u32, u32),
        (before, due): (u32, u32),
    ) -> Result<Option<u32>, Wait> {
        let Some(next) = next.get(before as usize) else {
            // The block's own findings say why it is not there.
            return Ok(None);
        };
        let steps = next.len();
        let Some(&found) = next.get(due as usize) else {
            let message = format!("there is no step {due} in tb {before}");
            return Err(Wait {
                check: Check::Form,
                message,
                note: format!("it has {}", words::count(steps as u64, "step")),
            });
        };
        let Some(found) = found else {
            let message = format!("the step waits for step {due} of tb {before} for ever");
            let note = format!(
                "no step of tb {before} from {due} on says `hasdep=\"1\"`, so that it publishes nothing"
            );
            return Err(Wait { check: Check::Deadlock, message, note });
        };
        if before != own {
            return Ok(self.number.get(&(rank, before, found)).copied());
        }
        if found >= index {
            let message =
                format!("the step waits for step {found} of its own thread block, which comes after it");
            let note = "a thread block runs its steps in order".to_owned();
            return Err(Wait { check: Check::Deadlock, message, note });
        }
        Ok(None)
    }

    /// Sends and receives of a connection meet one by one.
    fn meet(&mut self) {
        let (senders, receivers) = (std::mem::take(&mut self.senders), std::mem::take(&mut self.receivers));
        for (wire @ (from, to, channel), sender) in &senders {
            let none = Vec::new();
            let receiver = receivers.get(wire);
            if receiver.is_none() && !sender.steps.is_empty() {
                let message = format!("nobody on gpu {to} receives from gpu {from} on channel {channel}");
                let note = format!("{} sends there", name(sender.place));
                self.findings.push(finding(Check::Form, sender.loc, message).note(note));
                continue;
            }
            let receives = receiver.map_or(&none, |end| &end.steps);
            for (&send, &receive) in sender.steps.iter().zip(receives) {
                let counts = [send, receive].map(|step| self.steps[step as usize].step.count);
                if counts[0] != counts[1] {
                    let place = self.steps[send as usize].place;
                    let [sent, received] = counts.map(|count| words::count(count.into(), "chunk"));
                    let at = self.steps[send as usize].step.loc;
                    let message = format!("the step receives {received} where {} sends {sent}", name(place));
                    let finding = finding(Check::Form, self.steps[receive as usize].step.loc, message);
                    self.findings.push(finding.note(format!("the step that sends stands at {at}")));
                }
                self.steps[send as usize].to = Some(receive);
                self.steps[receive as usize].from = Some(send);
            }
            let Some(receiver) = receiver else { continue };
            self.surplus((sender, receives.len()), receiver.place, ("sends", "receives"));
            self.surplus((receiver, sender.steps.len()), sender.place, ("receives", "sends"));
        }
        let unfed =
            receivers.iter().filter(|(wire, end)| !senders.contains_key(wire) && !end.steps.is_empty());
        for ((from, to, channel), receiver) in unfed {
            let message = format!("nobody on gpu {from} sends to gpu {to} on channel {channel}");
            let note = format!("{} receives from there", name(receiver.place));
            self.findings.push(finding(Check::Form, receiver.loc, message).note(note));
        }
    }

    /// The first step of an end that the other end has no step for.
    fn surplus(&mut self, (end, others): (&End, usize), other: BlockId, (does, answers): (&str, &str)) {
        let Some(&step) = end.steps.get(others) else { return };
        let steps = words::count(others as u64, "time");
        let message = format!(
            "{} {does} {}, and {} {answers} {steps}",
            name(end.place),
            words::count(end.steps.len() as u64, "time"),
            name(other)
        );
        self.findings.push(finding(Check::Form, self.steps[step as usize].step.loc, message));
    }
}

/// For each step of a block: it, or the next one, that publishes.
fn next_publishing(block: &Block) -> Vec<Option<u32>> {
    let mut next = vec![None; block.steps.len()];
    let mut found = None;
    for (index, step) in block.steps.iter().enumerate().rev() {
        found = if step.publishes { Some(index as u32) } else { found };
        next[index] = found;
    }
    next
}

/// Why a wait is none.
struct Wait {
    check: Check,
    message: String,
    note: String,
}

/// Takes an end of a connection for a block.
fn take(wire: Wire, end: End, ends: &mut BTreeMap<Wire, End>, does: &str) -> Option<Diagnostic> {
    let (from, to, channel) = wire;
    let peer = if end.place.rank.0 == from { to } else { from };
    if let Some(other) = ends.get(&wire) {
        let (rank, first, second) = (end.place.rank.0, other.place.block.0, end.place.block.0);
        let message =
            format!("tb {first} and tb {second} of gpu {rank} both {does} gpu {peer} on channel {channel}");
        let found = finding(Check::Form, end.loc, message)
            .note("they drive one connection, whose messages have no order between them")
            .note(format!("tb {first} stands at {}", other.loc))
            .help("give one of them another `chan`");
        return Some(found);
    }
    ends.insert(wire, end);
    None
}
