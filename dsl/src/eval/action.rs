//! Statements but for those that move data.

use super::{Evaluator, Run};
use crate::syntax::{Action, Adaptor, Attributes, Block, Expr, Piece, Place, Range, Statement};
use quadrille_compiler::diagnostic::{Check, Loc};
use quadrille_compiler::evaluate;
use quadrille_compiler::evaluate::arithmetic::{Binary, IntType, Unary};
use quadrille_compiler::evaluate::steps::Steps;
use quadrille_compiler::program::RawSite;

impl<'a> Evaluator<'a> {
    /// Runs the statements of a block, not its value. The current statement is the same after.
    pub(super) fn statements(&mut self, block: &'a Block) -> Run<()> {
        let loc = self.recording.loc();
        for statement in &block.statements {
            self.statement(statement)?;
        }
        self.recording.go(loc);
        Ok(())
    }

    /// Runs a block for its scalar value; one without a value is 0.
    pub(super) fn block_scalar(&mut self, block: &'a Block) -> Run<i64> {
        self.statements(block)?;
        let Some((loc, value)) = &block.value else { return Ok(0) };
        let outer = self.recording.go(*loc);
        let value = self.scalar(value)?;
        self.recording.go(outer);
        Ok(value)
    }

    /// Runs a block and stores its value at `at`.
    pub(super) fn block_store(&mut self, block: &'a Block, at: usize) -> Run<()> {
        self.statements(block)?;
        let Some((loc, value)) = &block.value else { return Ok(()) };
        let outer = self.recording.go(*loc);
        self.store(value, at)?;
        self.recording.go(outer);
        Ok(())
    }

    fn statement(&mut self, statement: &'a Statement) -> Run<()> {
        self.recording.statement(statement.loc)?;
        let Some(attributes) = &statement.attributes else { return self.action(&statement.action) };
        let Attributes { on, channel, block, how } = &**attributes;
        let mut number = |expr: &'a Option<Expr>| expr.as_ref().map(|expr| self.scalar(expr)).transpose();
        let site = RawSite { on: number(on)?, channel: number(channel)?, block: number(block)? };
        let outer = self.recording.attributes(&evaluate::Attributes { site, how: *how });
        self.action(&statement.action)?;
        self.recording.restore(outer);
        Ok(())
    }

    fn action(&mut self, action: &'a Action) -> Run<()> {
        match action {
            Action::Set { slot, value } => {
                let at = self.base + *slot as usize;
                self.store(value, at)
            }
            Action::Assign { place, value } => self.assign(place, value),
            Action::Update { place, op, value, ty } => self.update(place, *op, value, *ty),
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
            Action::Together(parts) => self.together(parts),
            Action::Expect(promise) => self.expect(promise),
            Action::Unspecified(operand) => self.unspecified(operand),
        }
    }

    fn assign(&mut self, place: &'a Place, value: &'a Expr) -> Run<()> {
        // As in Rust, the value comes first, then the place's indices.
        if place.size == 1 {
            let value = self.scalar(value)?;
            let at = self.address(place)?;
            self.slots[at] = value;
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

    fn update(&mut self, place: &'a Place, op: Binary, value: &'a Expr, ty: IntType) -> Run<()> {
        let value = self.scalar(value)?;
        let at = self.address(place)?;
        let old = self.slots[at];
        let new = op.apply(old, value).map_err(|fault| op.explain(old, value, fault));
        let new = new.and_then(|new| {
            let cast = Unary::Cast(ty);
            cast.apply(new).map_err(|fault| cast.explain(new, fault))
        });
        self.slots[at] = new.map_err(|message| self.recording.stop(Check::Arithmetic, message))?;
        Ok(())
    }

    fn for_loop(&mut self, slot: u32, name: u32, range: &'a Range, body: &'a Block) -> Run<()> {
        let steps = self.steps(range)?;
        let name = self.loop_name(name);
        let open = self.recording.open(name);
        for value in steps {
            self.recording.iteration(open, value)?;
            let at = self.base + slot as usize;
            self.slots[at] = value;
            self.statements_and_value(body)?;
        }
        self.recording.close(open);
        Ok(())
    }

    fn while_loop(&mut self, name: u32, condition: &'a Expr, body: &'a Block) -> Run<()> {
        let name = self.loop_name(name);
        let open = self.recording.open(name);
        for value in 0.. {
            self.recording.iteration(open, value)?;
            if self.scalar(condition)? == 0 {
                break;
            }
            self.statements_and_value(body)?;
        }
        self.recording.close(open);
        Ok(())
    }

    /// Runs a block whose value, if any, is `()`.
    fn statements_and_value(&mut self, block: &'a Block) -> Run<()> {
        self.block_store(block, self.base)
    }

    fn steps(&mut self, range: &'a Range) -> Run<Steps> {
        let start = self.scalar(&range.start)?;
        let end = self.scalar(&range.end)?;
        let mut steps = Steps::new(start, end, range.inclusive);
        for adaptor in &range.adaptors {
            steps = match adaptor {
                Adaptor::Rev => steps.rev(),
                Adaptor::StepBy(by) => {
                    let by = self.scalar(by)?;
                    steps.step_by(by, self.recording)?
                }
            };
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
        let values = self.values(&[condition]);
        Err(self.recording.unmet(text, loc, &values))
    }
}
