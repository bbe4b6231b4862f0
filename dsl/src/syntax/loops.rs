//! `for`, and what it runs over.

use super::lift::attributes;
use super::parser::BodyParser;
use quadrille_compiler::body::{ForRange, RangeAdaptor, StmtKind, Type};
use syn::{Pat, RangeLimits};

impl BodyParser {
    pub(super) fn for_loop(&mut self, each: &syn::ExprForLoop) -> Option<StmtKind> {
        self.no_label(each.label.as_ref());
        let range = self.range(&each.expr);
        let scope = self.scope.len();
        let slot = self.slots(1, &each.pat);
        let name = match &*each.pat {
            Pat::Ident(ident) => ident.ident.to_string(),
            _ => "_".to_owned(),
        };
        self.pattern(&each.pat, &Type::INT, slot);
        let body = self.unit_block(&each.body);
        self.scope.truncate(scope);
        let name = self.loop_name(name);
        Some(StmtKind::For { slot, name, range: range?, body })
    }

    /// Reads the range of a `for`.
    fn range(&mut self, expr: &syn::Expr) -> Option<ForRange> {
        self.stray_attributes(attributes(expr));
        match expr {
            syn::Expr::Paren(paren) => self.range(&paren.expr),
            syn::Expr::Group(group) => self.range(&group.expr),
            syn::Expr::Range(range) => {
                let (Some(start), Some(end)) = (&range.start, &range.end) else {
                    self.syntax(range, "a `for` runs over a range with two ends").help("write `0..n`");
                    return None;
                };
                Some(ForRange {
                    start: self.int(start, "the start of a range"),
                    end: self.int(end, "the end of a range"),
                    inclusive: matches!(range.limits, RangeLimits::Closed(_)),
                    adaptors: Vec::new(),
                })
            }
            syn::Expr::MethodCall(call) => {
                let mut range = self.range(&call.receiver)?;
                let adaptor = match (call.method.to_string().as_str(), call.args.len()) {
                    ("rev", 0) => RangeAdaptor::Rev,
                    ("step_by", 1) => RangeAdaptor::StepBy(self.int(&call.args[0], "the step of a range")),
                    ("rev" | "step_by", _) => {
                        self.syntax(call, "`.rev()` takes no argument, `.step_by(n)` one");
                        return None;
                    }
                    (name, _) => {
                        let what = format!("`.{name}(..)` on a range");
                        self.outside(&call.method, what, "write `.rev()` or `.step_by(n)`");
                        return None;
                    }
                };
                range.adaptors.push(adaptor);
                Some(range)
            }
            _ => {
                self.outside(expr, "a `for` over anything but a range", "write `for i in 0..n`");
                None
            }
        }
    }
}
