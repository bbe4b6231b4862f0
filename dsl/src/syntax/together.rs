//! `(p, q) = (e, f);` on chunks.

use super::movement::unwrapped;
use super::parser::BodyParser;
use super::statement::buffer_root;
use quadrille_compiler::body::MoveStmt;
use syn::ExprTuple;

impl BodyParser {
    /// A tuple of chunks on the left: every part is an assignment of its own. `None` where something was reported.
    pub(super) fn together(&mut self, left: &ExprTuple, right: &syn::Expr) -> Option<Vec<MoveStmt>> {
        if let Some(variable) = left.elems.iter().find(|part| buffer_root(part).is_none()) {
            self.syntax(variable, "variables and chunks cannot be assigned to by one statement")
                .help("make two statements of it: one for the chunks, one for the variables");
            return None;
        }
        let syn::Expr::Tuple(right) = unwrapped(right) else {
            self.syntax(right, "several chunks are stored, but this is no tuple")
                .help("write one right side for each: `(p, q) = (e, f);`");
            return None;
        };
        let (stored, given) = (left.elems.len(), right.elems.len());
        if stored != given {
            self.syntax(right, format!("{stored} chunks are stored, but there are {given} right sides"))
                .help("write one right side for each: `(p, q) = (e, f);`");
            return None;
        }
        let pairs = left.elems.iter().zip(&right.elems);
        let parts: Vec<_> = pairs.map(|(dest, source)| self.movement(dest, false, source)).collect();
        parts.into_iter().map(|part| part.map(|part| *part)).collect()
    }
}
