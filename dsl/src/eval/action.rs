//! Statements but for those that move data.

use super::{Evaluator, Iteration, Run};
use crate::syntax::{Action, Adaptor, Block, Expr, Piece, Place, Range, Statement};
use quadrille_compiler::diagnostic::{Check, Loc};

/// What a `for` runs over. Wide integers, as one past the last value need not be an `i64`.
struct Steps {
    first: i128,
    step: i128,
    count: i128,
}

impl<'a> Evaluator<'a> {
    /// Runs the statements of a block, not its value. The current statement is the same after.
    pub(super) fn statements(&mut self, block: &'a Block) -> Run<()> {
        let loc = self.loc;
        for statement in &block.statements {
            self.statement(statement)?;
        }
        self.loc = loc;
        Ok(())
    }

    /// Runs a block for its scalar value; one without a value is 0.
    pub(super) fn block_scalar(&mut self, block: &'a Block) -> Run<i64> {
        self.statements(block)?;
        let Some((loc, value)) = &block.value else { return Ok(0) };
        let outer = std::mem::replace(&mut self.loc, *loc);
        let value = self.scalar(value)?;
        self.loc = outer;
        Ok(value)
    }

    /// Runs a block and stores its value at `at`.
    pub(super) fn block_store(&mut self, block: &'a Block, at: usize) -> Run<()> {
        self.statements(block)?;
        let Some((loc, value)) = &block.value else { return Ok(()) };
        let outer = std::mem::replace(&mut self.loc, *loc);
        self.store(value, at)?;
        self.loc = outer;
        Ok(())
    }

    fn statement(&mut self, statement: &'a Statement) -> Run<()> {
        self.loc = statement.loc;
        self.spend(1)?;
        let Some(on) = &statement.on else { return self.action(&statement.action) };
        let rank = self.scalar(on)?;
        let outer = self.on.replace(rank);
        self.action(&statement.action)?;
        self.on = outer;
        Ok(())
    }

    fn action(&mut self, action: &'a Action) -> Run<()> {
        match action {
            Action::Set { slot, value } => {
                let at = self.base + *slot as usize;
                self.store(value, at)
            }
            Action::Assign { place, op, value } => self.assign(place, *op, value),
            Action::Scatter { temp, value, places } => {
                let from = self.base + *temp as usize;
                self.store(value, from)?;
                for (offset, place) in places {
                    let to = self.address(place)?;
                    let from = from + *offset as usize;
                    self.slots.copy_within(from..from + place.size as usize, to);
                }
                Ok(())
            }
            Action::For { slot, name, range, body } => self.for_loop(*slot, *name, range, body),
            Action::While { name, condition, body } => self.while_loop(*name, condition, body),
            Action::Assert { condition, condition_loc, message } => {
                self.assert(condition, *condition_loc, message)
            }
            Action::Move(moved) => self.movement(moved),
        }
    }

    fn assign(
        &mut self,
        place: &'a Place,
        op: Option<crate::arithmetic::Binary>,
        value: &'a Expr,
    ) -> Run<()> {
        // As in Rust, the value comes first, then the place's indices.
        if place.size == 1 {
            let value = self.scalar(value)?;
            let at = self.address(place)?;
            let old = self.slots[at];
            self.slots[at] = match op {
                Some(op) => match op.apply(old, value) {
                    Ok(value) => value,
                    Err(fault) => {
                        return Err(self.stop(Check::Arithmetic, op.explain(old, value, fault)));
                    }
                },
                None => value,
            };
            return Ok(());
        }
        // The value may read the place.
        let size = place.size as usize;
        let temp = self.slots.len();
        self.slots.resize(temp + size, 0);
        self.store(value, temp)?;
        let at = self.address(place)?;
        self.slots.copy_within(temp..temp + size, at);
        self.slots.truncate(temp);
        Ok(())
    }

    fn for_loop(&mut self, slot: u32, name: u32, range: &'a Range, body: &'a Block) -> Run<()> {
        let steps = self.steps(range)?;
        let name = self.loop_name(name);
        let depth = self.iterations.len();
        let mut value = steps.first;
        for _ in 0..steps.count {
            // Every value between the ends of the range is an i64.
            let now = value as i64;
            self.iterations.truncate(depth);
            self.iterations.push(Iteration { name, value: now, node: None });
            self.spend(1)?;
            let at = self.base + slot as usize;
            self.slots[at] = now;
            self.statements_and_value(body)?;
            value += steps.step;
        }
        self.iterations.truncate(depth);
        Ok(())
    }

    fn while_loop(&mut self, name: u32, condition: &'a Expr, body: &'a Block) -> Run<()> {
        let name = self.loop_name(name);
        let depth = self.iterations.len();
        let mut value = 0;
        loop {
            self.iterations.truncate(depth);
            self.iterations.push(Iteration { name, value, node: None });
            self.spend(1)?;
            if self.scalar(condition)? == 0 {
                break;
            }
            self.statements_and_value(body)?;
            value += 1;
        }
        self.iterations.truncate(depth);
        Ok(())
    }

    /// Runs a block whose value, if any, is `()`.
    fn statements_and_value(&mut self, block: &'a Block) -> Run<()> {
        self.block_store(block, self.base)
    }

    fn steps(&mut self, range: &'a Range) -> Run<Steps> {
        let first = i128::from(self.scalar(&range.start)?);
        let end = i128::from(self.scalar(&range.end)?) + i128::from(range.inclusive);
        let mut steps = Steps { first, step: 1, count: (end - first).max(0) };
        for adaptor in &range.adaptors {
            match adaptor {
                Adaptor::Rev => {
                    steps.first += (steps.count - 1).max(0) * steps.step;
                    steps.step = -steps.step;
                }
                Adaptor::StepBy(by) => {
                    let by = i128::from(self.scalar(by)?);
                    if by <= 0 {
                        let message = format!("a range is stepped by {by}, which is not positive");
                        return Err(self.stop(Check::Arithmetic, message));
                    }
                    steps.count = (steps.count + by - 1) / by;
                    // A step that is taken at most once may be of any size.
                    steps.step = steps.step.saturating_mul(by);
                }
            }
        }
        Ok(steps)
    }

    fn assert(&mut self, condition: &'a Expr, loc: Loc, message: &'a [Piece]) -> Run<()> {
        if self.scalar(condition)? != 0 {
            return Ok(());
        }
        let mut text = String::new();
        for piece in message {
            match piece {
                Piece::Text(piece) => text.push_str(piece),
                Piece::Value(expr, ty) => text.push_str(&self.show(expr, ty)?),
            }
        }
        if text.is_empty() {
            text = format!("`{}` does not hold", self.source.slice(loc));
        }
        let values = self.values(&[condition]);
        let mut stop = self.stop(Check::Requirement, text);
        if !values.is_empty() {
            stop.0.notes.insert(0, format!("here {values}"));
        }
        Err(stop)
    }
}
