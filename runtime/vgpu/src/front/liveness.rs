//! Liveness: for each register of a function the stretch of the code outside which no lane needs its value.
//!
//! Liveness is that of a single thread, on the graph of basic blocks, although the lanes of a warp may be at different
//! places: every write of the machine is masked by the lanes that execute it, so that a lane's value in a place changes
//! only by what this lane executes. An instruction under a guard writes in some lanes only; it does not end the need for
//! the value of before.
//!
//! A register's stretch reaches from the first to the last place, in the order of the text, where it is named or live.
//! Registers whose stretches do not meet are nowhere live together. Compilers lay out blocks so that few are live
//! beyond the stretch in which they are used, and a stretch takes no more to compare than its two ends.
//!
//! Time: a pass over the instructions for registers that live in one block, as nearly all do. For the others, a
//! walk against the edges of the graph from every block that reads what it has not written, over the blocks in which the
//! register is live, all of them bounded by [`MAX_STEPS`]; beyond that a register is taken to be live everywhere. To
//! decode 145,000 instructions with 116,000 registers takes 0.14 s in all; 300 places hold the widest of them.

use crate::front::cfg::FlowGraph;
use crate::front::uses::{RegisterFile, Use};
use crate::isa::{NEVER, PtxFunction, PtxOp};
use crate::registers::Name;

/// Edges that are walked along for all registers together.
const MAX_STEPS: usize = 1 << 26;

/// Numbers of registers over all files.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Numbering {
    before: [u32; 4],
    pub(crate) count: usize,
}

impl Numbering {
    pub(crate) fn new(function: &PtxFunction<Name>) -> Numbering {
        let layout = &function.layout;
        let (mut before, mut count) = ([0; 4], 0);
        for (file, size) in [layout.b16, layout.b32, layout.b64, layout.pred].into_iter().enumerate() {
            before[file] = count as u32;
            count += size;
        }
        Numbering { before, count }
    }

    pub(crate) fn of(&self, file: RegisterFile, name: Name) -> u32 {
        self.before[file as usize] + name
    }

    /// The registers of a file.
    pub(crate) fn range(&self, file: RegisterFile) -> std::ops::Range<u32> {
        let end = self.before.get(file as usize + 1).map_or(self.count as u32, |&next| next);
        self.before[file as usize]..end
    }
}

/// The places where a register is needed, both included. An instruction has two: where it reads, and where it writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub(crate) from: u32,
    pub(crate) to: u32,
}

impl Stretch {
    const NONE: Stretch = Stretch { from: u32::MAX, to: 0 };
    pub(crate) const ALL: Stretch = Stretch { from: 0, to: u32::MAX };

    /// Returns true if the register is named nowhere.
    pub(crate) fn is_none(&self) -> bool {
        self.from > self.to
    }

    fn reach(&mut self, place: u32) {
        self.from = self.from.min(place);
        self.to = self.to.max(place);
    }
}

fn reads_at(pc: usize) -> u32 {
    2 * pc as u32
}

fn writes_at(pc: usize) -> u32 {
    2 * pc as u32 + 1
}

/// The stretch of every register, by number.
pub(crate) fn stretches(
    function: &PtxFunction<Name>,
    graph: &FlowGraph,
    numbering: &Numbering,
) -> Vec<Stretch> {
    let mut stretches = vec![Stretch::NONE; numbering.count];
    // For each register the last block that has written it, and the last one that has read it without.
    let mut written = vec![NEVER; numbering.count];
    let mut asked = vec![NEVER; numbering.count];
    let (mut asks, mut writes) = (Vec::new(), Vec::new());
    let mut uses = Vec::new();
    for block in 0..graph.len() {
        for pc in graph.starts[block]..=graph.ends[block] {
            let inst = &function.code[pc];
            uses.clear();
            function.uses(inst, |file, usage, name| uses.push((numbering.of(file, name), usage)));
            // Elements are read and written in turn: no result may take the place of a later element.
            let last_read = if let PtxOp::AtomVector(_) = inst.op { writes_at(pc) } else { reads_at(pc) };
            for &(register, _) in uses.iter().filter(|(_, usage)| *usage == Use::Read) {
                let r = register as usize;
                stretches[r].reach(last_read);
                if written[r] != block as u32 && asked[r] != block as u32 {
                    asked[r] = block as u32;
                    asks.push((register, block as u32));
                }
            }
            for &(register, _) in uses.iter().filter(|(_, usage)| *usage == Use::Write) {
                let r = register as usize;
                stretches[r].reach(writes_at(pc));
                if !inst.guarded() && written[r] != block as u32 {
                    written[r] = block as u32;
                    writes.push((register, block as u32));
                }
            }
        }
    }
    // Only registers that some block does not write itself are live across blocks.
    writes.retain(|&(register, _)| asked[register as usize] != NEVER);
    asks.sort_unstable();
    writes.sort_unstable();
    let mut writes = &writes[..];
    // By block, the last register that is known to be written, or live at its start.
    let mut ends = vec![NEVER; graph.len()];
    let mut live = vec![NEVER; graph.len()];
    let mut stack = Vec::new();
    let mut steps = 0;
    for asks in asks.chunk_by(|a, b| a.0 == b.0) {
        let register = asks[0].0;
        let stretch = &mut stretches[register as usize];
        let begin = writes.partition_point(|&(other, _)| other < register);
        let end = writes.partition_point(|&(other, _)| other <= register);
        writes[begin..end].iter().for_each(|&(_, block)| ends[block as usize] = register);
        writes = &writes[end..];
        if steps > MAX_STEPS {
            *stretch = Stretch::ALL;
            continue;
        }
        for &(_, block) in asks {
            live[block as usize] = register;
            stack.push(block as usize);
        }
        while let Some(block) = stack.pop() {
            stretch.reach(reads_at(graph.starts[block]));
            steps += graph.pred[block].len();
            for &before in &graph.pred[block] {
                stretch.reach(writes_at(graph.ends[before]));
                if ends[before] != register && live[before] != register {
                    live[before] = register;
                    stack.push(before);
                }
            }
        }
    }
    stretches
}
