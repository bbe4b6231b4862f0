//! Values as messages show them.

use super::{Evaluator, Run};
use crate::syntax::{Expr, Known, Read, Type};

impl<'a> Evaluator<'a> {
    /// The values of what the expressions read, as `RANKS = 4, c = 1`; each name once.
    pub(super) fn values(&self, exprs: &[&Expr]) -> String {
        let mut seen = Vec::new();
        let mut parts = Vec::new();
        let mut see = |read: Read| {
            if seen.contains(&read) {
                return;
            }
            seen.push(read);
            parts.push(match read {
                Read::Known(known) => format!("{} = {}", self.name_of(known), self.known(known)),
                Read::Variable(variable) => {
                    let variable = &self.definition.variables[variable as usize];
                    let at = self.base + variable.slot as usize;
                    format!("{} = {}", variable.name, self.text(&variable.ty, at))
                }
            });
        };
        for expr in exprs {
            expr.visit_reads(&mut see);
        }
        parts.join(", ")
    }

    fn name_of(&self, known: Known) -> &'a str {
        match known {
            Known::Ranks => "RANKS",
            Known::Root => "ROOT",
            Known::Nodes => "NODES",
            Known::LocalRanks => "LOCAL_RANKS",
            Known::Param(param) => &self.definition.options.params[param as usize].name,
        }
    }

    /// The value of an expression as text.
    pub(super) fn show(&mut self, expr: &'a Expr, ty: &Type) -> Run<String> {
        let at = self.slots.len();
        self.slots.resize(at + ty.size() as usize, 0);
        self.store(expr, at)?;
        let text = self.text(ty, at);
        self.slots.truncate(at);
        Ok(text)
    }

    fn text(&self, ty: &Type, at: usize) -> String {
        let list = |types: &mut dyn Iterator<Item = &Type>| {
            let mut at = at;
            let mut parts = Vec::new();
            for ty in types {
                parts.push(self.text(ty, at));
                at += ty.size() as usize;
            }
            parts.join(", ")
        };
        match ty {
            Type::Bool => (self.slots[at] != 0).to_string(),
            Type::Int(_) | Type::Unknown => self.slots[at].to_string(),
            Type::Tuple(items) => {
                let comma = if items.len() == 1 { "," } else { "" };
                format!("({}{comma})", list(&mut items.iter()))
            }
            Type::Array(item, len) => {
                format!("[{}]", list(&mut std::iter::repeat_n(&**item, *len as usize)))
            }
        }
    }
}
