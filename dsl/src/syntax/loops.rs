//! `for` over a range or an array.

use super::lift::attributes;
use super::movement::unwrapped;
use super::parser::{BodyParser, Typed};
use quadrille_compiler::body::{ForRange, LoopValues, RangeAdaptor, StmtKind, Type};
use syn::{Pat, RangeLimits};

/// The methods of a range.
const ADAPTORS: [&str; 2] = ["rev", "step_by"];

impl BodyParser {
    pub(super) fn for_loop(&mut self, each: &syn::ExprForLoop) -> Option<StmtKind> {
        self.no_label(each.label.as_ref());
        let (over, item) = match ranged(&each.expr) {
            true => (self.range(&each.expr).map(LoopValues::Range), Type::INT),
            false => self.items(&each.expr),
        };
        let scope = self.scope.len();
        let slot = self.slots(item.size(), &each.pat);
        let name = match &*each.pat {
            Pat::Ident(ident) => ident.ident.to_string(),
            _ => "_".to_owned(),
        };
        self.pattern(&each.pat, &item, slot);
        let body = self.unit_block(&each.body);
        self.scope.truncate(scope);
        let name = self.loop_name(name);
        Some(StmtKind::For { slot, name, over: over?, body })
    }

    /// Reads the array of a `for`; returns its items' type as well.
    fn items(&mut self, expr: &syn::Expr) -> (Option<LoopValues>, Type) {
        let Typed { expr: value, ty } = self.expr(expr);
        match ty {
            Type::Array(item, len) => {
                let at = self.slots(item.size().saturating_mul(len), expr);
                (Some(LoopValues::Items { value, at, len, size: item.size() }), *item)
            }
            Type::Unknown => (None, Type::Unknown),
            ty => {
                self.syntax(
                    expr,
                    format!("a `for` runs over a range or an array, and this is of type `{ty}`"),
                )
                .help("write `for i in 0..n`, or `for g in [0, 2, 4]`");
                (None, Type::Unknown)
            }
        }
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
                self.outside(
                    expr,
                    "an adaptor of anything but a range",
                    "write `(0..n).rev()` or `(0..n).step_by(k)`; an array is taken as it is: `for r in [1, 2]`",
                );
                None
            }
        }
    }
}

/// Returns true if a `for` runs over a range, adapted or not, or over something that only a range can have been meant by.
pub(crate) fn ranged(expr: &syn::Expr) -> bool {
    match unwrapped(expr) {
        syn::Expr::Range(_) => true,
        syn::Expr::MethodCall(call) => {
            ranged(&call.receiver) || ADAPTORS.contains(&&*call.method.to_string())
        }
        _ => false,
    }
}
