//! Blocks, statements and nested fns.

use super::expression::operator;
use super::{Rewriter, api, ok, ranges, span_of};
use crate::syntax::{
    Fragment, SCHEDULE_ATTRIBUTES, Type, arguments, assigning_op, buffer_root, fragments, head, lift,
    unwrapped,
};
use proc_macro2::{Ident, TokenStream};
use quadrille_compiler::evaluate::arithmetic::Binary;
use quote::{ToTokens, quote, quote_spanned};
use syn::{Attribute, Expr, ExprLit, FnArg, Item, ItemFn, Lit, Pat, RangeLimits, Stmt};

impl Rewriter<'_> {
    /// A fn that records: the tape comes before its parameters.
    pub(super) fn function(&mut self, item: &ItemFn) -> TokenStream {
        let span = span_of(item);
        let tape = self.tape.clone();
        let (kept, name) = (lints(&item.attrs), &item.sig.ident);
        let (parameters, result) = self.signature(&item.sig);
        let params = self.params(&bound(&item.sig));
        let (value, tape_type, stop) = (ok(self.block(&item.block)), api("Tape", span), api("Stop", span));
        quote! {
            #(#kept)*
            fn #name(#tape: &#tape_type<'_> #parameters) -> ::core::result::Result<#result, #stop> {
                let _ = #tape;
                #params
                #value
            }
        }
    }

    /// A block with its braces, for its value.
    pub(super) fn block(&mut self, block: &syn::Block) -> TokenStream {
        let (span, tape) = (span_of(block), &self.tape.clone());
        let outer = Ident::new("outer", span);
        let mut functions = TokenStream::new();
        let mut statements = TokenStream::new();
        let mut value = None;
        for (i, stmt) in block.stmts.iter().enumerate() {
            match stmt {
                Stmt::Item(Item::Fn(item)) => {
                    self.calls = true;
                    functions.extend(self.function(item));
                }
                Stmt::Item(_) => {}
                Stmt::Local(local) => statements.extend(self.local(local)),
                Stmt::Macro(call) => {
                    let (mac, semi) = (&call.mac, &call.semi_token);
                    statements.extend(self.macro_statement(mac, quote!(#mac #semi)));
                }
                Stmt::Expr(expr, semi) => {
                    let (bare, attributes) = lift(expr);
                    let (bare, plain) = (ungrouped(&bare), !attributes.iter().any(says_how));
                    if is_value(bare) && semi.is_none() && i + 1 == block.stmts.len() && plain {
                        value = Some(bare.clone());
                    } else {
                        statements.extend(self.expression_statement(bare, semi.as_ref(), &attributes));
                    }
                }
            }
        }
        if statements.is_empty() {
            let value = value.map(|value| self.value(&value, None));
            return quote!({ #functions #value });
        }
        let end = match value {
            Some(value) => self.value(&value, Some(&outer)),
            None => quote!(#tape.back(#outer);),
        };
        quote!({ #functions let #outer = #tape.here(); #statements #end })
    }

    /// The value of a block, evaluated in its own place; then the run goes back to `outer`, or where it was.
    pub(super) fn value(&mut self, expr: &Expr, outer: Option<&Ident>) -> TokenStream {
        let span = span_of(expr);
        let tape = self.tape(span);
        let loc = head(self.places, expr);
        let (mut value, fit) = (self.expr(expr), self.fit_at(loc));
        if let Some(ty) = &fit {
            value = self.fit(value, ty, loc, expr);
        } else if let Expr::Lit(_) | Expr::Path(_) = unwrapped(expr) {
            return match outer {
                Some(outer) => quote!(#tape.back(#outer); #value),
                None => value,
            };
        }
        let site = self.site_of(loc);
        let (keep, outer) = match outer {
            Some(outer) => (TokenStream::new(), outer.clone()),
            None => {
                let outer = Ident::new("outer", span);
                (quote_spanned!(span=> let #outer = #tape.here();), outer)
            }
        };
        quote_spanned! {span=>
            #keep
            #tape.go(#site);
            let value = #value;
            #tape.back(#outer);
            value
        }
    }

    fn local(&mut self, local: &syn::Local) -> TokenStream {
        let bare = syn::Local { attrs: Vec::new(), ..local.clone() };
        let (span, site) = (span_of(&bare), self.site(&bare));
        let (tape, kept) = (self.tape(span), lints(&local.attrs));
        let pattern = self.pattern(&local.pat);
        let value = local.init.as_ref().map(|init| match local.pat {
            Pat::Type(_) => self.fitted(&init.expr),
            _ => self.expr(&init.expr),
        });
        quote_spanned!(span=> #tape.at(#site)?; #(#kept)* let #pattern = #value;)
    }

    fn expression_statement(
        &mut self,
        expr: &Expr,
        semi: Option<&syn::Token![;]>,
        attributes: &[Attribute],
    ) -> TokenStream {
        if let Expr::Macro(call) = expr {
            return self.macro_statement(&call.mac, quote!(#call #semi));
        }
        let span = span_of(expr);
        let tape = self.tape(span);
        let loc = match expr {
            Expr::If(_) | Expr::While(_) | Expr::ForLoop(_) => head(self.places, expr),
            _ => self.places.of(quote!(#expr #semi)),
        };
        let site = self.site_of(loc);
        let around = self.attributed(attributes, loc, span);
        let action = match expr {
            Expr::Assign(assign) => match buffer_root(&assign.left) {
                Some(_) => self.movement(&assign.left, false, &assign.right),
                None => self.assign(&assign.left, None, &assign.right),
            },
            Expr::Binary(binary) if assigning_op(&binary.op).is_some() => match buffer_root(&binary.left) {
                Some(_) => self.movement(&binary.left, true, &binary.right),
                None => self.assign(&binary.left, assigning_op(&binary.op), &binary.right),
            },
            Expr::ForLoop(each) => self.for_loop(each),
            Expr::While(each) => self.while_loop(each),
            Expr::If(_) | Expr::Block(_) if semi.is_none() => self.expr(expr),
            _ => {
                let value = self.expr(expr);
                quote_spanned!(span=> let _ = #value;)
            }
        };
        match around {
            None => quote_spanned!(span=> #tape.at(#site)?; #action),
            Some([before, behind]) => quote_spanned!(span=> #tape.at(#site)?; { #before #action #behind }),
        }
    }

    /// `left = right` or `left op= right` on variables. The value comes first, then the indices on the left.
    fn assign(&mut self, left: &Expr, op: Option<Binary>, right: &Expr) -> TokenStream {
        let span = span_of(left);
        if let Expr::Tuple(tuple) = left
            && tuple.elems.iter().any(|part| buffer_root(part).is_some())
        {
            return self.together(tuple, right);
        }
        let right_loc = self.places.of(right);
        let (value, fit) = (self.expr(right), self.fit_at(right_loc));
        let value = match &fit {
            Some(ty) if op.is_none() => self.fit(value, ty, right_loc, right),
            _ => value,
        };
        let assigned = Ident::new("assigned", span);
        match left {
            Expr::Infer(_) => quote_spanned!(span=> let _ = #value;),
            Expr::Tuple(tuple) => {
                let names: Vec<_> =
                    (0..tuple.elems.len()).map(|i| Ident::new(&format!("assigned{i}"), span)).collect();
                let stores: Vec<_> =
                    tuple.elems.iter().zip(&names).map(|(part, name)| self.store(part, name)).collect();
                quote_spanned!(span=> { let (#(#names,)*) = #value; #(#stores)* })
            }
            _ => {
                let combined = op.map(|op| {
                    let (tape, op) = (self.tape(span), operator(op, span));
                    let ty = ranges(fit.as_ref().unwrap_or(&Type::INT), span);
                    move |old: &TokenStream| {
                        quote_spanned!(span=> let assigned = #tape.assigned(#op, #old, assigned, #ty)?;)
                    }
                });
                let (lets, part) = self.place(left);
                let combined = combined.map(|combined| combined(&part));
                quote_spanned!(span=> { let #assigned = #value; #lets #combined #part = #assigned; })
            }
        }
    }

    /// `part = name;`
    fn store(&mut self, part: &Expr, name: &Ident) -> TokenStream {
        let (lets, part) = self.place(part);
        quote!({ #lets #part = #name; })
    }

    fn for_loop(&mut self, each: &syn::ExprForLoop) -> TokenStream {
        let span = span_of(each);
        let tape = self.tape(span);
        let steps = self.range(&each.expr);
        let name = match &*each.pat {
            Pat::Ident(ident) => ident.ident.to_string(),
            _ => "_".to_owned(),
        };
        let (pattern, body) = (self.pattern(&each.pat), self.block(&each.body));
        quote_spanned! {span=>
            {
                let steps = #steps;
                let open = #tape.open(#name);
                for now in steps {
                    #tape.iteration(open, now)?;
                    let #pattern = now;
                    #body
                }
                #tape.close(open);
            }
        }
    }

    fn while_loop(&mut self, each: &syn::ExprWhile) -> TokenStream {
        let span = span_of(each);
        let tape = self.tape(span);
        let (condition, body) = (self.expr(&each.cond), self.block(&each.body));
        quote_spanned! {span=>
            {
                let open = #tape.open("while");
                for now in 0i64.. {
                    #tape.iteration(open, now)?;
                    if !#condition {
                        break;
                    }
                    #body
                }
                #tape.close(open);
            }
        }
    }

    /// What a `for` runs over.
    fn range(&mut self, expr: &Expr) -> TokenStream {
        let span = span_of(expr);
        match expr {
            Expr::Paren(paren) => self.range(&paren.expr),
            Expr::Group(group) => self.range(&group.expr),
            Expr::Range(range) => {
                let mut end = |end: &Option<Box<Expr>>| end.as_ref().map(|end| self.expr(end));
                let (start, end) = (end(&range.start), end(&range.end));
                let inclusive = matches!(range.limits, RangeLimits::Closed(_));
                let steps = api("Steps", span);
                quote_spanned!(span=> #steps::new(#start, #end, #inclusive))
            }
            Expr::MethodCall(call) => {
                let inner = self.range(&call.receiver);
                match call.args.first() {
                    None => quote_spanned!(span=> #inner.rev()),
                    Some(by) => {
                        let (by, tape) = (self.expr(by), self.tape(span));
                        quote_spanned!(span=> #tape.step_by(#inner, #by)?)
                    }
                }
            }
            other => other.to_token_stream(),
        }
    }

    /// `assert!(condition, "message")`, `expect!(..)` or `unspecified!(..)`.
    fn macro_statement(&mut self, mac: &syn::Macro, tokens: TokenStream) -> TokenStream {
        let (span, site) = (span_of(&tokens), self.site(&tokens));
        let tape = self.tape(span);
        let arguments = arguments(mac);
        let Some(condition) = arguments.first() else { return TokenStream::new() };
        if !mac.path.is_ident("assert") {
            let promise = self.promise(condition);
            return quote_spanned!(span=> #tape.at(#site)?; #promise);
        }
        let message = match arguments.get(1) {
            Some(Expr::Lit(ExprLit { lit: Lit::Str(message), .. })) => Some(message),
            _ => None,
        };
        let (holds, place) = (self.expr(condition), self.site(condition));
        let reads = self.reads(&[condition]);
        let pieces = message.into_iter().flat_map(fragments).map(|fragment| match fragment {
            Fragment::Text(text) => quote!(&#text),
            Fragment::Name(name) => {
                let value = self.name(&syn::parse_quote!(#name));
                quote!(&#value)
            }
            Fragment::NoName(_) | Fragment::StrayBrace => quote!(&""),
        });
        quote_spanned! {span=>
            #tape.at(#site)?;
            #tape.require(#holds, #place, &[#(#pieces),*], #reads)?;
        }
    }
}

/// Whether the attribute says how its statement is carried out.
fn says_how(attribute: &Attribute) -> bool {
    SCHEDULE_ATTRIBUTES.iter().any(|name| attribute.path().is_ident(name))
}

/// The names that a fn's parameters have.
fn bound(sig: &syn::Signature) -> Vec<String> {
    fn names(pattern: &Pat, list: &mut Vec<String>) {
        match pattern {
            Pat::Ident(ident) => list.push(ident.ident.to_string()),
            Pat::Paren(paren) => names(&paren.pat, list),
            Pat::Tuple(tuple) => tuple.elems.iter().for_each(|part| names(part, list)),
            _ => {}
        }
    }
    let mut list = Vec::new();
    for input in &sig.inputs {
        if let FnArg::Typed(input) = input {
            names(&input.pat, &mut list);
        }
    }
    list
}

/// The attributes that rustc's lints heed.
fn lints(attributes: &[Attribute]) -> Vec<&Attribute> {
    let heeded = ["allow", "expect", "warn"];
    attributes.iter().filter(|a| heeded.iter().any(|name| a.path().is_ident(name))).collect()
}

/// What syn puts around what `macro_rules!` put in is taken off.
fn ungrouped(expr: &Expr) -> &Expr {
    match expr {
        Expr::Group(group) => ungrouped(&group.expr),
        _ => expr,
    }
}

/// Whether the expression, as the last one of a block, is the block's value.
fn is_value(expr: &Expr) -> bool {
    match expr {
        Expr::Assign(_) | Expr::ForLoop(_) | Expr::While(_) | Expr::Macro(_) => false,
        Expr::Binary(binary) => assigning_op(&binary.op).is_none(),
        _ => true,
    }
}
