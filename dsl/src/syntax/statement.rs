//! Blocks and statements.

use super::attribute::text;
use super::expression::assigning_op;
use super::lift::{attributes, lift};
use super::parser::Parser;
use super::{Action, Adaptor, Block, Expr, Piece, Range, Statement, Type};
use crate::diagnose::Places;
use quadrille_compiler::diagnostic::Loc;
use quadrille_compiler::recording::arithmetic::Binary;
use quote::{ToTokens, quote};
use syn::parse::Parser as _;
use syn::punctuated::Punctuated;
use syn::{Attribute, BinOp, Item, Lit, Pat, RangeLimits, Stmt, Token};

/// What a statement of Rust is read as.
enum Read {
    Statement(Box<Statement>),
    /// The last expression of a block, which is the block's value.
    Value(Loc, Expr, Type),
    /// An item, or something reported.
    Nothing,
}

impl Parser {
    /// A block that has no value.
    pub(super) fn unit_block(&mut self, block: &syn::Block) -> Block {
        let (read, ty) = self.block(block);
        if !ty.agrees(&Type::unit())
            && let Some(last) = block.stmts.last()
        {
            self.syntax(last, format!("a value of type `{ty}` that nobody takes")).help("end it with `;`");
        }
        read
    }

    /// A block and the type of its value.
    pub(super) fn block(&mut self, block: &syn::Block) -> (Block, Type) {
        self.deeper(block, |parser| parser.block_here(block))
            .unwrap_or_else(|| (Block::default(), Type::Unknown))
    }

    fn block_here(&mut self, block: &syn::Block) -> (Block, Type) {
        let (variables, functions) = (self.scope.len(), self.function_scope.len());
        // Fns are known in all of the block, also above their text.
        let first = self.functions.len() as u32;
        for stmt in &block.stmts {
            if let Stmt::Item(Item::Fn(item)) = stmt {
                let name = item.sig.ident.to_string();
                if self.function_scope[functions..].iter().any(|(known, _)| *known == name) {
                    self.syntax(&item.sig.ident, format!("two fns of this block are called `{name}`"));
                }
                self.declare(item);
            }
        }
        let mut number = first;
        let mut read = Block::default();
        let mut ty = Type::unit();
        for (i, stmt) in block.stmts.iter().enumerate() {
            if let Stmt::Item(Item::Fn(item)) = stmt {
                self.define(item, number);
                number += 1;
                continue;
            }
            match self.statement(stmt, i + 1 == block.stmts.len()) {
                Read::Statement(statement) => read.statements.push(*statement),
                Read::Value(loc, value, of) => {
                    read.value = Some((loc, value));
                    ty = of;
                }
                Read::Nothing => {}
            }
        }
        self.scope.truncate(variables);
        self.function_scope.truncate(functions);
        (read, ty)
    }

