//! Blocks and statements.

use super::expression::assigning_op;
use super::lift::lift;
use super::parser::BodyParser;
use crate::diagnose::Places;
use proc_macro2::TokenStream;
use quadrille_compiler::body::arithmetic::{BinaryOp, IntType};
use quadrille_compiler::body::{Expr, Stmt, StmtBlock, StmtKind, Type, VariablePart};
use quadrille_compiler::diagnostic::Loc;
use quote::{ToTokens, quote};
use syn::{Attribute, BinOp, Item, Pat, Token};

/// The reading of a statement of Rust.
enum ParsedStatement {
    Statement(Box<Stmt>),
    /// The last expression of a block, which is the block's value.
    Value(Loc, Expr, Type),
    /// An item, or something reported.
    Nothing,
}

impl BodyParser {
    /// A block that has no value.
    pub(super) fn unit_block(&mut self, block: &syn::Block) -> StmtBlock {
        let (read, ty) = self.block(block);
        if !ty.agrees(&Type::unit())
            && let Some(last) = block.stmts.last()
        {
            self.syntax(last, format!("a value of type `{ty}` that nobody takes")).help("end it with `;`");
        }
        read
    }

    /// A block and the type of its value.
    pub(super) fn block(&mut self, block: &syn::Block) -> (StmtBlock, Type) {
        self.deeper(block, |parser| parser.block_here(block))
            .unwrap_or_else(|| (StmtBlock::default(), Type::Unknown))
    }

    fn block_here(&mut self, block: &syn::Block) -> (StmtBlock, Type) {
        let (variables, functions) = (self.scope.len(), self.function_scope.len());
        // Fns are known in all of the block, also above their text.
        let first = self.functions.len() as u32;
        for stmt in &block.stmts {
            if let syn::Stmt::Item(Item::Fn(item)) = stmt {
                let name = item.sig.ident.to_string();
                if self.function_scope[functions..].iter().any(|(known, _)| *known == name) {
                    self.syntax(&item.sig.ident, format!("two fns of this block are called `{name}`"));
                }
                self.declare(item);
            }
        }
        let mut number = first;
        let mut read = StmtBlock::default();
        let mut ty = Type::unit();
        for (i, stmt) in block.stmts.iter().enumerate() {
            if let syn::Stmt::Item(Item::Fn(item)) = stmt {
                self.define(item, number);
                number += 1;
                continue;
            }
            match self.statement(stmt, i + 1 == block.stmts.len()) {
                ParsedStatement::Statement(statement) => read.statements.push(*statement),
                ParsedStatement::Value(loc, value, of) => {
                    read.value = Some((loc, value));
                    ty = of;
                }
                ParsedStatement::Nothing => {}
            }
        }
        self.scope.truncate(variables);
        self.function_scope.truncate(functions);
        (read, ty)
    }

