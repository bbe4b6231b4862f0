//! What an expression reads, for messages: `Expr::visit_reads` on Rust's own tree.

use proc_macro2::Ident;
use syn::Expr;

/// The names that the expressions read outside blocks, in text order, each once.
pub(super) fn reads(exprs: &[&Expr]) -> Vec<Ident> {
    let mut names = Vec::new();
    exprs.iter().for_each(|expr| visit(expr, &mut names));
    names
}

fn visit(expr: &Expr, names: &mut Vec<Ident>) {
    match expr {
        Expr::Path(path) => {
            if let Some(name) = path.path.get_ident()
                && !names.contains(name)
            {
                names.push(name.clone());
            }
        }
        Expr::Paren(inner) => visit(&inner.expr, names),
        Expr::Group(inner) => visit(&inner.expr, names),
        Expr::Unary(unary) => visit(&unary.expr, names),
        Expr::Cast(cast) => visit(&cast.expr, names),
        Expr::Field(field) => visit(&field.base, names),
        Expr::Repeat(repeat) => visit(&repeat.expr, names),
        Expr::If(branch) => visit(&branch.cond, names),
        Expr::Binary(binary) => {
            visit(&binary.left, names);
            visit(&binary.right, names);
        }
        Expr::Index(indexed) => {
            visit(&indexed.expr, names);
            visit(&indexed.index, names);
        }
        Expr::Call(call) => call.args.iter().for_each(|argument| visit(argument, names)),
        Expr::MethodCall(call) => {
            visit(&call.receiver, names);
            call.args.iter().for_each(|argument| visit(argument, names));
        }
        Expr::Tuple(tuple) => tuple.elems.iter().for_each(|item| visit(item, names)),
        Expr::Array(array) => array.elems.iter().for_each(|item| visit(item, names)),
        _ => {}
    }
}
