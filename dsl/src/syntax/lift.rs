//! Attributes of expressions. syn hangs the attribute of a statement on the statement's leftmost operand; here they
//! are lifted from there.

use std::borrow::Cow;
use syn::{Attribute, Expr};

/// `$found`, with `$e` bound to an expression that has attributes; else `$none`.
macro_rules! with_attributes {
    ($expr:expr, $e:ident => $found:expr, $none:expr) => {
        match $expr {
            Expr::Array($e) => $found,
            Expr::Assign($e) => $found,
            Expr::Binary($e) => $found,
            Expr::Block($e) => $found,
            Expr::Call($e) => $found,
            Expr::Cast($e) => $found,
            Expr::Field($e) => $found,
            Expr::ForLoop($e) => $found,
            Expr::Group($e) => $found,
            Expr::If($e) => $found,
            Expr::Index($e) => $found,
            Expr::Lit($e) => $found,
            Expr::Loop($e) => $found,
            Expr::Macro($e) => $found,
            Expr::Match($e) => $found,
            Expr::MethodCall($e) => $found,
            Expr::Paren($e) => $found,
            Expr::Path($e) => $found,
            Expr::Range($e) => $found,
            Expr::Reference($e) => $found,
            Expr::Repeat($e) => $found,
            Expr::Return($e) => $found,
            Expr::Tuple($e) => $found,
            Expr::Unary($e) => $found,
            Expr::While($e) => $found,
            _ => $none,
        }
    };
}

/// The attributes that stand on the expression itself. (Expressions outside the language are reported as such.)
pub(super) fn attributes(expr: &Expr) -> &[Attribute] {
    with_attributes!(expr, e => &e.attrs, &[])
}

/// The statement without its attributes, and those.
pub(crate) fn lift(statement: &Expr) -> (Cow<'_, Expr>, Vec<Attribute>) {
    let mut at = Some(statement);
    while let Some(expr) = at {
        if !attributes(expr).is_empty() {
            let mut bare = statement.clone();
            let lifted = take(&mut bare);
            return (Cow::Owned(bare), lifted);
        }
        at = leftmost(expr);
    }
    (Cow::Borrowed(statement), Vec::new())
}

fn take(statement: &mut Expr) -> Vec<Attribute> {
    let mut taken = Vec::new();
    let mut at = Some(statement);
    while let Some(expr) = at {
        with_attributes!(&mut *expr, e => taken.append(&mut e.attrs), {});
        at = leftmost_mut(expr);
    }
    taken
}

/// The operand that an expression begins with, by a shared or an exclusive reference as `$expr` is one.
macro_rules! first_operand {
    ($expr:expr) => {
        match $expr {
            Expr::Assign(syn::ExprAssign { left: first, .. })
            | Expr::Binary(syn::ExprBinary { left: first, .. })
            | Expr::Call(syn::ExprCall { func: first, .. })
            | Expr::Cast(syn::ExprCast { expr: first, .. })
            | Expr::Field(syn::ExprField { base: first, .. })
            | Expr::Group(syn::ExprGroup { expr: first, .. })
            | Expr::Index(syn::ExprIndex { expr: first, .. })
            | Expr::MethodCall(syn::ExprMethodCall { receiver: first, .. }) => Some(first),
            _ => None,
        }
    };
}

fn leftmost(expr: &Expr) -> Option<&Expr> {
    first_operand!(expr).map(|first| &**first)
}

fn leftmost_mut(expr: &mut Expr) -> Option<&mut Expr> {
    first_operand!(expr).map(|first| &mut **first)
}
