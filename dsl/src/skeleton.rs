//! The body of a collective as Rust for rustc and for editors: it has the text's own names, types and places, moves no
//! data, and is never executed.
//!
//! ```text
//! let to = (c + hop) % RANKS;             let to = ((c + hop) % number());
//! data[to][c] += data[from][c];           used((to, c, from, c));
//! ```
//!
//! rustc finds with it unused variables and fns, and editors find the names. The text has passed the parser, so that
//! rustc has no error to add: every number is an `i64`, and what Rust's `i64` lacks is a fn of `quadrille::__private`.
//! Generated tokens have the place of what they stand for, and names that no text can use.

use crate::syntax::{
    Fragment, SCHEDULE_ATTRIBUTES, array_len, assigning_op, buffer_root, fragments, lift, macro_arguments,
    ranged, unwrapped,
};
use proc_macro2::{Delimiter, Ident, Literal, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::{Attribute, Expr, ExprLit, FnArg, Item, ItemFn, Lit, Pat, ReturnType, Stmt, Type};

/// The skeleton of a collective that the parser accepts: a closure without parameters. `params` are the names of its
/// parameters, `sizes` the expressions of its attribute.
pub(crate) fn skeleton(item: &ItemFn, params: &[&str], sizes: &[&Expr]) -> TokenStream {
    let skeleton = Skeleton { params };
    let sizes = sizes.iter().map(|size| {
        let (params, size, int) = (skeleton.params(&[]), skeleton.expr(size), int(Span::mixed_site()));
        quote!({ #params let _: #int = #size; })
    });
    let (params, body) = (skeleton.params(&[]), skeleton.block(&item.block));
    quote!(|| { #(#sizes)* #params #body })
}

struct Skeleton<'a> {
    params: &'a [&'a str],
}

impl Skeleton<'_> {
    /// The parameters as variables, but for the names that are variables already.
    fn params(&self, bound: &[String]) -> TokenStream {
        let number = api("number", Span::mixed_site());
        let names = self.params.iter().filter(|name| bound.iter().all(|bound| bound != *name));
        names
            .map(|name| {
                let name = Ident::new(name, Span::call_site());
                quote!(#[allow(unused_variables)] let #name = #number();)
            })
            .collect()
    }

    fn function(&self, item: &ItemFn) -> TokenStream {
        let (kept, name) = (lints(&item.attrs), &item.sig.ident);
        let inputs: Vec<_> = item
            .sig
            .inputs
            .iter()
            .filter_map(|input| match input {
                FnArg::Typed(input) => Some(input),
                FnArg::Receiver(_) => None,
            })
            .collect();
        let mut bound = Vec::new();
        inputs.iter().for_each(|input| names_of(&input.pat, &mut bound));
        let parameters = inputs.iter().map(|input| {
            let (pattern, ty) = (pattern(&input.pat), ty(&input.ty));
            quote!(#pattern: #ty)
        });
        let result = match &item.sig.output {
            ReturnType::Default => TokenStream::new(),
            ReturnType::Type(arrow, result) => {
                let result = ty(result);
                quote!(#arrow #result)
            }
        };
        let (params, body) = (self.params(&bound), self.block(&item.block));
        quote!(#(#kept)* fn #name(#(#parameters),*) #result { #params #body })
    }

    fn block(&self, block: &syn::Block) -> TokenStream {
        let last = block.stmts.len().saturating_sub(1);
        let statements = block.stmts.iter().enumerate().map(|(i, stmt)| self.statement(stmt, i == last));
        quote!({ #(#statements)* })
    }

    fn statement(&self, stmt: &Stmt, last: bool) -> TokenStream {
        match stmt {
            Stmt::Item(Item::Fn(item)) => self.function(item),
            Stmt::Item(_) => TokenStream::new(),
            Stmt::Macro(call) => self.macro_call(&call.mac),
            Stmt::Local(local) => {
                let (kept, pattern) = (lints(&local.attrs), pattern(&local.pat));
                let value = local.init.as_ref().map(|init| self.expr(&init.expr));
                quote!(#(#kept)* let #pattern = #value;)
            }
            Stmt::Expr(expr, semi) => {
                let (bare, attributes) = lift(expr);
                let numbers: Vec<_> = attributes
                    .iter()
                    .filter(|attribute| {
                        SCHEDULE_ATTRIBUTES.iter().any(|name| attribute.path().is_ident(name))
                    })
                    .filter_map(|attribute| attribute.parse_args::<Expr>().ok())
                    .filter(|number| !matches!(number, Expr::Assign(_)))
                    .map(|number| self.expr(&number))
                    .collect();
                let used = (!numbers.is_empty()).then(|| used(expr, &numbers));
                let statement = self.expression_statement(ungrouped(&bare), semi.is_some(), last);
                quote!(#used #statement)
            }
        }
    }

    fn expression_statement(&self, expr: &Expr, semi: bool, last: bool) -> TokenStream {
        match expr {
            Expr::Macro(call) => self.macro_call(&call.mac),
            Expr::Assign(assign) => self.assign(&assign.left, &assign.eq_token, &assign.right),
            Expr::Binary(binary) if assigning_op(&binary.op).is_some() => {
                self.assign(&binary.left, &binary.op, &binary.right)
            }
            Expr::ForLoop(each) => {
                let (pattern, range, body) =
                    (pattern(&each.pat), self.range(&each.expr), self.block(&each.body));
                quote!(for #pattern in #range #body)
            }
            Expr::While(each) => {
                let (condition, body) = (self.expr(&each.cond), self.block(&each.body));
                quote!(while #condition #body)
            }
            // The value of the block, or a statement that needs no `;`.
            _ if !semi && (last || matches!(expr, Expr::If(_) | Expr::Block(_))) => self.expr(expr),
            _ => {
                let value = self.expr(expr);
                quote_spanned!(span_of(expr)=> let _ = #value;)
            }
        }
    }

    /// An assignment to variables, or to chunks.
    fn assign(&self, left: &Expr, op: &impl ToTokens, right: &Expr) -> TokenStream {
        let moves = match left {
            Expr::Tuple(tuple) => tuple.elems.iter().any(|part| buffer_root(part).is_some()),
            left => buffer_root(left).is_some(),
        };
        if moves {
            return self.moved(left, &[left, right]);
        }
        let (left, right) = (self.expr(left), self.expr(right));
        quote!(#left #op #right;)
    }

    /// `assert!(..)`, `expect!(..)` or `unspecified!(..)`.
    fn macro_call(&self, mac: &syn::Macro) -> TokenStream {
        let arguments = macro_arguments(mac);
        let Some(condition) = arguments.first() else { return TokenStream::new() };
        if !mac.path.is_ident("assert") {
            return self.moved(mac, &[condition]);
        }
        let mut reads = vec![self.expr(condition)];
        if let Some(Expr::Lit(ExprLit { lit: Lit::Str(message), .. })) = arguments.get(1) {
            for fragment in fragments(message) {
                if let Fragment::Name(name) = fragment {
                    reads.push(self.name(&name));
                }
            }
        }
        used(mac, &reads)
    }

    /// A statement on chunks: it reads the indices of every operand.
    fn moved(&self, at: impl ToTokens, sides: &[&Expr]) -> TokenStream {
        let mut indices = Vec::new();
        sides.iter().for_each(|side| self.indices(side, &mut indices));
        used(at, &indices)
    }

    fn indices(&self, expr: &Expr, list: &mut Vec<TokenStream>) {
        match unwrapped(expr) {
            Expr::Index(index) => {
                self.indices(&index.expr, list);
                match unwrapped(&index.index) {
                    Expr::Range(range) => {
                        list.extend(range.start.iter().chain(&range.end).map(|end| self.expr(end)));
                    }
                    index => list.push(self.expr(index)),
                }
            }
            Expr::Binary(binary) => {
                self.indices(&binary.left, list);
                self.indices(&binary.right, list);
            }
            Expr::Tuple(syn::ExprTuple { elems, .. }) | Expr::Array(syn::ExprArray { elems, .. }) => {
                elems.iter().for_each(|part| self.indices(part, list));
            }
            Expr::Call(call) => call.args.iter().for_each(|argument| self.indices(argument, list)),
            // A buffer's name.
            _ => {}
        }
    }

    /// The values of a `for`.
    fn range(&self, expr: &Expr) -> TokenStream {
        if !ranged(expr) {
            return self.expr(expr);
        }
        let (mut at, mut steps) = (unwrapped(expr), Vec::new());
        while let Expr::MethodCall(call) = at {
            steps.extend(call.args.iter().map(|step| self.expr(step)));
            at = unwrapped(&call.receiver);
        }
        let span = span_of(expr);
        let (range, mut ends) = (api("range", span), Vec::new());
        if let Expr::Range(range) = at {
            ends.extend(range.start.iter().chain(&range.end).map(|end| self.expr(end)));
        }
        quote_spanned!(span=> #range((#(#ends,)*), (#(#steps,)*)))
    }

    fn expr(&self, expr: &Expr) -> TokenStream {
        let span = span_of(expr);
        match expr {
            Expr::Paren(paren) => self.expr(&paren.expr),
            Expr::Group(group) => self.expr(&group.expr),
            Expr::Lit(lit) => literal(&lit.lit),
            Expr::Path(path) => path.path.get_ident().map_or_else(TokenStream::new, |name| self.name(name)),
            Expr::Unary(unary) => {
                let (op, operand) = (&unary.op, self.expr(&unary.expr));
                quote!((#op #operand))
            }
            Expr::Binary(binary) => {
                let (left, op, right) = (self.expr(&binary.left), &binary.op, self.expr(&binary.right));
                quote!((#left #op #right))
            }
            Expr::Cast(cast) => {
                let (int, value) = (int(span), self.expr(&cast.expr));
                quote_spanned!(span=> <#int as ::core::convert::From<_>>::from(#value))
            }
            Expr::Call(call) => {
                let (function, arguments) =
                    (&call.func, call.args.iter().map(|argument| self.expr(argument)));
                quote!(#function(#(#arguments),*))
            }
            Expr::MethodCall(call) => {
                let kind = if call.method == "is_power_of_two" { "property" } else { "operation" };
                let (function, receiver) = (api(kind, span), self.expr(&call.receiver));
                let arguments = call.args.iter().map(|argument| self.expr(argument));
                quote_spanned!(span=> #function(#receiver, (#(#arguments,)*)))
            }
            Expr::Field(field) => {
                let (base, member) = (self.expr(&field.base), &field.member);
                quote!(#base.#member)
            }
            Expr::Index(indexed) => {
                let (base, function, index) =
                    (self.expr(&indexed.expr), api("index", span), self.expr(&indexed.index));
                quote!(#base[#function(#index)])
            }
            Expr::Tuple(tuple) => {
                let items = tuple.elems.iter().map(|item| self.expr(item));
                quote!((#(#items,)*))
            }
            Expr::Array(array) => {
                let items = array.elems.iter().map(|item| self.expr(item));
                quote!([#(#items),*])
            }
            Expr::Repeat(repeat) => {
                let (item, len) = (self.expr(&repeat.expr), length(&repeat.len));
                quote!([#item; #len])
            }
            Expr::If(branch) => {
                let (condition, then) = (self.expr(&branch.cond), self.block(&branch.then_branch));
                let otherwise = branch.else_branch.as_ref().map(|(_, otherwise)| {
                    let otherwise = self.expr(otherwise);
                    quote!(else #otherwise)
                });
                quote!(if #condition #then #otherwise)
            }
            Expr::Block(block) => self.block(&block.block),
            // `_` on the left of an assignment.
            other => other.to_token_stream(),
        }
    }

    /// A variable, or a name of the language.
    fn name(&self, name: &Ident) -> TokenStream {
        if ["RANKS", "ROOT", "NODES", "LOCAL_RANKS"].iter().any(|known| name == known) {
            let span = span_of(name);
            let number = api("number", span);
            return quote_spanned!(span=> #number());
        }
        name.to_token_stream()
    }
}

/// A statement that uses values.
fn used(at: impl ToTokens, values: &[TokenStream]) -> TokenStream {
    let span = span_of(at);
    let used = api("used", span);
    quote_spanned!(span=> #used((#(#values,)*));)
}

fn pattern(of: &Pat) -> TokenStream {
    match of {
        Pat::Paren(paren) => pattern(&paren.pat),
        Pat::Type(typed) => {
            let (inner, ty) = (pattern(&typed.pat), ty(&typed.ty));
            quote!(#inner: #ty)
        }
        Pat::Tuple(tuple) => {
            let parts = tuple.elems.iter().map(pattern);
            quote!((#(#parts,)*))
        }
        pattern => pattern.to_token_stream(),
    }
}

/// A written type, with `i64` for every integer type.
fn ty(of: &Type) -> TokenStream {
    let span = span_of(of);
    match of {
        Type::Paren(paren) => ty(&paren.elem),
        Type::Group(group) => ty(&group.elem),
        Type::Tuple(tuple) => {
            let items = tuple.elems.iter().map(ty);
            quote!((#(#items,)*))
        }
        Type::Array(array) => {
            let (item, len) = (ty(&array.elem), length(&array.len));
            quote!([#item; #len])
        }
        // By their paths, as the names may mean something else where the fn stands.
        Type::Path(path) if path.path.is_ident("bool") => quote_spanned!(span=> ::core::primitive::bool),
        _ => int(span),
    }
}

fn int(span: Span) -> TokenStream {
    quote_spanned!(span=> ::core::primitive::i64)
}

/// The length of an array, without a type.
fn length(len: &Expr) -> Literal {
    let mut number = Literal::u32_unsuffixed(array_len(len).unwrap_or_default());
    number.set_span(span_of(len));
    number
}

/// A number as an `i64`, or a bool.
fn literal(literal: &Lit) -> TokenStream {
    let Lit::Int(number) = literal else { return literal.to_token_stream() };
    // As text: the lowest `i64` has one digit more than fits without its sign.
    let Ok(mut suffixed) = format!("{}i64", number.base10_digits()).parse::<Literal>() else {
        return literal.to_token_stream();
    };
    suffixed.set_span(number.span());
    suffixed.to_token_stream()
}

/// Adds the names that a pattern binds.
fn names_of(pattern: &Pat, list: &mut Vec<String>) {
    match pattern {
        Pat::Ident(ident) => list.push(ident.ident.to_string()),
        Pat::Paren(paren) => names_of(&paren.pat, list),
        Pat::Tuple(tuple) => tuple.elems.iter().for_each(|part| names_of(part, list)),
        _ => {}
    }
}

/// The attributes that rustc's lints heed.
fn lints(attributes: &[Attribute]) -> impl Iterator<Item = &Attribute> {
    attributes.iter().filter(|a| ["allow", "expect", "warn"].iter().any(|name| a.path().is_ident(name)))
}

/// The expression without the groups that syn leaves around the arguments of `macro_rules!`.
fn ungrouped(expr: &Expr) -> &Expr {
    match expr {
        Expr::Group(group) => ungrouped(&group.expr),
        _ => expr,
    }
}

/// The place of the first of `tokens`, with names that are not the text's.
fn span_of(tokens: impl ToTokens) -> Span {
    let mut tokens = tokens.to_token_stream().into_iter();
    loop {
        match tokens.next() {
            None => return Span::mixed_site(),
            // A group without delimiters has no place.
            Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::None => {
                tokens = group.stream().into_iter();
            }
            Some(token) => return token.span().resolved_at(Span::mixed_site()),
        }
    }
}

/// A fn of the interface, by its full path.
fn api(name: &str, span: Span) -> TokenStream {
    let name = Ident::new(name, span);
    quote_spanned!(span=> ::quadrille::__private::#name)
}
