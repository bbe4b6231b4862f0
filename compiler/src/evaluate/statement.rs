//! Statements but for those that move data.

use super::{AttributesInForce, Evaluated, Evaluator, Iteration};
use crate::body::arithmetic::{BinaryOp, IntType, UnaryOp};
use crate::body::{
    Expr, ForRange, LoopValues, MessagePiece, RangeAdaptor, Stmt, StmtAttributes, StmtBlock, StmtKind,
    VariablePart,
};
use crate::diagnostic::{Check, Loc};
use crate::evaluate::steps::Steps;
use crate::options::StatementOptions;
use crate::program::RawSite;

impl<'a> Evaluator<'a> {
    /// Runs the statements of a block, not its value. The current statement is the same after.
    pub(super) fn statements(&mut self, block: &'a StmtBlock) -> Evaluated<()> {
        let loc = self.loc;
        for statement in &block.statements {
            self.statement(statement)?;
        }
        self.loc = loc;
        Ok(())
    }

    /// Runs a block for its scalar value; one without a value is 0.
    pub(super) fn block_scalar(&mut self, block: &'a StmtBlock) -> Evaluated<i64> {
        self.statements(block)?;
        let Some((loc, value)) = &block.value else { return Ok(0) };
        let outer = std::mem::replace(&mut self.loc, *loc);
        let value = self.scalar(value)?;
        self.loc = outer;
        Ok(value)
    }

    /// Runs a block and stores its value at `at`.
    pub(super) fn block_store(&mut self, block: &'a StmtBlock, at: usize) -> Evaluated<()> {
        self.statements(block)?;
        let Some((loc, value)) = &block.value else { return Ok(()) };
        let outer = std::mem::replace(&mut self.loc, *loc);
        self.store(value, at)?;
        self.loc = outer;
        Ok(())
    }

    fn statement(&mut self, statement: &'a Stmt) -> Evaluated<()> {
        self.loc = statement.loc;
        self.spend(1)?;
        let Some(attributes) = &statement.attributes else { return self.action(&statement.kind) };
        let StmtAttributes { on, channel, block, how } = &**attributes;
        let mut number = |expr: &'a Option<Expr>| expr.as_ref().map(|expr| self.scalar(expr)).transpose();
        let (on, channel, block) = (number(on)?, number(channel)?, number(block)?);
        let outer = self.attributes;
        let (site, around) = (&outer.site, &outer.how);
        self.attributes = AttributesInForce {
            site: RawSite {
                on: on.or(site.on),
                channel: channel.or(site.channel),
                block: block.or(site.block),
            },
            how: StatementOptions {
                protocol: how.protocol.or(around.protocol),
                transport: how.transport.or(around.transport),
            },
        };
        self.action(&statement.kind)?;
        self.attributes = outer;
        Ok(())
    }

    fn action(&mut self, action: &'a StmtKind) -> Evaluated<()> {
        match action {
            StmtKind::Set { slot, value } => {
                let at = self.base + *slot as usize;
                self.store(value, at)
            }
            StmtKind::Assign { part, value } => self.assign(part, value),
            StmtKind::Update { part, op, value, ty } => self.update(part, *op, value, *ty),
            StmtKind::Scatter { temp, value, parts } => {
                let from = self.base + *temp as usize;
                self.store(value, from)?;
                for (offset, part) in parts {
                    let to = self.address(part)?;
                    let from = from + *offset as usize;
                    self.slots.copy_within(from..from + part.size as usize, to);
                }
                Ok(())
            }
            StmtKind::For { slot, name, over, body } => self.for_loop(*slot, *name, over, body),
            StmtKind::While { name, condition, body } => self.while_loop(*name, condition, body),
            StmtKind::Assert { condition, condition_loc, message } => {
                self.assert(condition, *condition_loc, message)
            }
            StmtKind::Move(moved) => self.movement(moved),
            StmtKind::Together(parts) => self.together(parts),
            StmtKind::Expect(promise) => self.expect(promise),
            StmtKind::Unspecified(operand) => self.unspecified(operand),
        }
    }

    fn assign(&mut self, part: &'a VariablePart, value: &'a Expr) -> Evaluated<()> {
        // As in Rust, the value comes first, then the indices on the left.
        if part.size == 1 {
            let value = self.scalar(value)?;
            let at = self.address(part)?;
            self.slots[at] = value;
            return Ok(());
        }
        // The value may read the part.
        let size = part.size as usize;
        let temp = self.slots.len();
        self.slots.resize(temp + size, 0);
        self.store(value, temp)?;
        let at = self.address(part)?;
        self.slots.copy_within(temp..temp + size, at);
        self.slots.truncate(temp);
        Ok(())
    }

