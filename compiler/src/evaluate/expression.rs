//! Expressions: scalars as values, tuples and arrays into slots.

use super::{CALLS_LIMIT, Evaluated, Evaluator};
use crate::body::arithmetic::UnaryOp;
use crate::body::{Expr, FnCall, Type, VariablePart};
use crate::diagnostic::{Check, Loc};

impl<'a> Evaluator<'a> {
    /// The value of a scalar.
    pub(super) fn scalar(&mut self, expr: &'a Expr) -> Evaluated<i64> {
        match expr {
            Expr::Const(value) => Ok(*value),
            Expr::Known(known) => Ok(self.known(*known)),
            Expr::Local { slot, .. } => Ok(self.slots[self.base + *slot as usize]),
            Expr::Part(place) => {
                let at = self.address(place)?;
                Ok(self.slots[at])
            }
            Expr::Unary(op, operand, loc) => {
                let x = self.scalar(operand)?;
                op.apply(x).map_err(|fault| self.fault(op.explain(x, fault), *loc, &[&**operand]))
            }
            Expr::Binary(op, pair, loc) => {
                let x = self.scalar(&pair.0)?;
                let y = self.scalar(&pair.1)?;
                op.apply(x, y).map_err(|fault| self.fault(op.explain(x, y, fault), *loc, &[&pair.0, &pair.1]))
            }
            Expr::And(pair) => {
                if self.scalar(&pair.0)? == 0 {
                    return Ok(0);
                }
                self.scalar(&pair.1)
            }
            Expr::Or(pair) => {
                if self.scalar(&pair.0)? != 0 {
                    return Ok(1);
                }
                self.scalar(&pair.1)
            }
            Expr::If(parts) => {
                let (condition, then, otherwise) = &**parts;
                let branch = if self.scalar(condition)? != 0 { then } else { otherwise };
                self.block_scalar(branch)
            }
            Expr::Block(block) => self.block_scalar(block),
            Expr::Call(call) => self.call(call, None),
            Expr::Spill(parts) => {
                self.spill(&parts.0, parts.1)?;
                self.scalar(&parts.2)
            }
            // Only those of one slot are asked for their value.
            Expr::Items(items) => {
                let mut value = 0;
                for (size, item) in items {
                    let item = self.scalar(item)?;
                    if *size > 0 {
                        value = item;
                    }
                }
                Ok(value)
            }
            Expr::Repeat(item, ..) => self.scalar(item),
            Expr::Fit(parts, loc) => {
                let (value, ty) = &**parts;
                let x = self.scalar(value)?;
                self.fit(value, x, ty, *loc)?;
                Ok(x)
            }
        }
    }

    /// Checks that the number `x`, the value of `expr` or a part of it, is in the range of its type.
    fn fit(&mut self, expr: &Expr, x: i64, ty: &Type, loc: Loc) -> Evaluated<()> {
        let Type::Int(ty) = ty else { return Ok(()) };
        let cast = UnaryOp::Cast(*ty);
        cast.apply(x).map(|_| ()).map_err(|fault| self.fault(cast.explain(x, fault), loc, &[expr]))
    }

    /// Checks that the integers stored from `at` on are in the ranges of the type.
    fn fit_all(&mut self, expr: &Expr, at: usize, ty: &Type, loc: Loc) -> Evaluated<()> {
        let items: &mut dyn Iterator<Item = &Type> = match ty {
            Type::Tuple(items) => &mut items.iter(),
            Type::Array(item, len) => &mut std::iter::repeat_n(&**item, *len as usize),
            ty => return self.fit(expr, self.slots[at], ty, loc),
        };
        let mut at = at;
        for item in items {
            self.fit_all(expr, at, item, loc)?;
            at += item.size() as usize;
        }
        Ok(())
    }

    /// Stores the value of any expression to the slots from `at`.
    pub(super) fn store(&mut self, expr: &'a Expr, at: usize) -> Evaluated<()> {
        match expr {
            Expr::Items(items) => {
                let mut at = at;
                for (size, item) in items {
                    self.store(item, at)?;
                    at += *size as usize;
                }
                Ok(())
            }
            Expr::Repeat(item, len, size) => {
                self.store(item, at)?;
                let size = *size as usize;
                for i in 1..*len as usize {
                    self.slots.copy_within(at..at + size, at + i * size);
                }
                Ok(())
            }
            Expr::Part(place) => {
                let from = self.address(place)?;
                self.slots.copy_within(from..from + place.size as usize, at);
                Ok(())
            }
            Expr::If(parts) => {
                let (condition, then, otherwise) = &**parts;
                let branch = if self.scalar(condition)? != 0 { then } else { otherwise };
                self.block_store(branch, at)
            }
            Expr::Block(block) => self.block_store(block, at),
            Expr::Call(call) => self.call(call, Some(at)).map(|_| ()),
            Expr::Spill(parts) => {
                self.spill(&parts.0, parts.1)?;
                self.store(&parts.2, at)
            }
            Expr::Fit(parts, loc) => {
                let (value, ty) = &**parts;
                self.store(value, at)?;
                self.fit_all(value, at, ty, *loc)
            }
            Expr::Const(_)
            | Expr::Known(_)
            | Expr::Local { .. }
            | Expr::Unary(..)
            | Expr::Binary(..)
            | Expr::And(_)
            | Expr::Or(_) => {
                self.slots[at] = self.scalar(expr)?;
                Ok(())
            }
        }
    }

    fn spill(&mut self, value: &'a Expr, slot: u32) -> Evaluated<()> {
        self.store(value, self.base + slot as usize)
    }

    /// Returns the slot at which a place begins.
    pub(super) fn address(&mut self, place: &'a VariablePart) -> Evaluated<usize> {
        let mut at = self.base + place.slot as usize;
        for indexing in &place.indices {
            let index = self.scalar(&indexing.index)?;
            at += self.index(indexing.len as usize, index)? * indexing.stride as usize;
        }
        Ok(at)
    }

    /// Calls a nested fn: its value if that is a scalar and `into` is none; else the value is stored to `into`.
    fn call(&mut self, call: &'a FnCall, into: Option<usize>) -> Evaluated<i64> {
        let function = &self.body.functions[call.function as usize];
        self.spend(1)?;
        if self.calls.len() == CALLS_LIMIT {
            let message = format!("`{}` is called inside more than {CALLS_LIMIT} calls", function.name);
            return Err(self.stop(Check::Arithmetic, message));
        }
        // The frame is reserved first, so that calls among the arguments put theirs behind it.
        let frame = self.slots.len();
        self.slots.resize(frame + function.frame as usize, 0);
        let mut at = frame;
        for (size, argument) in &call.arguments {
            self.store(argument, at)?;
            at += *size as usize;
        }
        let base = std::mem::replace(&mut self.base, frame);
        self.calls.push(call.loc);
        let value = match into {
            None => self.block_scalar(&function.block)?,
            Some(at) => {
                self.block_store(&function.block, at)?;
                0
            }
        };
        self.calls.pop();
        self.base = base;
        self.slots.truncate(frame);
        Ok(value)
    }
}
