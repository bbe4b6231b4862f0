//! Values as messages show them.

use super::{Evaluated, Evaluator};
use crate::body::{Expr, KnownName, ReadName, Type};

impl<'a> Evaluator<'a> {
    /// The values of what the expressions read, as `RANKS = 4, c = 1`; each name once.
    pub(super) fn values(&self, exprs: &[&Expr]) -> String {
        let mut seen = Vec::new();
        let mut parts = Vec::new();
        let mut see = |read: ReadName| {
            if seen.contains(&read) {
                return;
            }
            seen.push(read);
            parts.push(match read {
                ReadName::Known(known) => format!("{} = {}", self.name_of(known), self.known(known)),
                ReadName::Variable(variable) => {
                    let variable = &self.body.variables[variable as usize];
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

    fn name_of(&self, known: KnownName) -> &'a str {
        match known {
            KnownName::Ranks => "RANKS",
            KnownName::Root => "ROOT",
            KnownName::Nodes => "NODES",
            KnownName::LocalRanks => "LOCAL_RANKS",
            KnownName::Param(param) => &self.body.head.params[param as usize].name,
        }
    }

    /// The value of an expression as text.
    pub(super) fn show(&mut self, expr: &'a Expr, ty: &Type) -> Evaluated<String> {
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