    fn update(
        &mut self,
        part: &'a VariablePart,
        op: BinaryOp,
        value: &'a Expr,
        ty: IntType,
    ) -> Evaluated<()> {
        let value = self.scalar(value)?;
        let at = self.address(part)?;
        let old = self.slots[at];
        let new = op.apply(old, value).map_err(|fault| op.explain(old, value, fault));
        let new = new.and_then(|new| {
            let cast = UnaryOp::Cast(ty);
            cast.apply(new).map_err(|fault| cast.explain(new, fault))
        });
        self.slots[at] = new.map_err(|message| self.stop(Check::Arithmetic, message))?;
        Ok(())
    }

    fn for_loop(&mut self, slot: u32, name: u32, over: &'a LoopValues, body: &'a StmtBlock) -> Evaluated<()> {
        match over {
            LoopValues::Range(range) => {
                let steps = self.steps(range)?;
                self.iterations(name, steps, body, |run, value| {
                    let at = run.base + slot as usize;
                    run.slots[at] = value;
                    value
                })
            }
            LoopValues::Items { value, at, len, size } => {
                self.store(value, self.base + *at as usize)?;
                self.iterations(name, 0..i64::from(*len), body, |run, number| {
                    let size = *size as usize;
                    let (from, to) =
                        (run.base + *at as usize + number as usize * size, run.base + slot as usize);
                    run.slots.copy_within(from..from + size, to);
                    if size == 1 { run.slots[to] } else { number }
                })
            }
        }
    }

    /// Runs the block of a `for` once for each of `steps`. `begin` stores the loop's variable and returns the number that
    /// findings show for the iteration.
    fn iterations(
        &mut self,
        name: u32,
        steps: impl Iterator<Item = i64>,
        body: &'a StmtBlock,
        begin: impl Fn(&mut Self, i64) -> i64,
    ) -> Evaluated<()> {
        let (name, depth) = (self.loop_name(name), self.iterations.len());
        for step in steps {
            let shown = begin(self, step);
            self.iteration(depth, name, shown)?;
            self.statements_and_value(body)?;
        }
        self.iterations.truncate(depth);
        Ok(())
    }

    fn while_loop(&mut self, name: u32, condition: &'a Expr, body: &'a StmtBlock) -> Evaluated<()> {
        let (name, depth) = (self.loop_name(name), self.iterations.len());
        for value in 0.. {
            self.iteration(depth, name, value)?;
            if self.scalar(condition)? == 0 {
                break;
            }
            self.statements_and_value(body)?;
        }
        self.iterations.truncate(depth);
        Ok(())
    }

    /// Begins an iteration of a loop that has `depth` loops around it.
    fn iteration(&mut self, depth: usize, name: u32, value: i64) -> Evaluated<()> {
        self.iterations.truncate(depth);
        self.iterations.push(Iteration { name, value, node: None });
        self.spend(1)
    }

    /// The recorder's number of a loop's name.
    fn loop_name(&mut self, name: u32) -> u32 {
        let (names, recorder) = (&self.body.loops, &mut self.recorder);
        *self.loop_names[name as usize].get_or_insert_with(|| recorder.trails().intern(&names[name as usize]))
    }

    /// Runs a block whose value, if any, is `()`.
    fn statements_and_value(&mut self, block: &'a StmtBlock) -> Evaluated<()> {
        self.block_store(block, self.base)
    }

    fn steps(&mut self, range: &'a ForRange) -> Evaluated<Steps> {
        let start = self.scalar(&range.start)?;
        let end = self.scalar(&range.end)?;
        let mut steps = Steps::new(start, end, range.inclusive);
        for adaptor in &range.adaptors {
            steps = match adaptor {
                RangeAdaptor::Rev => steps.rev(),
                RangeAdaptor::StepBy(by) => {
                    let by = self.scalar(by)?;
                    if by <= 0 {
                        let message = format!("a range is stepped by {by}, which is not positive");
                        return Err(self.stop(Check::Arithmetic, message));
                    }
                    steps.step_by(by)
                }
            };
        }
        Ok(steps)
    }

    fn assert(&mut self, condition: &'a Expr, loc: Loc, message: &'a [MessagePiece]) -> Evaluated<()> {
        if self.scalar(condition)? != 0 {
            return Ok(());
        }
        let mut text = String::new();
        for piece in message {
            match piece {
                MessagePiece::Text(piece) => text.push_str(piece),
                MessagePiece::Value(expr, ty) => text.push_str(&self.show(expr, ty)?),
            }
        }
        Err(self.unmet(text, condition, loc))
    }
}
