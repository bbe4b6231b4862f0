//! Finds the operations that scale for `avg` and `premul_sum`. The store that completes a sum divides it by the number of
//! ranks. An input is multiplied when it enters a combination, or at the end if it is the whole result.
//!
//! The operations follow from the values of their operands, so a replay of the program finds them.

use crate::diagnostic::{Check, Diagnostic};
use crate::options::StatementOptions;
use crate::program::dtype::RedOp;
use crate::program::ids::Slice;
use crate::program::kind::Expected;
use crate::program::{Op, Program, Scaling, Statement, StatementId, Trails};
use crate::values::inputs::Inputs;
use crate::values::{ChunkValues, ValueId, ValueNode, Values};
use smallvec::{SmallVec, smallvec};
use std::cell::RefCell;

/// The program with the scalings that the operator asks for; operations whose chunks are scaled differently become
/// several.
///
/// # Errors
/// `unsupported`: `avg` in a custom collective, which does not say what is complete.
pub(crate) fn scale(program: Program, op: RedOp) -> Result<Program, Vec<Diagnostic>> {
    match op {
        RedOp::Sum | RedOp::Prod | RedOp::Min | RedOp::Max => Ok(program),
        RedOp::Avg if program.contract.is_some() => Err(vec![
            Diagnostic::new(
                Check::Unsupported,
                program.name_loc,
                format!("`avg` in the custom collective `{}`", program.name),
            )
            .context(program.context())
            .note(
                "the inputs that a value has to hold before it is divided are known for the other kinds only",
            ),
        ]),
        RedOp::Avg => Ok(Walk::new(program).run(|walk, terms, value| Scaling {
            completes: terms.len() > 1 && walk.is_complete(value),
            ..Scaling::default()
        })),
        RedOp::PremulSum(_) => {
            let mut walk = Walk::new(program);
            walk.finishes = true;
            Ok(walk.run(|walk, terms, _| match terms {
                [_] => Scaling::default(),
                terms => {
                    let bare = (0..).zip(terms).filter(|(_, term)| walk.is_input(**term)).map(|(i, _)| i);
                    Scaling { bare: bare.collect(), ..Scaling::default() }
                }
            }))
        }
    }
}

struct Walk {
    program: Program,
    values: Values,
    whole: RefCell<Inputs>,
    state: ChunkValues,
    /// Chunks of a rank's input.
    inputs: u32,
    /// Results that are a bare input are scaled at the end.
    finishes: bool,
}

impl Walk {
    fn new(program: Program) -> Walk {
        let values = Values::new(&program.shape);
        let state = ChunkValues::initial(&program.shape, &values);
        let inputs = program.shape.input_chunks(program.shape.root);
        Walk { inputs, values, whole: RefCell::default(), state, program, finishes: false }
    }

    fn is_input(&self, value: ValueId) -> bool {
        matches!(self.values.node(value), ValueNode::Leaf(_))
    }

    /// Returns true if a value is the reduction of one input chunk over all ranks.
    fn is_complete(&self, value: ValueId) -> bool {
        let Some(leaf) = self.values.first_leaf(value) else { return false };
        leaf.chunk < self.inputs && self.whole.borrow_mut().is_reduction(&self.values, value, leaf.chunk)
    }

    fn run(mut self, scaling: impl Fn(&Walk, &[ValueId], ValueId) -> Scaling) -> Program {
        let ops = std::mem::take(&mut self.program.ops);
        let mut scaled: Vec<Op> = Vec::with_capacity(ops.len());
        for op in ops {
            let len = op.dests.first().map_or(0, |dest| dest.len);
            let mut begun = 0;
            let mut current: Option<Scaling> = None;
            for offset in 0..len {
                let read =
                    |source: &Slice| self.state.read(source.at(offset)).unwrap_or(self.values.unknown());
                let terms: SmallVec<[ValueId; 8]> = op.sources.iter().map(read).collect();
                let value = self.values.intern_sum(&terms);
                op.dests.iter().for_each(|dest| self.state.store(dest.at(offset), value));
                let next = scaling(&self, &terms, value);
                if let Some(last) = current.take_if(|last| *last != next) {
                    scaled.push(part(&op, begun..offset, last));
                    begun = offset;
                }
                current = Some(next);
            }
            scaled.push(part(&op, begun..len, current.unwrap_or_default()));
        }
        self.program.ops = scaled;
        if self.finishes {
            self.finish();
        }
        self.program
    }

    /// Scales the results that are a single input, where they lie.
    fn finish(&mut self) {
        let shape = self.program.shape;
        let mut statement = None;
        for (rank, chunk) in shape.outputs() {
            let at = shape.output_location(rank, chunk);
            let reduces =
                !matches!(self.program.expected(rank, chunk), Expected::Copied(_) | Expected::Unspecified);
            if !reduces || !self.state.read(at).is_some_and(|value| self.is_input(value)) {
                continue;
            }
            let id = *statement.get_or_insert_with(|| {
                let (loc, text) = (self.program.name_loc, self.program.name.clone());
                self.program.statements.push(Statement { loc, text, how: StatementOptions::default() });
                StatementId(self.program.statements.len() as u32 - 1)
            });
            let slice = Slice { buffer: at.buffer, rank, start: at.chunk, len: 1 };
            self.program.ops.push(Op {
                statement: id,
                trail: Trails::ROOT,
                sources: smallvec![slice],
                dests: smallvec![slice],
                position: at.chunk % shape.chunks,
                site: Default::default(),
                scaling: Scaling { bare: smallvec![0], completes: false },
            });
        }
    }
}

/// The chunks `range` of an operation.
fn part(op: &Op, range: std::ops::Range<u32>, scaling: Scaling) -> Op {
    let slice = |slice: &Slice| Slice { start: slice.start + range.start, len: range.len() as u32, ..*slice };
    Op {
        sources: op.sources.iter().map(slice).collect(),
        dests: op.dests.iter().map(slice).collect(),
        position: op.position + range.start,
        scaling,
        ..op.clone()
    }
}