    fn statement(&mut self, stmt: &syn::Stmt, last: bool) -> ParsedStatement {
        match stmt {
            syn::Stmt::Local(local) => self.local(local),
            syn::Stmt::Macro(call) => {
                self.stray_attributes(&call.attrs);
                let (mac, semi) = (&call.mac, &call.semi_token);
                self.macro_call(mac, quote!(#mac #semi))
            }
            syn::Stmt::Item(item) => {
                self.no_item(item);
                ParsedStatement::Nothing
            }
            syn::Stmt::Expr(expr, semi) => {
                let (bare, lifted) = lift(expr);
                self.expression_statement(&bare, &lifted, semi.as_ref(), last)
            }
        }
    }

    fn macro_call(&mut self, mac: &syn::Macro, tokens: TokenStream) -> ParsedStatement {
        let loc = self.places.of(&tokens);
        match self.macro_statement(mac, tokens) {
            Some(kind) => ParsedStatement::Statement(Box::new(Stmt { loc, attributes: None, kind })),
            None => ParsedStatement::Nothing,
        }
    }

    fn local(&mut self, local: &syn::Local) -> ParsedStatement {
        self.stray_attributes(&local.attrs);
        let bare = syn::Local { attrs: Vec::new(), ..local.clone() };
        let loc = self.places.of(&bare);
        let Some(init) = &local.init else {
            self.outside(&bare, "a `let` without a value", "give it its value here");
            self.pattern(&local.pat, &Type::Unknown, 0);
            return ParsedStatement::Nothing;
        };
        if let Some((otherwise, block)) = &init.diverge {
            self.outside(quote!(#otherwise #block), "`let .. else`", "write `if`/`else`");
        }
        if let Some(buffer) = buffer_root(&init.expr) {
            self.syntax(&init.expr, format!("`{buffer}` holds data, not numbers; no variable can hold it"))
                .help("chunks are moved by assignment: `output[r][c] = input[s][c];`");
            self.pattern(&local.pat, &Type::Unknown, 0);
            return ParsedStatement::Nothing;
        }
        let (value, ty, pattern) = match &local.pat {
            Pat::Type(typed) => {
                let ty = self.ty(&typed.ty);
                let value = self.expr(&init.expr);
                let value_loc = self.places.of(&init.expr);
                (self.fit(&ty, value, value_loc, "this variable"), ty, &*typed.pat)
            }
            pattern => {
                let value = self.expr(&init.expr);
                (value.expr, value.ty, pattern)
            }
        };
        let slot = self.slots(ty.size(), &local.pat);
        self.pattern(pattern, &ty, slot);
        ParsedStatement::Statement(Box::new(Stmt {
            loc,
            attributes: None,
            kind: StmtKind::Set { slot, value },
        }))
    }

    fn expression_statement(
        &mut self,
        expr: &syn::Expr,
        attributes: &[Attribute],
        semi: Option<&Token![;]>,
        last: bool,
    ) -> ParsedStatement {
        // syn leaves invisible groups around what `macro_rules!` put in.
        if let syn::Expr::Group(group) = expr {
            return self.expression_statement(&group.expr, attributes, semi, last);
        }
        let loc = match expr {
            syn::Expr::If(_) | syn::Expr::While(_) | syn::Expr::ForLoop(_) => self.head(expr),
            _ => self.places.of(quote!(#expr #semi)),
        };
        let attributes = if carries_attributes(expr) {
            self.statement_attributes(attributes)
        } else {
            self.stray_attributes(attributes);
            None
        };
        let action = match expr {
            syn::Expr::Assign(assign) => {
                if buffer_root(&assign.left).is_some() || self.like_a_chunk(&assign.left) {
                    self.movement(&assign.left, false, &assign.right).map(StmtKind::Move)
                } else {
                    self.assign(&assign.left, None, &assign.right)
                }
            }
            syn::Expr::Binary(binary) if assigning_op(&binary.op).is_some() => {
                let moves = buffer_root(&binary.left).is_some() || self.like_a_chunk(&binary.left);
                match (moves, &binary.op) {
                    (true, BinOp::AddAssign(_)) => {
                        self.movement(&binary.left, true, &binary.right).map(StmtKind::Move)
                    }
                    (true, op) => {
                        let what = format!("`{}` on chunks", op.to_token_stream());
                        self.outside(
                            expr,
                            what,
                            "chunks are combined by `+=`, which stands for the call's operator",
                        );
                        return ParsedStatement::Nothing;
                    }
                    (false, op) => self.assign(&binary.left, assigning_op(op), &binary.right),
                }
            }
            syn::Expr::ForLoop(each) => self.for_loop(each),
            syn::Expr::While(each) => {
                self.no_label(each.label.as_ref());
                let condition = self.bool(&each.cond, "the condition of a `while`");
                let body = self.unit_block(&each.body);
                let name = self.loop_name("while".to_owned());
                Some(StmtKind::While { name, condition, body })
            }
            syn::Expr::Macro(call) => {
                return self.macro_call(&call.mac, quote!(#call #semi));
            }
            _ => {
                let value = self.expr(expr);
                let unit = value.ty.agrees(&Type::unit());
                if semi.is_none() && last && attributes.is_none() {
                    return ParsedStatement::Value(loc, value.expr, value.ty);
                }
                if semi.is_none() && !unit {
                    self.syntax(expr, format!("a value of type `{}` that nobody takes", value.ty));
                }
                let slot = self.slots(value.ty.size(), expr);
                Some(StmtKind::Set { slot, value: value.expr })
            }
        };
        match action {
            Some(kind) => ParsedStatement::Statement(Box::new(Stmt { loc, attributes, kind })),
            None => ParsedStatement::Nothing,
        }
    }

    /// `left = right` or `left op= right` on variables.
    fn assign(&mut self, left: &syn::Expr, op: Option<BinaryOp>, right: &syn::Expr) -> Option<StmtKind> {
        if let (syn::Expr::Tuple(tuple), None) = (left, op) {
            return self.assign_parts(tuple, right);
        }
        if matches!(left, syn::Expr::Infer(_)) && op.is_none() {
            let value = self.expr(right);
            let slot = self.slots(value.ty.size(), left);
            return Some(StmtKind::Set { slot, value: value.expr });
        }
        let target = self.target(left);
        let value = self.expr(right);
        let (part, ty) = target?;
        let loc = self.places.of(right);
        let what = "what is assigned to";
        let Some(op) = op else {
            let value = self.fit(&ty, value, loc, what);
            return Some(StmtKind::Assign { part, value });
        };
        self.wanted(&Type::INT, &ty, loc, what);
        self.wanted(&ty, &value.ty, loc, what);
        let ty = if let Type::Int(ty) = ty { ty } else { IntType::I64 };
        Some(StmtKind::Update { part, op, value: value.expr, ty })
    }

    fn assign_parts(&mut self, tuple: &syn::ExprTuple, right: &syn::Expr) -> Option<StmtKind> {
        if tuple.elems.iter().any(|part| buffer_root(part).is_some()) {
            return self.together(tuple, right).map(StmtKind::Together);
        }
        let targets: Vec<_> = tuple.elems.iter().map(|part| self.target(part)).collect();
        let value = self.expr(right);
        let temp = self.slots(value.ty.size(), right);
        let mut parts = Vec::new();
        let mut types = Vec::new();
        let mut offset = 0u32;
        for target in targets {
            let (part, ty) = target?;
            offset = offset.saturating_add(ty.size());
            parts.push((offset - ty.size(), part));
            types.push(ty);
        }
        let loc = self.places.of(right);
        let value = self.fit(&Type::Tuple(types), value, loc, "what is assigned to");
        Some(StmtKind::Scatter { temp, value, parts })
    }

    /// A variable, or a part of one, that may be assigned to.
    fn target(&mut self, left: &syn::Expr) -> Option<(VariablePart, Type)> {
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

    /// The place of an expression; of one with a block, only up to the block.
    pub(super) fn head(&mut self, expr: &syn::Expr) -> Loc {
        head(&mut self.places, expr)
    }
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

/// Returns true if the statement takes attributes of the schedule.
fn carries_attributes(expr: &syn::Expr) -> bool {
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