    fn statement(&mut self, stmt: &Stmt, last: bool) -> Read {
        match stmt {
            Stmt::Local(local) => self.local(local),
            Stmt::Macro(call) => {
                self.stray_attributes(&call.attrs);
                let (mac, semi) = (&call.mac, &call.semi_token);
                self.assertion(mac, quote!(#mac #semi))
            }
            Stmt::Item(item) => {
                let (what, instead) = match item {
                    Item::Const(_) | Item::Static(_) => ("a constant", "write `let`"),
                    Item::Use(_) => ("`use`", "nothing needs to be imported: leave it out"),
                    Item::Macro(_) => ("a macro", "write a nested `fn`"),
                    _ => ("this item", "only fns can be defined here"),
                };
                self.outside(item, what, instead);
                Read::Nothing
            }
            Stmt::Expr(expr, semi) => {
                let (bare, lifted) = lift(expr);
                self.expression_statement(&bare, &lifted, semi.as_ref(), last)
            }
        }
    }

    fn local(&mut self, local: &syn::Local) -> Read {
        self.stray_attributes(&local.attrs);
        let bare = syn::Local { attrs: Vec::new(), ..local.clone() };
        let loc = self.places.of(&bare);
        let Some(init) = &local.init else {
            self.outside(&bare, "a `let` without a value", "give it its value here");
            self.pattern(&local.pat, &Type::Unknown, 0);
            return Read::Nothing;
        };
        if let Some((otherwise, block)) = &init.diverge {
            self.outside(quote!(#otherwise #block), "`let .. else`", "write `if`/`else`");
        }
        if let Some(buffer) = buffer_root(&init.expr) {
            self.syntax(&init.expr, format!("`{buffer}` holds data, not numbers; no variable can hold it"))
                .help("chunks are moved by assignment: `output[r][c] = input[s][c];`");
            self.pattern(&local.pat, &Type::Unknown, 0);
            return Read::Nothing;
        }
        let value = self.expr(&init.expr);
        let slot = self.slots(value.ty.size(), &local.pat);
        self.pattern(&local.pat, &value.ty, slot);
        Read::Statement(Box::new(Statement {
            loc,
            on: None,
            action: Action::Set { slot, value: value.expr },
        }))
    }

    fn expression_statement(
        &mut self,
        expr: &syn::Expr,
        attributes: &[Attribute],
        semi: Option<&Token![;]>,
        last: bool,
    ) -> Read {
        // syn leaves invisible groups around what `macro_rules!` put in.
        if let syn::Expr::Group(group) = expr {
            return self.expression_statement(&group.expr, attributes, semi, last);
        }
        let loc = match expr {
            syn::Expr::If(_) | syn::Expr::While(_) | syn::Expr::ForLoop(_) => self.head(expr),
            _ => self.places.of(quote!(#expr #semi)),
        };
        let on = if carries_on(expr) {
            self.statement_attributes(attributes).map(|rank| self.int(&rank, "the rank of `#[on(..)]`"))
        } else {
            self.stray_attributes(attributes);
            None
        };
        let action = match expr {
            syn::Expr::Assign(assign) => match buffer_root(&assign.left) {
                Some(_) => self.movement(&assign.left, false, &assign.right).map(Action::Move),
                None => self.assign(&assign.left, None, &assign.right),
            },
            syn::Expr::Binary(binary) if assigning_op(&binary.op).is_some() => {
                match (buffer_root(&binary.left), &binary.op) {
                    (Some(_), BinOp::AddAssign(_)) => {
                        self.movement(&binary.left, true, &binary.right).map(Action::Move)
                    }
                    (Some(_), op) => {
                        let what = format!("`{}` on chunks", op.to_token_stream());
                        self.outside(
                            expr,
                            what,
                            "chunks are combined by `+=`, which stands for the call's operator",
                        );
                        return Read::Nothing;
                    }
                    (None, op) => self.assign(&binary.left, assigning_op(op), &binary.right),
                }
            }
            syn::Expr::ForLoop(each) => self.for_loop(each),
            syn::Expr::While(each) => {
                self.no_label(each.label.as_ref());
                let condition = self.bool(&each.cond, "the condition of a `while`");
                let body = self.unit_block(&each.body);
                let name = self.loop_name("while".to_owned());
                Some(Action::While { name, condition, body })
            }
            syn::Expr::Macro(call) => {
                let tokens = quote!(#call #semi);
                return self.assertion(&call.mac, tokens);
            }
            _ => {
                let value = self.expr(expr);
                let unit = value.ty.agrees(&Type::unit());
                if semi.is_none() && last && on.is_none() {
                    return Read::Value(loc, value.expr, value.ty);
                }
                if semi.is_none() && !unit {
                    self.syntax(expr, format!("a value of type `{}` that nobody takes", value.ty));
                }
                let slot = self.slots(value.ty.size(), expr);
                Some(Action::Set { slot, value: value.expr })
            }
        };
        match action {
            Some(action) => Read::Statement(Box::new(Statement { loc, on, action })),
            None => Read::Nothing,
        }
    }

    /// `left = right` or `left op= right` on variables.
    fn assign(&mut self, left: &syn::Expr, op: Option<Binary>, right: &syn::Expr) -> Option<Action> {
        if let (syn::Expr::Tuple(tuple), None) = (left, op) {
            return self.assign_parts(tuple, right);
        }
        if matches!(left, syn::Expr::Infer(_)) && op.is_none() {
            let value = self.expr(right);
            let slot = self.slots(value.ty.size(), left);
            return Some(Action::Set { slot, value: value.expr });
        }
        let target = self.target(left);
        let value = self.expr(right);
        let (place, ty) = target?;
        let loc = self.places.of(right);
        if op.is_some() {
            self.wanted(&Type::Int, &ty, loc, "what is assigned to");
        }
        self.wanted(&ty, &value.ty, loc, "what is assigned to");
        Some(Action::Assign { place, op, value: value.expr })
    }

    fn assign_parts(&mut self, tuple: &syn::ExprTuple, right: &syn::Expr) -> Option<Action> {
        if tuple.elems.iter().any(|part| buffer_root(part).is_some()) {
            self.not_yet(tuple, "assigning to several chunks at once")
                .help("write one assignment after the other");
            return None;
        }
        let targets: Vec<_> = tuple.elems.iter().map(|part| self.target(part)).collect();
        let value = self.expr(right);
        let temp = self.slots(value.ty.size(), right);
        let mut places = Vec::new();
        let mut types = Vec::new();
        let mut offset = 0u32;
        for target in targets {
            let (place, ty) = target?;
            offset = offset.saturating_add(ty.size());
            places.push((offset - ty.size(), place));
            types.push(ty);
        }
        let loc = self.places.of(right);
        self.wanted(&Type::Tuple(types), &value.ty, loc, "what is assigned to");
        Some(Action::Scatter { temp, value: value.expr, places })
    }

    /// A variable, or a part of one, that may be assigned to.
    fn target(&mut self, left: &syn::Expr) -> Option<(super::Place, Type)> {
        let (place, ty, _) = self.place(left)?;
        let Some(variable) = place.variable else {
            self.syntax(left, "this cannot be assigned to")
                .help("assign to a variable, a part of one, or a chunk as `output[r][c]`");
            return None;
        };
        let mutable = self.scope.iter().rev().any(|b| b.variable == variable && b.mutable);
        if !mutable {
            let name = self.variables[variable as usize].name.clone();
            self.syntax(left, format!("`{name}` cannot be assigned to a second time"))
                .help(format!("make it `let mut {name}`"));
        }
        Some((place, ty))
    }

    fn for_loop(&mut self, each: &syn::ExprForLoop) -> Option<Action> {
        self.no_label(each.label.as_ref());
        let range = self.range(&each.expr);
        let scope = self.scope.len();
        let slot = self.slots(1, &each.pat);
        let name = match &*each.pat {
            Pat::Ident(ident) => ident.ident.to_string(),
            _ => "_".to_owned(),
        };
        self.pattern(&each.pat, &Type::Int, slot);
        let body = self.unit_block(&each.body);
        self.scope.truncate(scope);
        let name = self.loop_name(name);
        Some(Action::For { slot, name, range: range?, body })
    }

    /// What a `for` runs over.
    fn range(&mut self, expr: &syn::Expr) -> Option<Range> {
        self.stray_attributes(attributes(expr));
        match expr {
            syn::Expr::Paren(paren) => self.range(&paren.expr),
            syn::Expr::Group(group) => self.range(&group.expr),
            syn::Expr::Range(range) => {
                let (Some(start), Some(end)) = (&range.start, &range.end) else {
                    self.syntax(range, "a `for` runs over a range with two ends").help("write `0..n`");
                    return None;
                };
                Some(Range {
                    start: self.int(start, "the start of a range"),
                    end: self.int(end, "the end of a range"),
                    inclusive: matches!(range.limits, RangeLimits::Closed(_)),
                    adaptors: Vec::new(),
                })
            }
            syn::Expr::MethodCall(call) => {
                let mut range = self.range(&call.receiver)?;
                let adaptor = match (call.method.to_string().as_str(), call.args.len()) {
                    ("rev", 0) => Adaptor::Rev,
                    ("step_by", 1) => Adaptor::StepBy(self.int(&call.args[0], "the step of a range")),
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

    /// `assert!(condition, "message")`.
    fn assertion(&mut self, mac: &syn::Macro, tokens: proc_macro2::TokenStream) -> Read {
        let loc = self.places.of(&tokens);
        if !mac.path.is_ident("assert") {
            let what = format!("`{}!`", text(&mac.path));
            self.outside(tokens, what, "the only macro is `assert!(condition, \"message\")`");
            return Read::Nothing;
        }
        let arguments = Punctuated::<syn::Expr, Token![,]>::parse_terminated;
        let arguments = match arguments.parse2(mac.tokens.clone()) {
            Ok(arguments) => arguments,
            Err(error) => {
                let findings = self.places.syntax(error);
                self.findings.extend(findings);
                return Read::Nothing;
            }
        };
        let mut arguments = arguments.iter();
        let Some(condition) = arguments.next() else {
            self.syntax(tokens, "`assert!` without a condition");
            return Read::Nothing;
        };
        let condition_loc = self.places.of(condition);
        let condition = self.bool(condition, "the condition of an `assert!`");
        let message = match arguments.next() {
            None => Vec::new(),
            Some(syn::Expr::Lit(syn::ExprLit { lit: Lit::Str(message), .. })) => self.message(message),
            Some(other) => {
                self.syntax(other, "the message of an `assert!` is a literal text");
                Vec::new()
            }
        };
        if let Some(rest) = arguments.next() {
            self.outside(
                rest,
                "an argument of the message",
                "write the variable's name into the braces: `{x}`",
            );
        }
        let action = Action::Assert { condition, condition_loc, message };
        Read::Statement(Box::new(Statement { loc, on: None, action }))
    }

    /// A message with `{name}`s in it.
    fn message(&mut self, literal: &syn::LitStr) -> Vec<Piece> {
        let mut pieces = Vec::new();
        for fragment in fragments(literal) {
            match fragment {
                Fragment::Text(text) => pieces.push(Piece::Text(text)),
                Fragment::Name(ident) => {
                    let value = self.expr(&syn::parse_quote!(#ident));
                    pieces.push(Piece::Value(value.expr, value.ty));
                }
                Fragment::NoName(name) => self.outside(
                    literal,
                    format!("`{{{name}}}` in a message"),
                    "write a variable's name into the braces",
                ),
                Fragment::StrayBrace => {
                    self.syntax(literal, "a `}` without its `{`").help("write `}}` for a brace");
                }
            }
        }
        pieces
    }

    /// The place of an expression; of one with a block, only up to the block.
    pub(super) fn head(&mut self, expr: &syn::Expr) -> Loc {
        head(&mut self.places, expr)
    }
}

/// A piece of a message's text.
#[derive(Debug)]
pub(crate) enum Fragment {
    Text(String),
    /// `{name}`.
    Name(syn::Ident),
    /// Braces around something else.
    NoName(String),
    /// A `}` that closes nothing.
    StrayBrace,
}

/// The pieces of a message.
pub(crate) fn fragments(literal: &syn::LitStr) -> Vec<Fragment> {
    let whole = literal.value();
    let mut fragments = Vec::new();
    let mut plain = String::new();
    let mut chars = whole.chars().peekable();
    while let Some(c) = chars.next() {
        let special = match c {
            '{' | '}' if chars.next_if_eq(&c).is_some() => None,
            '{' => {
                let name: String = chars.by_ref().take_while(|c| *c != '}').collect();
                Some(match syn::parse_str::<syn::Ident>(&name) {
                    Ok(mut ident) => {
                        ident.set_span(literal.span());
                        Fragment::Name(ident)
                    }
                    Err(_) => Fragment::NoName(name),
                })
            }
            '}' => Some(Fragment::StrayBrace),
            _ => None,
        };
        match special {
            Some(special) => fragments.extend([Fragment::Text(std::mem::take(&mut plain)), special]),
            None => plain.push(c),
        }
    }
    fragments.push(Fragment::Text(plain));
    fragments
}

/// The condition of an `assert!` that has been read, and its message.
pub(crate) fn assertion(mac: &syn::Macro) -> Option<(syn::Expr, Option<syn::LitStr>)> {
    let arguments = Punctuated::<syn::Expr, Token![,]>::parse_terminated;
    let mut arguments = arguments.parse2(mac.tokens.clone()).ok()?.into_iter();
    let condition = arguments.next()?;
    let message = match arguments.next() {
        Some(syn::Expr::Lit(syn::ExprLit { lit: Lit::Str(message), .. })) => Some(message),
        _ => None,
    };
    Some((condition, message))
}

/// The place of an expression; of one with a block, only up to the block.
pub(crate) fn head(places: &mut Places, expr: &syn::Expr) -> Loc {
    match expr {
        syn::Expr::If(e) => {
            let (keyword, condition) = (&e.if_token, &e.cond);
            places.of(quote!(#keyword #condition))
        }
        syn::Expr::While(e) => {
            let (keyword, condition) = (&e.while_token, &e.cond);
            places.of(quote!(#keyword #condition))
        }
        syn::Expr::ForLoop(e) => {
            let (keyword, range) = (&e.for_token, &e.expr);
            places.of(quote!(#keyword #range))
        }
        _ => places.of(expr),
    }
}

/// The buffer that `buffer[..]..` is a part of.
pub(crate) fn buffer_root(expr: &syn::Expr) -> Option<String> {
    match expr {
        syn::Expr::Index(indexed) => buffer_root(&indexed.expr),
        syn::Expr::Field(field) => buffer_root(&field.base),
        syn::Expr::Paren(paren) => buffer_root(&paren.expr),
        syn::Expr::Group(group) => buffer_root(&group.expr),
        syn::Expr::Path(path) => path
            .path
            .get_ident()
            .map(ToString::to_string)
            .filter(|name| ["input", "output", "data", "scratch"].contains(&name.as_str())),
        _ => None,
    }
}

/// Whether `#[on(..)]` may stand on the statement.
fn carries_on(expr: &syn::Expr) -> bool {
    match expr {
        syn::Expr::ForLoop(_)
        | syn::Expr::While(_)
        | syn::Expr::If(_)
        | syn::Expr::Block(_)
        | syn::Expr::Call(_) => true,
        syn::Expr::Assign(assign) => match &*assign.left {
            syn::Expr::Tuple(tuple) => tuple.elems.iter().any(|part| buffer_root(part).is_some()),
            left => buffer_root(left).is_some(),
        },
        syn::Expr::Binary(binary) => buffer_root(&binary.left).is_some(),
        _ => false,
    }
}
